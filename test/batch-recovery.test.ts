// Short (`npm test`): a worker is killed, and the only other one has nothing to do. Lease 3 s; no sweep comes to its help.
import { describe, expect, test, vi } from "vitest";
import { batchFleet } from "./support/batch-fleet.ts";
import { measured, ms } from "./support/heal-fleet.ts";
import { PLACES, runningSlots } from "./support/places.ts";
import { descendants } from "./support/processes.ts";

const LEASE_MS = 3000;
const TIMINGS = { leaseMs: LEASE_MS, beatMs: 1000, sweepMs: 55_000 };

describe.each(PLACES)("on $name", (place) => {
  test("an idle worker takes on what a killed one has left, a beat after its lease at the latest", async () => {
    const fleet = await batchFleet(place, 2);
    const workers = ["one", "two"].map((id) => fleet.worker(id, { timings: TIMINGS }));
    await vi.waitFor(
      async () => expect([...(await runningSlots(fleet.store)).values()].flat()).toHaveLength(2),
      {
        timeout: 30_000,
        interval: 50,
      },
    );
    // Both have worked, and found nothing more.
    const first = await fleet.queue.submitMany(Array.from({ length: 20 }, () => ({ do: "ok" })));
    await fleet.ended(first.map(({ id }) => id));
    const { id } = await fleet.queue.submit({ do: "sleep", n: 4 });
    const { worker } = await fleet.untilTask(id, "begin");
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const since = fleet.ledger().length;
    const killedAt = Date.now();
    const pid = workers[worker === "one" ? 0 : 1]?.pid ?? 0;
    for (const one of [pid, ...descendants(pid)]) process.kill(one, "SIGKILL");
    const again = await fleet.untilTask(id, "begin", since);
    expect(again).toMatchObject({ crashes: 1 });
    expect(again.worker).not.toBe(worker);
    const pause = again.at - killedAt;
    measured(`${place.name}: tasks of a killed worker run again on an idle one after`, ms(pause));
    expect(pause).toBeLessThan(LEASE_MS + 1500);
    const [record] = await fleet.ended([id]);
    expect(record).toMatchObject({ state: "completed", crashes: 1 });
  }, 60_000);
});
