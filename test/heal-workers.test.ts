// Short (`npm test`): workers that are killed, and started again under their id. Real processes, lease 3 s.
import { describe, expect, test, vi } from "vitest";
import {
  BOUND_MS,
  healFleet,
  lastOf,
  measured,
  ms,
  slotsOf,
  starts,
  untilSpread,
} from "./support/heal-fleet.ts";
import { PLACES } from "./support/places.ts";
import { descendants, isAlive } from "./support/processes.ts";
import { TICKER } from "./support/heal-ticker.ts";

describe.each(PLACES)("on $name", (place) => {
  test("a killed worker's slots run on another; alone, it takes them up again under its id at once", async () => {
    const fleet = await healFleet(place, TICKER);
    const one = fleet.worker("one");
    await untilSpread(fleet, { one: 4 });
    const two = fleet.worker("two");
    await untilSpread(fleet, { one: 2, two: 2 });
    const same = fleet.worker("one");
    expect(await same.ended).toBe(1);
    expect(same.stderr()).toContain('a live worker bears the id "one" already');

    const children = descendants(one.pid);
    expect(children.length).toBeGreaterThan(0);
    const before = await slotsOf(fleet, "one");
    let since = fleet.ledger().length;
    one.signal("SIGKILL");
    await one.ended;
    const killed = Date.now();
    const taken = await Promise.all(before.map((slot) => fleet.untilLine(starts(slot, "two"), since)));
    measured(`kill -9 of one of two workers, ${place.name}`, ms(lastOf(taken) - killed));
    expect(lastOf(taken) - killed).toBeLessThan(BOUND_MS);
    await vi.waitFor(() => expect(children.filter(isAlive)).toEqual([]), { timeout: 5000 });

    two.signal("SIGTERM");
    expect(await two.ended).toBe(0);

    // Alone, and with a long lease: when it is killed, its slots are held for longer than its successor may take.
    const alone = fleet.worker("alone", { timings: { leaseMs: 30_000 } });
    await untilSpread(fleet, { alone: 4 });
    const left = descendants(alone.pid);
    since = fleet.ledger().length;
    alone.signal("SIGKILL");
    await alone.ended;
    const again = fleet.worker("alone");
    const runs = await Promise.all(SLOTS.map((slot) => fleet.untilLine(starts(slot, "alone"), since)));
    const { workers } = await fleet.store.registry.view();
    const record = workers.find(({ id }) => id === "alone");
    expect(record).toMatchObject({ generation: 2, pid: again.pid });
    // Without waiting for the lease of its predecessor. How long the command takes to load the project is not meant.
    const took = lastOf(runs) - (record?.startedAt ?? 0);
    measured(`kill -9 of the only worker, started again, ${place.name}`, ms(took));
    expect(took).toBeLessThan(BOUND_MS);
    await vi.waitFor(() => expect(left.filter(isAlive)).toEqual([]), { timeout: 5000 });
    again.signal("SIGTERM");
    expect(await again.ended).toBe(0);
  }, 60_000);
});

const SLOTS = ["ticker/0", "ticker/1", "ticker/2", "ticker/3"];
