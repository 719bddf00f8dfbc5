// Short (`npm test`): workers that are stopped (SIGSTOP) for less and for more than their lease, and go on. Real processes, lease 3 s.
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { fleetOn } from "../src/automation/fleet.ts";
import { SILENT } from "../src/internal/log.ts";
import {
  BOUND_MS,
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

const LEASE_MS = 3000;

// On Redis only: a process frozen inside a write to a SQLite file keeps its lock, and then nobody can take over (docs/guarantees.md).
// Whether the stop meets such a moment is chance on a busy machine, and these tests must not depend on it.
const SHARED = PLACES.filter(({ name }) => name === "Redis");

describe.each(SHARED)("on $name", (place) => {
  test.each([
    ["its supervisor alone", () => []],
    ["all of it", (pid: number) => descendants(pid)],
  ] as const)(
    "a worker of which %s is stopped",
    async (what, others) => {
      const fleet = await healFleet(place, TICKER);
      const one = fleet.worker("one");
      await untilSpread(fleet, { one: 4 });
      const two = fleet.worker("two");
      await untilSpread(fleet, { one: 2, two: 2 });
      const pids = [one.pid, ...others(one.pid)];
      const send = (signal: NodeJS.Signals) => pids.map((pid) => process.kill(pid, signal));

      // Below the lease: nothing happens.
      let since = fleet.ledger().length;
      await stopOutsideOfWrites(fleet, send);
      await delay(1500);
      send("SIGCONT");
      await fleet.untilLine(() => fleet.ledger().length > since + 100);
      const quiet = fleet.ledger().slice(since);
      expect(quiet.filter((line) => line.what !== "turn" && line.what !== "emitted")).toEqual([]);
      expect(quiet.some((line) => line.worker === "one")).toBe(true);

      // Above it: its slots go to the other one.
      const stale = new Map(
        (await slotsOf(fleet, "one")).map((slot) => [slot, fleet.lines(slot, "start").at(-1) as Line]),
      );
      expect(stale.size).toBe(2);
      since = fleet.ledger().length;
      await stopOutsideOfWrites(fleet, send);
      const stopped = Date.now();
      const taken = new Map(
        await Promise.all(
          [...stale.keys()].map(
            async (slot) => [slot, await fleet.untilLine(starts(slot, "two"), since)] as const,
          ),
        ),
      );
      const took = lastOf(taken.values()) - stopped;
      measured(`SIGSTOP of a worker (${what}), ${place.name}: taken over`, ms(took));
      expect(took).toBeGreaterThan(LEASE_MS / 2);
      expect(took).toBeLessThan(BOUND_MS);
      // The new copies work already.
      for (const { run } of taken.values())
        await fleet.untilLine((line) => line.run === run && line.what === "emitted");
      send("SIGCONT");
      // It joins again and gets its share again, in new runs.
      await fleet.untilLine((line) => line.what === "start" && line.worker === "one", since);
      await untilSpread(fleet, { one: 2, two: 2 });

      // Nothing of the old copies since the take-over: neither a turn of their code, nor an entry in the stream.
      for (const [slot, { run }] of stale) {
        const from = (taken.get(slot) as Line).at;
        const late = fleet.lines(slot).filter((line) => line.run === run && line.at >= from);
        expect(late.filter(({ what: did }) => did !== "stop")).toEqual([]);
      }
      const entries = await fleetOn(fleet.store, { log: SILENT }).stream(TICKS).peek({ n: 10_000 });
      for (const [slot, { run }] of stale) {
        const ofSlot = entries.filter((entry) => `ticker/${entry.slot}` === slot);
        const next = ofSlot.findIndex((entry) => entry.run === (taken.get(slot) as Line).run);
        expect(next).toBeGreaterThan(0);
        expect(ofSlot.slice(next).filter((entry) => entry.run === run)).toEqual([]);
        // Not a turn that was noted as emitted is missing, and none is there twice.
        const turns = ofSlot.filter((entry) => entry.run === run).map((entry) => entry.turn);
        expect(new Set(turns).size).toBe(turns.length);
      }
      for (const worker of [one, two]) worker.signal("SIGTERM");
      expect([await one.ended, await two.ended]).toEqual([0, 0]);
    },
    60_000,
  );
});

/**
 * Stops the processes at a moment at which none of them holds the write lock of a SQLite file: one that is frozen inside a write keeps
 * it until it goes on or ends, and everybody else waits (docs/guarantees.md). What is tested here is what happens otherwise.
 */
async function stopOutsideOfWrites(
  fleet: HealFleet,
  send: (signal: NodeJS.Signals) => unknown,
): Promise<void> {
  const bounds = { maxLength: 1, ttlMs: 1000, maxPayloadBytes: 1 };
  for (;;) {
    send("SIGSTOP");
    const written = fleet.store.streams.declare({ stream: "probe", bounds, as: "owner" }).then(() => true);
    if (await Promise.race([written, delay(400).then(() => false)])) return;
    send("SIGCONT");
    await written;
    // Long enough for a beat, so that its lease is whole again.
    await delay(700);
  }
}
