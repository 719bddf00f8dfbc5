import { expect } from "vitest";
import type { TaskState } from "../../protocol/task.ts";
import { HandClock, range, siteCase, type StoreHarness } from "./harness.ts";
import { completed, declaredQueue, ended, failed, type Queue, task, tasks } from "./queue-driver.ts";

const names = (letter: string, n: number) => range(0, n).map((i) => `${letter}${i}`);

export function queueListing(harness: StoreHarness): void {
  siteCase(harness, "pages of each state, in their order, over cursors", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options));
    const step = async (
      ids: string[],
      end: (claim: { id: string; token: string }) => Parameters<Queue["settle"]>[0],
    ) => {
      for (const id of ids) {
        await q.submit(task(id, { key: id }));
        await q.settle(end(await q.claimOne("h")));
        clock.advance(5);
      }
    };
    await step(names("c", 23), (claim) => completed(claim, "1"));
    await step(names("f", 23), (claim) => failed(claim, { final: true }));
    await step(names("s", 23), (claim) => ended(claim, "cancelled"));
    for (const id of names("a", 23)) {
      await q.submit(task(id));
      await q.claimOne("h");
      clock.advance(5);
    }
    const delays = range(0, 23).map((i) => 1000 + ((i * 7) % 23) * 100);
    await q.submit(...delays.map((delayMs, i) => task(`d${i}`, { delayMs })));
    await q.submit(
      ...range(0, 23).map((i) => task(`w${i}`, { priority: i % 3, ...(i % 2 ? { key: `k${i % 5}` } : {}) })),
    );
    const expected: Record<TaskState, string[]> = {
      completed: names("c", 23).toReversed(),
      failed: names("f", 23).toReversed(),
      cancelled: names("s", 23).toReversed(),
      active: names("a", 23),
      scheduled: names("d", 23).toSorted((a, b) => (delays[+a.slice(1)] ?? 0) - (delays[+b.slice(1)] ?? 0)),
      waiting: names("w", 23).toSorted(),
    };
    for (const state of Object.keys(expected) as TaskState[])
      for (const n of [1, 5, 23, 100]) {
        const ids = await q.ids(state, n);
        const got = state === "waiting" ? ids.toSorted() : ids;
        expect({ state, n, got }).toEqual({ state, n, got: expected[state] });
        const page = await q.store.queues.page({ queue: "q", state, n });
        expect(page.tasks).toHaveLength(Math.min(n, 23));
        expect(page.tasks.every((record) => record.state === state)).toBe(true);
        expect(page.tasks[0]).toEqual(await q.get(page.tasks[0]?.id ?? ""));
        if (n === 100) expect(page.next).toBeUndefined();
      }
  });

  siteCase(harness, "pages of many tasks that share one time", async ({ open }) => {
    const q = await declaredQueue(await open(new HandClock().options));
    await q.submit(...tasks(names("d", 60), { delayMs: 500 }), ...tasks(names("w", 120)));
    const claims = await q.claim("h", 90);
    await q.settle(...claims.slice(0, 60).map((claim) => completed(claim)));
    for (const [state, n] of [
      ["scheduled", 60],
      ["active", 30],
      ["waiting", 30],
      ["completed", 60],
    ] as const) {
      const ids = await q.ids(state, 7);
      expect({ state, ids: ids.length, distinct: new Set(ids).size }).toEqual({ state, ids: n, distinct: n });
    }
  });

  siteCase(harness, "what does not change is on exactly one page, whatever else does", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options));
    for (const id of names("t", 30)) {
      await q.submit(task(id));
      await q.settle(failed(await q.claimOne("h"), { final: true }));
      clock.advance(1);
    }
    const seen: string[] = [];
    let cursor: string | undefined;
    for (let i = 0; ; i++) {
      const more = cursor === undefined ? {} : { cursor };
      const page = await q.store.queues.page({ queue: "q", state: "failed", n: 4, ...more });
      seen.push(...page.tasks.map(({ id }) => id));
      if (page.next === undefined) break;
      cursor = page.next;
      // One that was seen goes, one that was not goes, and a new one comes at the head; the cursor's own task goes too.
      await q.retry(seen.at(-1) ?? "", `t${i}`);
      await q.submit(task(`new${i}`, { priority: 5 }));
      await q.settle(failed(await q.claimOne("h"), { final: true }));
      clock.advance(1);
    }
    expect(new Set(seen).size).toBe(seen.length);
    const still = (await q.ids("failed")).filter((id) => id.startsWith("t"));
    expect(still.length).toBeGreaterThan(10);
    expect(seen).toEqual(expect.arrayContaining(still));
  });

  siteCase(harness, "cancel: at once what is not active, by request what is", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options), { keyConcurrency: 1 });
    await q.submit(task("active"), task("waiting", { priority: -1 }), task("later", { delayMs: 1e6 }));
    await q.submit(task("done", { priority: 9 }), task("dead", { priority: 8 }));
    const [done, dead, active] = await q.claim("h", 3);
    if (!done || !dead || !active) throw new Error("three were there");
    await q.settle(completed(done), failed(dead, { final: true }));
    clock.advance(10);
    const ids = ["waiting", "later", "active", "done", "dead", "nobody", "waiting", "active"];
    const answers = [
      "cancelled",
      "cancelled",
      "cancelling",
      "finished",
      "finished",
      "unknown",
      "cancelled",
      "cancelling",
    ];
    expect(await q.cancel(...ids)).toEqual(answers);
    expect(await q.cancel(...ids)).toEqual(answers);
    for (const id of ["waiting", "later"])
      expect(await q.get(id)).toMatchObject({ state: "cancelled", reason: null, finishedAt: clock.ms });
    expect(await q.get("active")).toMatchObject({ state: "active", cancelling: true, finishedAt: null });
    expect(await q.keep("h")).toEqual([[{ id: "active", token: active.token, cancelling: true }]]);
    expect(await q.turn("h", 9)).toMatchObject({ tasks: [], ready: 0, nextDueAt: null });
    expect((await q.stats()).totals).toMatchObject({ cancelled: 2 });
    expect(await q.cancel()).toEqual([]);
  });

  siteCase(
    harness,
    "a task that was asked to be cancelled is, whatever ends its claim but success",
    async ({ open }) => {
      const clock = new HandClock();
      const q = await declaredQueue(await open(clock.options), { crashLimit: 1 });
      const ids = ["fail", "final", "crash", "cut", "back", "stop", "done", "lost", "died"];
      await q.submit(...tasks(ids));
      const claims = await q.claim("h", 7);
      const [fail, final, crash, cut, back, stop, done] = claims;
      if (!fail || !final || !crash || !cut || !back || !stop || !done) throw new Error("seven were there");
      await q.claim("h2", 2);
      expect(await q.cancel(...ids)).toEqual(ids.map(() => "cancelling"));
      const settlements = [
        failed(fail, { retryInMs: 100 }),
        failed(final, { final: true }),
        { ...crash, outcome: "crashed" as const, error: "x" },
        ended(cut, "interrupted"),
        ended(back, "returned"),
        ended(stop, "cancelled"),
        completed(done, "1"),
      ];
      expect(await q.settle(...settlements)).toEqual(settlements.map(() => "settled"));
      expect(await q.lose(["h2"], ["died"])).toEqual({ crashed: 1, interrupted: 1 });
      for (const id of ids.filter((one) => one !== "done"))
        expect(await q.get(id)).toMatchObject({ id, state: "cancelled", reason: null, cancelling: false });
      expect(await q.get("done")).toMatchObject({ state: "completed", result: "1" });
      expect(await q.get("fail")).toMatchObject({ attempts: 1 });
      expect(await q.get("died")).toMatchObject({ crashes: 1 });
      expect(await q.get("cut")).toMatchObject({ interruptions: 1 });
      await q.submit(task("slow"));
      await q.claimOne("h");
      await q.cancel("slow");
      clock.advance(1e6);
      await q.sweep();
      expect(await q.get("slow")).toMatchObject({ state: "cancelled", crashes: 1 });
      expect((await q.stats()).totals).toMatchObject({
        cancelled: 9,
        completed: 1,
        failed: 0,
        retried: 0,
        crashed: 3,
        interrupted: 2,
      });
    },
  );

  siteCase(harness, "retry puts failed and cancelled tasks back with a clean sheet", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options), { crashLimit: 2 });
    const more = { maxAttempts: 1, key: "k", priority: 3, payload: "[1]" };
    await q.submit(task("a", more), task("w"), task("d", { delayMs: 1e6 }), task("c", { priority: -9 }));
    await q.lose(["h"], await q.claimIds("h", 1));
    await q.lose(["h"], (await q.claimIds("h", 1)).slice(1));
    await q.settle(failed(await q.claimOne("h"), { reason: "timeout", error: "slow" }));
    expect(await q.get("a")).toMatchObject({ state: "failed", attempts: 1, crashes: 1, interruptions: 1 });
    const w = await q.claimOne("h");
    await q.settle(completed(w));
    await q.cancel("c");
    clock.advance(50);
    expect(await q.retry("a", "w", "d", "c", "nobody", "a")).toEqual([
      "waiting",
      "completed",
      "not-finished",
      "waiting",
      "unknown",
      "not-finished",
    ]);
    expect(await q.get("a")).toMatchObject({
      state: "waiting",
      attempts: 0,
      crashes: 0,
      interruptions: 0,
      reason: null,
      finishedAt: null,
      key: "k",
      priority: 3,
      payload: "[1]",
      maxAttempts: 1,
      dueAt: clock.ms,
      leaseUntil: null,
      startedAt: null,
      worker: null,
      error: null,
    });
    const claims = await q.claim("h", 9);
    expect(claims).toMatchObject([{ id: "a", attempts: 0, crashes: 0, interruptions: 0 }, { id: "c" }]);
    expect(await q.retry("a")).toEqual(["not-finished"]);
    await q.settle(...claims.map((claim) => completed(claim)));
    // Totals only grow: what failed has failed.
    expect((await q.stats()).totals).toMatchObject({ submitted: 4, completed: 3, failed: 1, cancelled: 1 });
    expect(await q.counts()).toEqual({ completed: 3, scheduled: 1 });
    expect(await q.ids("failed")).toEqual([]);
  });

  siteCase(harness, "the oldest of the waiting is told, by its submission", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options));
    const oldest = async () => (await q.stats()).oldestWaitingAt;
    const born = clock.ms;
    expect(await oldest()).toBeNull();
    await q.submit(task("d", { delayMs: 100 }));
    expect(await oldest()).toBeNull();
    clock.advance(10);
    await q.submit(task("b", { key: "k" }));
    clock.advance(10);
    await q.submit(task("c", { priority: 9 }));
    expect(await oldest()).toBe(born + 10);
    expect(await q.claimIds("h", 1)).toEqual(["c"]);
    expect(await oldest()).toBe(born + 10);
    const b = await q.claimOne("h");
    expect(await oldest()).toBeNull();
    clock.advance(80);
    await q.sweep();
    expect(await oldest()).toBe(born);
    await q.cancel("d");
    await q.settle(ended(b, "interrupted"));
    expect(await oldest()).toBe(born + 10);
  });
}
