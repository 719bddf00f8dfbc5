// Short (`npm test`): workers that are stopped (SIGSTOP) for less and for more than their lease, and go on. Real processes, lease 6 s.
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import { fleetOn } from "../src/automation/fleet.ts";
import { SILENT } from "../src/internal/log.ts";
import {
  type HealFleet,
  healFleet,
  lastOf,
  measured,
  ms,
  slotsOf,
  starts,
  untilSpread,
  type Line,
} from "./support/heal-fleet.ts";
import { TICKER, TICKS } from "./support/heal-ticker.ts";
import { PLACES } from "./support/places.ts";
import { descendants } from "./support/processes.ts";

/** Long beside the short stop below, so that a busy machine does not make it a long one. */
const LEASE_MS = 6000;
/** What is resumed first has so long to do what it must not. */
const ALONE_MS = 300;

describe.each(PLACES)("on $name", (place) => {
  test.each([
    ["its supervisor alone", () => []],
    ["all of it", (pid: number) => descendants(pid)],
  ] as const)(
    "a worker of which %s is stopped",
    async (what, others) => {
      const fleet = await healFleet(place, TICKER);
      const one = fleet.worker("one", { timings: { leaseMs: LEASE_MS } });
      await untilSpread(fleet, { one: 4 });
      const two = fleet.worker("two", { timings: { leaseMs: LEASE_MS } });
      await untilSpread(fleet, { one: 2, two: 2 });
      const below = others(one.pid);
      const send = (signal: NodeJS.Signals, pids = [one.pid, ...below]) =>
        pids.map((pid) => process.kill(pid, signal));

      // Below the lease: nothing happens.
      let since = fleet.ledger().length;
      await stopOutsideOfWrites(fleet, send);
      await delay(1500);
      const resumed = fleet.ledger().length;
      send("SIGCONT");
      await fleet.untilLine((line) => line.worker === "one" && line.what === "emitted", resumed);
      await untilBeat(fleet, "one");
      const quiet = fleet.ledger().slice(since);
      expect(quiet.filter((line) => line.what !== "turn" && line.what !== "emitted")).toEqual([]);

      // Above it: its slots go to the other one.
      const stale = new Map(
        (await slotsOf(fleet, "one")).map((slot) => [slot, fleet.lines(slot, "start").at(-1) as Line]),
      );
      expect(stale.size).toBe(2);
      since = fleet.ledger().length;
      await stopOutsideOfWrites(fleet, send);
      const stopped = Date.now();
      const leases = await leasesOf(fleet, "one");
      const taken = new Map(
        await Promise.all(
          [...stale.keys()].map(
            async (slot) => [slot, await fleet.untilLine(starts(slot, "two"), since)] as const,
          ),
        ),
      );
      const took = lastOf(taken.values()) - stopped;
      measured(`SIGSTOP of a worker (${what}), ${place.name}: taken over`, ms(took));
      for (const [slot, { at }] of taken) expect(at).toBeGreaterThanOrEqual(leases.get(slot) as number);
      // The new copies work already.
      for (const { run } of taken.values())
        await fleet.untilLine((line) => line.run === run && line.what === "emitted");
      // The slots' process goes on first: it has to find out by itself.
      send("SIGCONT", below);
      await delay(ALONE_MS);
      send("SIGCONT", [one.pid]);
      // It joins again and gets its share again, in new runs.
      await fleet.untilLine((line) => line.what === "start" && line.worker === "one", since);
      await untilSpread(fleet, { one: 2, two: 2 });

      const entries = await fleetOn(fleet.store, { log: SILENT }).stream(TICKS).peek({ n: 10_000 });
      for (const [slot, { run }] of stale) {
        const next = taken.get(slot) as Line;
        const lines = fleet.lines(slot).filter((line) => line.run === run);
        const turnsOf = (did: string, late: (line: Line) => boolean) =>
          lines.filter((line) => line.what === did && late(line)).map(({ turn }) => turn);
        const ofSlot = entries.filter((entry) => `ticker/${entry.slot}` === slot);
        const begun = ofSlot.findIndex((entry) => entry.run === next.run);
        expect(begun).toBeGreaterThan(0);
        const written = (from: number, to?: number) =>
          ofSlot
            .slice(from, to)
            .filter((entry) => entry.run === run)
            .map(({ turn }) => turn);

        // Of the old copy since the take-over: at most the rest of one turn, up to its next wait, and nothing that reaches the store.
        const late = turnsOf("turn", ({ at }) => at >= next.at);
        // Where its process was never stopped itself, not even that.
        expect(late.length).toBeLessThanOrEqual(below.length === 0 ? 0 : 1);
        for (const turn of late) {
          expect(turnsOf("emitted", () => true)).not.toContain(turn);
          expect(written(0)).not.toContain(turn);
        }
        // An emit that was under way when it was stopped: its entry may come late, and so may the answer. There is at most one.
        const underWay = turnsOf("turn", ({ at }) => at < next.at).at(-1);
        for (const turn of [...written(begun), ...turnsOf("emitted", ({ at }) => at >= next.at)])
          expect(turn).toBe(underWay);
        // Not a turn that was noted as emitted is missing, and none is there twice.
        expect(written(0)).toEqual(expect.arrayContaining(turnsOf("emitted", () => true)));
        expect(new Set(written(0)).size).toBe(written(0).length);
      }
      for (const worker of [one, two]) worker.signal("SIGTERM");
      expect([await one.ended, await two.ended]).toEqual([0, 0]);
    },
    240_000,
  );
});

/**
 * Stops the processes at a moment at which none of them holds the write lock of a SQLite file: one that is frozen inside a write keeps
 * it until it goes on or ends, and everybody else waits (docs/guarantees.md). What is tested here is what happens otherwise. A worker
 * with two slots that emit ten times a second each holds the lock for one or two percent of the time.
 */
async function stopOutsideOfWrites(
  fleet: HealFleet,
  send: (signal: NodeJS.Signals) => unknown,
): Promise<void> {
  for (;;) {
    await untilBeat(fleet, "one");
    send("SIGSTOP");
    // Takes the lock, whether or not there is anything to write.
    const written = fleet.store.registry.pruneWorkers({ offlineMs: 3_600_000 }).then(() => true);
    if (await Promise.race([written, delay(400).then(() => false)])) return;
    measured("stopped inside a write", "once more");
    send("SIGCONT");
    await written;
  }
}

/** Waits for the worker's next beat: all its leases are whole again then. */
async function untilBeat(fleet: HealFleet, worker: string): Promise<void> {
  const since = await fleet.store.now();
  await vi.waitFor(
    async () => {
      const { workers } = await fleet.store.registry.view();
      expect(workers.find(({ id }) => id === worker)?.lastSeenAt).toBeGreaterThan(since);
    },
    { timeout: 60_000, interval: 20 },
  );
}

/** When the leases of a worker end, by slot. */
async function leasesOf(fleet: HealFleet, worker: string): Promise<Map<string, number>> {
  const { leases } = await fleet.store.registry.view();
  return new Map(
    leases
      .filter(({ workerId }) => workerId === worker)
      .map(({ automation, slotId, expiresAt }) => [`${automation}/${slotId}`, expiresAt]),
  );
}
