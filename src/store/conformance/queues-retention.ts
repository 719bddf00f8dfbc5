import { expect } from "vitest";
import { HandClock, range, siteCase, type StoreHarness } from "./harness.ts";
import {
  completed,
  declaredQueue,
  ended,
  failed,
  LEASE_MS,
  type Queue,
  task,
  tasks,
} from "./queue-driver.ts";

/** Submits one task per id, ends it as `end` says, and lets a second pass after each. */
async function finish(
  q: Queue,
  clock: HandClock,
  ids: readonly string[],
  end: typeof completed,
): Promise<void> {
  for (const id of ids) {
    await q.submit(task(id));
    await q.settle(end(await q.claimOne("h")));
    clock.advance(1000);
  }
}

const names = (letter: string, n: number) => range(0, n).map((i) => `${letter}${i}`);

export function queueRetention(harness: StoreHarness): void {
  siteCase(harness, "a task is not claimed once its time to live is over", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options));
    await q.submit(
      task("short", { ttlMs: 1000 }),
      task("delayed", { ttlMs: 1000, delayMs: 500 }),
      task("none"),
    );
    await q.submit(task("long", { ttlMs: 60_000, priority: -1 }));
    expect(await q.get("delayed")).toMatchObject({ dueAt: clock.ms + 500, expiresAt: clock.ms + 1500 });
    clock.advance(999);
    expect(await q.sweep()).toEqual({ reclaimed: 0, expired: 0, forgotten: 0 });
    expect(await q.claimIds("h", 1)).toEqual(["short"]);
    await q.lose(["h"]);
    clock.advance(500);
    expect(await q.sweep()).toMatchObject({ expired: 0 });
    clock.advance(1);
    // Started once, `short` has no time to live any more.
    const turn = await q.turn("h", 9);
    expect(turn.tasks.map(({ id }) => id)).toEqual(["short", "none", "long"]);
    expect(turn.ready).toBe(0);
    await q.sweep();
    expect(await q.get("delayed")).toMatchObject({ state: "failed", reason: "expired", startedAt: null });
    const { totals, reasons } = await q.stats();
    expect(totals).toMatchObject({ failed: 1, crashed: 0 });
    expect(reasons).toEqual({ expired: 1 });
  });

  siteCase(harness, "a claim that was returned leaves the time to live running", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options));
    await q.submit(...tasks(["a", "b", "c"], { ttlMs: 1000 }));
    const [a, b, c] = await q.claim("h", 3);
    if (!a || !b || !c) throw new Error("three were there");
    expect(await q.get("a")).toMatchObject({ state: "active", expiresAt: null });
    clock.advance(500);
    await q.settle(ended(a, "returned"), ended(b, "interrupted"));
    expect(await q.get("a")).toMatchObject({ state: "waiting", expiresAt: clock.ms + 500 });
    clock.advance(500);
    expect(await q.claimIds("h2", 3)).toEqual(["b"]);
    expect(await q.settle(ended(c, "returned"))).toEqual(["settled"]);
    expect(await q.claimIds("h2", 3)).toEqual([]);
    await q.sweep();
    expect(await q.counts()).toEqual({ active: 1, failed: 2 });
  });

  siteCase(
    harness,
    "a time to live that ends while the task is still delayed by nobody's claim",
    async ({ open }) => {
      const clock = new HandClock();
      const q = await declaredQueue(await open(clock.options));
      await q.submit(
        ...tasks(names("t", 400), { ttlMs: 100, delayMs: 100 }),
        task("k", { ttlMs: 100, key: "k" }),
      );
      clock.advance(10_000);
      expect(await q.sweep()).toMatchObject({ expired: 401 });
      expect(await q.counts()).toEqual({ failed: 401 });
      // By hand it may start after all, its time to live anew.
      expect(await q.retry("t7")).toEqual(["waiting"]);
      expect(await q.get("t7")).toMatchObject({
        state: "waiting",
        dueAt: clock.ms,
        expiresAt: clock.ms + 100,
      });
      clock.advance(99);
      expect(await q.claimIds("h", 9)).toEqual(["t7"]);
    },
  );

  siteCase(harness, "expired tasks hide none that can be claimed", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options), { keyConcurrency: 1 });
    await q.submit(...tasks(names("old", 1500), { ttlMs: 100, priority: 9 }));
    await q.submit(
      ...tasks(names("k", 300), { ttlMs: 100, key: "k" }),
      task("good"),
      task("kgood", { key: "k" }),
    );
    clock.advance(100);
    const got: string[] = [];
    for (let idle = 0; idle < 20 && got.length < 2; idle++) got.push(...(await q.claimIds("h", 5)));
    expect(got.toSorted()).toEqual(["good", "kgood"]);
    await q.sweep();
    expect(await q.counts()).toEqual({ active: 2, failed: 1800 });
  });

  siteCase(harness, "finished tasks are kept for their time, failures for theirs", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options), { keepMs: 60_000, keepFailedMs: 120_000 });
    const born = clock.ms;
    await finish(q, clock, ["done"], completed);
    await finish(q, clock, ["dead"], (claim) => failed(claim, { final: true }));
    await finish(q, clock, ["stop"], (claim) => ended(claim, "cancelled"));
    await q.submit(task("waits"));
    for (const [at, left] of [
      [59_999, ["done", "dead", "stop"]],
      [60_000, ["dead", "stop"]],
      [61_999, ["dead", "stop"]],
      [62_000, ["dead"]],
      [120_999, ["dead"]],
      [121_000, []],
    ] as const) {
      clock.ms = born + at;
      await q.sweep();
      const there = [
        ...(await q.ids("completed")),
        ...(await q.ids("failed")),
        ...(await q.ids("cancelled")),
      ];
      expect({ at, there }).toEqual({ at, there: [...left] });
    }
    expect(await q.store.queues.get({ queue: "q", id: "done" })).toBeUndefined();
    expect(await q.counts()).toEqual({ waiting: 1 });
    expect((await q.stats()).totals).toMatchObject({ submitted: 4, completed: 1, failed: 1, cancelled: 1 });
    // What is forgotten can be submitted again.
    expect(await q.submit(task("done"))).toEqual(["submitted"]);
  });

  siteCase(
    harness,
    "so many finished tasks are kept, the newest ends; and so many failures",
    async ({ open }) => {
      const clock = new HandClock();
      const q = await declaredQueue(await open(clock.options), { keepCount: 3, keepFailedCount: 2 });
      await finish(q, clock, names("f", 5), (claim) => failed(claim, { final: true }));
      // Completed and cancelled ones count together.
      const done = ["s0", "c0", "s1", "c1", "c2"];
      await finish(q, clock, done, (claim) =>
        claim.id < "s" ? completed(claim) : ended(claim, "cancelled"),
      );
      // Only a sweep forgets.
      expect(await q.counts()).toEqual({ completed: 3, failed: 5, cancelled: 2 });
      expect(await q.sweep()).toEqual({ reclaimed: 0, expired: 0, forgotten: 5 });
      expect(await q.sweep()).toEqual({ reclaimed: 0, expired: 0, forgotten: 0 });
      expect(await q.ids("failed")).toEqual(["f4", "f3"]);
      expect([await q.ids("completed"), await q.ids("cancelled")]).toEqual([["c2", "c1"], ["s1"]]);
    },
  );

  siteCase(
    harness,
    "nothing is kept where the count is 0, and much is forgotten in steps",
    async ({ open }) => {
      const q = await declaredQueue(await open(), { keepCount: 0, keepFailedCount: 0 });
      await q.submit(...tasks(names("t", 2500)), ...tasks(names("x", 3)));
      const claims = await q.claim("h", 2500);
      await q.settle(...claims.slice(0, 2400).map((claim) => completed(claim, '"result"')));
      await q.settle(...claims.slice(2400).map((claim) => failed(claim, { final: true })));
      expect(await q.sweep()).toEqual({ reclaimed: 0, expired: 0, forgotten: 2500 });
      expect(await q.counts()).toEqual({ waiting: 3 });
      expect(await q.ids("completed")).toEqual([]);
      expect((await q.stats()).totals).toMatchObject({ submitted: 2503, completed: 2400, failed: 100 });
    },
  );

  siteCase(harness, "a sweep takes back many expired claims, over all holders", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options), { keyConcurrency: 1 });
    await q.submit(...range(0, 700).map((i) => task(`t${i}`, i % 2 === 0 ? {} : { key: `k${i}` })));
    for (const i of range(0, 7)) expect(await q.claim(`h${i}`, 100)).toHaveLength(100);
    await q.cancel("t0", "t1");
    clock.advance(LEASE_MS);
    expect(await q.sweep()).toEqual({ reclaimed: 700, expired: 0, forgotten: 0 });
    expect(await q.counts()).toEqual({ waiting: 698, cancelled: 2 });
    expect((await q.stats()).totals).toMatchObject({ crashed: 700 });
    expect(await q.claim("h", 1000)).toHaveLength(698);
  });
}
