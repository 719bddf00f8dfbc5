// Short (`npm test`): a worker is killed or stands still, and the only other one has nothing to do. Lease 3 s; no sweep comes to its help.
import { describe, expect, test, vi } from "vitest";
import { batchFleet } from "./support/batch-fleet.ts";
import { measured, ms, untilSpread } from "./support/heal-fleet.ts";
import { placesFor, runningSlots } from "./support/places.ts";
import { descendants } from "./support/processes.ts";

const LEASE_MS = 3000;
const TIMINGS = { leaseMs: LEASE_MS, beatMs: 1000, sweepMs: 55_000 };

describe.each(placesFor("a SQLite file"))("on $name", (place) => {
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

  test("a process whose event loop stands still is handed no tasks, while another one is idle", async () => {
    const fleet = await batchFleet(place, 4);
    for (const id of ["one", "two"]) fleet.worker(id, { timings: TIMINGS });
    await untilSpread(fleet, { one: 2, two: 2 });
    const first = await fleet.queue.submitMany(Array.from({ length: 20 }, () => ({ do: "ok" })));
    await fleet.ended(first.map(({ id }) => id));
    const { id } = await fleet.queue.submit({ do: "busy", n: 8 });
    const { worker } = await fleet.untilTask(id, "begin");
    // A process is silent for 1.5 s before its supervisor, at its next beat, says so.
    await new Promise((resolve) => setTimeout(resolve, 3000));
    const pauses: number[] = [];
    for (let i = 0; i < 8; i++) {
      const at = Date.now();
      const task = await fleet.queue.submit({ do: "ok" });
      const began = await fleet.untilTask(task.id, "begin");
      expect(began.worker).not.toBe(worker);
      pauses.push(began.at - at);
      await fleet.ended([task.id]);
    }
    expect(fleet.lines("job", "effect").some((line) => line["task"] === id)).toBe(false);
    expect(Math.max(...pauses)).toBeLessThan(2000);
  }, 60_000);
});
