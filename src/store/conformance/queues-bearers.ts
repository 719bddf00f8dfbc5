import { expect } from "vitest";
import type { ScheduleRecord } from "../../protocol/task.ts";
import type { Store } from "../store.ts";
import { HandClock, siteCase, type StoreHarness, until } from "./harness.ts";
import { completed, declaredQueue, LEASE_MS, task } from "./queue-driver.ts";
import { twin, WINDOW_MS } from "./queues-duplicates.ts";

function putTimed(store: Store, at: number): Promise<ScheduleRecord> {
  const spec = {
    id: "s",
    timing: { at },
    payload: "1",
    overlap: "allow",
    missed: "once",
    missedCap: 1,
    jitterMs: 0,
    origin: "runtime",
    task: { priority: 0, maxAttempts: 1, timeoutMs: 0, ttlMs: 0 },
  } as const;
  return store.queues.putSchedule({ queue: "q", spec });
}

export function queueBearers(harness: StoreHarness): void {
  siteCase(harness, "a task retried by hand bears its key again unless another does", async ({ open }) => {
    const q = await declaredQueue(await open());
    await q.submit(twin("a", "ignore"));
    await q.cancel("a");
    await q.retry("a");
    expect(await q.submitted(twin("b", "ignore"))).toEqual([{ id: "a", outcome: "ignored" }]);
    await q.cancel("a");
    await q.submit(twin("b", "ignore"));
    await q.retry("a");
    expect(await q.submitted(twin("c", "ignore"))).toEqual([{ id: "b", outcome: "ignored" }]);
    expect(await q.claimIds("h", 9)).toEqual(["a", "b"]);
  });

  siteCase(harness, "each tick of a schedule is fired once", async ({ open }) => {
    const q = await declaredQueue(await open());
    const tick = (id: string, at: number, schedule = "s") => task(id, { tick: { schedule, at } });
    expect(await q.submit(tick("a", 1000), tick("b", 1000), tick("c", 2000))).toEqual([
      "submitted",
      "fired",
      "submitted",
    ]);
    expect(await q.submitted(tick("e", 1500))).toEqual([{ id: "e", outcome: "fired" }]);
    expect(await q.submit(tick("a", 1000), tick("f", 1000, "other"))).toEqual(["repeated", "submitted"]);
    expect((await q.get("f")).tick).toEqual({ schedule: "other", at: 1000 });
    const claims = await q.claim("h", 9);
    expect(claims.map((claim) => claim.tick)).toEqual([
      { schedule: "s", at: 1000 },
      { schedule: "s", at: 2000 },
      { schedule: "other", at: 1000 },
    ]);
    await q.settle(...claims.map((claim) => completed(claim)));
    expect(await q.submit(tick("e", 2000), tick("g", 2001))).toEqual(["fired", "submitted"]);
    expect(await q.state("e")).toBeUndefined();
    expect((await q.stats()).totals).toMatchObject({ submitted: 4, duplicates: 0, cancelled: 0 });
  });

  siteCase(
    harness,
    "a tick told by a revision of its schedule counts only while that holds",
    async ({ open }) => {
      const q = await declaredQueue(await open(), { maxLength: 2 });
      const tick = (id: string, at: number, revision: number) =>
        task(id, { tick: { schedule: "s", at, revision } });
      expect(await q.submitted(tick("none", 1000, 1))).toEqual([{ id: "none", outcome: "outdated" }]);
      const { revision } = await putTimed(q.store, 1000);
      expect(await q.submit(tick("a", 1000, revision))).toEqual(["submitted"]);
      expect((await q.get("a")).tick).toEqual({ schedule: "s", at: 1000 });
      const moved = await putTimed(q.store, 5000);
      // One that was fired is that first of all; what is written of neither makes the queue no longer.
      expect(
        await q.submit(
          tick("a", 1000, revision),
          tick("b", 1000, revision),
          tick("c", 2000, revision),
          tick("e", 5000, moved.revision),
        ),
      ).toEqual(["repeated", "fired", "outdated", "submitted"]);
      expect(await q.state("c")).toBeUndefined();
      // A tick that was refused for its revision is not taken for fired.
      expect(await q.cancel("a", "e")).toEqual(["cancelled", "cancelled"]);
      expect(await q.submit(tick("f", 6000, revision), tick("g", 6000, moved.revision))).toEqual([
        "outdated",
        "submitted",
      ]);
      await q.store.queues.removeSchedule({ queue: "q", id: "s" });
      expect(await q.submit(tick("h", 7000, moved.revision))).toEqual(["outdated"]);
    },
  );

  siteCase(harness, "what time has ended bears no key, though nobody has looked yet", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options), { crashLimit: 1 });
    await q.submit(twin("old", "ignore", { ttlMs: 1000 }));
    clock.advance(1000);
    expect(await q.submitted(twin("a", "ignore"))).toEqual([{ id: "a", outcome: "submitted" }]);
    expect(await q.get("old")).toMatchObject({ state: "failed", reason: "expired" });
    await q.claimOne("h");
    clock.advance(LEASE_MS);
    expect(await q.submitted(twin("b", "replace"))).toEqual([{ id: "b", outcome: "submitted" }]);
    expect(await q.get("a")).toMatchObject({ state: "failed", reason: "poison" });
    // A claim that is taken back leaves its task waiting, to be replaced.
    await declaredQueue(q.store, { crashLimit: 2 });
    await q.claimOne("h");
    clock.advance(LEASE_MS);
    expect(await q.submitted(twin("c", "replace"))).toEqual([{ id: "b", outcome: "replaced" }]);
    expect(await q.counts()).toEqual({ waiting: 1, failed: 2 });
  });

  siteCase(harness, "a window lasts, whatever else is submitted under its key", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options), { keepMs: 1, keepCount: 0 });
    await q.submit(twin("a", "throttle"));
    await q.settle(completed(await q.claimOne("h")));
    expect(await q.submit(twin("b", "ignore"))).toEqual(["submitted"]);
    await q.settle(completed(await q.claimOne("h")));
    expect(await q.submit(twin("c", "throttle"))).toEqual(["ignored"]);
    expect(await q.submit(twin("c", "supersede"))).toEqual(["submitted"]);
    await q.cancel("c");
    clock.advance(WINDOW_MS - 1);
    // Nor does it end because its task is forgotten.
    await q.sweep();
    expect(await q.state("a")).toBeUndefined();
    expect(await q.submit(twin("e", "throttle"))).toEqual(["ignored"]);
    clock.advance(1);
    await q.sweep();
    expect(await q.submit(twin("e", "throttle"))).toEqual(["submitted"]);
  });

  siteCase(harness, "a task retried by hand within its window bears its key too", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options));
    await q.submit(twin("a", "throttle"));
    await q.cancel("a");
    await q.retry("a");
    expect(await q.submitted(twin("b", "ignore"))).toEqual([{ id: "a", outcome: "ignored" }]);
    expect(await q.submitted(twin("b", "throttle"))).toEqual([{ id: "a", outcome: "ignored" }]);
    clock.advance(WINDOW_MS);
    expect(await q.submitted(twin("b", "throttle"))).toEqual([{ id: "a", outcome: "ignored" }]);
    await q.settle(completed(await q.claimOne("h")));
    expect(await q.submit(twin("b", "throttle"))).toEqual(["submitted"]);
  });

  siteCase(
    harness,
    "who asked by a repeat or a duplicate is told of the task that stands in",
    async ({ open }) => {
      const store = await open();
      const q = await declaredQueue(store);
      const told: string[] = [];
      const watch = store.queues.watch({ queue: "q" }, { onFinished: (id) => told.push(id) });
      await watch.ready;
      await q.submit(task("a"), twin("b", "ignore"), task("quiet"));
      const asked = { asked: true };
      expect(await q.submit(task("a", asked), twin("c", "throttle", asked))).toEqual(["repeated", "ignored"]);
      await q.settle(...(await q.claim("h", 9)).map((claim) => completed(claim)));
      await until("both told", () => told.includes("a") && told.includes("b"), 2000);
      expect(told).not.toContain("quiet");
      await watch.close();
    },
  );
}
