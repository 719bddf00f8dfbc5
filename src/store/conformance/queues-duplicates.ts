import { expect } from "vitest";
import type { NewTask, OnDuplicate } from "../../protocol/task.ts";
import { HandClock, range, siteCase, type StoreHarness } from "./harness.ts";
import { completed, declaredQueue, ended, failed, type Queue, task } from "./queue-driver.ts";

export const WINDOW_MS = 1000;

/** A task that bears the key `d`. */
export function twin(id: string, onDuplicate: OnDuplicate, more: Partial<NewTask> = {}): NewTask {
  return task(id, { dedupe: { key: "d", onDuplicate, windowMs: WINDOW_MS }, ...more });
}

const totals = async (q: Queue) => {
  const { submitted, duplicates, cancelled } = (await q.stats()).totals;
  return { submitted, duplicates, cancelled };
};

export function queueDuplicates(harness: StoreHarness): void {
  siteCase(harness, "the same id is the same task, in whatever state it is", async ({ open }) => {
    const q = await declaredQueue(await open());
    expect(await q.submit(task("a"), task("a", { payload: "2" }), task("b"))).toEqual([
      "submitted",
      "repeated",
      "submitted",
    ]);
    const a = await q.claimOne("h");
    expect(await q.submit(task("a", { payload: "3" }))).toEqual(["repeated"]);
    await q.settle(completed(a));
    expect(await q.submitted(task("a", { delayMs: 5 }))).toEqual([{ id: "a", outcome: "repeated" }]);
    expect(await q.get("a")).toMatchObject({ state: "completed", payload: task("a").payload });
    expect(await totals(q)).toEqual({ submitted: 2, duplicates: 0, cancelled: 0 });
    // The id comes before all else: a repeat cancels and replaces nothing.
    await q.submit(twin("c", "supersede"), twin("d", "supersede"));
    expect(await q.submit(twin("c", "supersede"), twin("d", "replace"))).toEqual(["repeated", "repeated"]);
    expect(await q.state("d")).toBe("waiting");
  });

  siteCase(harness, "ignore: nothing is written while the first is unfinished", async ({ open }) => {
    const q = await declaredQueue(await open());
    expect(await q.submit(twin("a", "ignore"))).toEqual(["submitted"]);
    const ignored = [{ id: "a", outcome: "ignored" }];
    expect(await q.submitted(twin("b", "ignore"))).toEqual(ignored);
    expect((await q.get("a")).dedupeKey).toBe("d");
    await q.settle(failed(await q.claimOne("h"), { retryInMs: 60_000 }));
    expect(await q.submitted(twin("b", "ignore"))).toEqual(ignored);
    await q.cancel("a");
    expect(await q.submit(twin("b", "ignore"))).toEqual(["submitted"]);
    const b = await q.claimOne("h");
    expect(await q.submitted(twin("c", "ignore"))).toEqual([{ id: "b", outcome: "ignored" }]);
    await q.settle(completed(b));
    expect(await q.submit(twin("c", "ignore"), twin("e", "ignore"))).toEqual(["submitted", "ignored"]);
    expect(await q.state("e")).toBeUndefined();
    expect(await totals(q)).toEqual({ submitted: 3, duplicates: 4, cancelled: 1 });
    // Other keys are others, and who bears none is nobody's duplicate.
    const other = task("f", { dedupe: { key: "D", onDuplicate: "ignore", windowMs: 0 } });
    expect(await q.submit(other, task("g"), task("i", { key: "d" }))).toEqual(Array(3).fill("submitted"));
  });

  siteCase(harness, "throttle: also not within the window, finished or not", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options));
    expect(await q.submit(twin("a", "throttle"))).toEqual(["submitted"]);
    await q.settle(completed(await q.claimOne("h")));
    expect(await q.submitted(twin("b", "throttle"))).toEqual([{ id: "a", outcome: "ignored" }]);
    clock.advance(WINDOW_MS - 1);
    expect(await q.submit(twin("b", "throttle"))).toEqual(["ignored"]);
    clock.advance(1);
    expect(await q.submit(twin("b", "throttle"))).toEqual(["submitted"]);
    // What was ignored began no window; an unfinished task needs none.
    clock.advance(5 * WINDOW_MS);
    expect(await q.submitted(twin("c", "throttle"))).toEqual([{ id: "b", outcome: "ignored" }]);
    await q.settle(completed(await q.claimOne("h")));
    expect(await q.submit(twin("c", "throttle"))).toEqual(["submitted"]);
    await q.cancel("c");
    expect(await q.submit(twin("e", "throttle"))).toEqual(["ignored"]);
    expect(await totals(q)).toEqual({ submitted: 3, duplicates: 4, cancelled: 1 });
  });

  siteCase(
    harness,
    "replace: the waiting task gets the payload and options, and keeps its place",
    async ({ open }) => {
      const clock = new HandClock();
      const q = await declaredQueue(await open(clock.options));
      const submittedAt = clock.ms;
      await q.submit(task("before"), twin("a", "replace", { ttlMs: 5000 }), task("after"));
      await q.settle(ended(await q.claimOne("h"), "returned"));
      clock.advance(10);
      const more = { payload: "[2]", maxAttempts: 2, timeoutMs: 9, ttlMs: 700 };
      expect(await q.submitted(twin("b", "replace", more))).toEqual([{ id: "a", outcome: "replaced" }]);
      expect(await q.get("a")).toMatchObject({
        id: "a",
        state: "waiting",
        payload: "[2]",
        maxAttempts: 2,
        timeoutMs: 9,
        submittedAt,
        dueAt: clock.ms,
        expiresAt: clock.ms + 700,
        dedupeKey: "d",
      });
      expect(await q.state("b")).toBeUndefined();
      const claims = await q.claim("h", 9);
      expect(claims.map(({ id, payload }) => [id, payload])).toEqual([
        ["before", task("before").payload],
        ["a", "[2]"],
        ["after", task("after").payload],
      ]);
      expect(await totals(q)).toEqual({ submitted: 3, duplicates: 1, cancelled: 0 });
    },
  );

  siteCase(
    harness,
    "replace: counters begin anew; priority, key and delay are the new ones",
    async ({ open }) => {
      const clock = new HandClock();
      const q = await declaredQueue(await open(clock.options), { keyConcurrency: 1 });
      await q.submit(twin("a", "replace", { key: "k", maxAttempts: 3 }), task("x", { key: "k" }), task("y"));
      for (const _ of range(0, 2)) await q.settle(failed((await q.claim("h", 1))[0] ?? never()));
      await q.lose(["h"]);
      const first = await q.get("a");
      expect(first.attempts + (await q.get("y")).attempts).toBeGreaterThan(0);
      expect(await q.submit(twin("b", "replace", { key: "l", priority: 5, delayMs: 300 }))).toEqual([
        "replaced",
      ]);
      expect(await q.get("a")).toMatchObject({
        state: "scheduled",
        attempts: 0,
        crashes: 0,
        interruptions: 0,
        key: "l",
        priority: 5,
        dueAt: clock.ms + 300,
        submittedAt: first.submittedAt,
        maxAttempts: 5,
      });
      // Its old place in the old key is gone.
      expect((await q.claimIds("h", 9)).toSorted()).toEqual(["x", "y"]);
      clock.advance(300);
      expect(await q.claimIds("h", 9)).toEqual(["a"]);
      // And back from scheduled to waiting.
      await q.submit(twin("c", "replace", { key: "m", delayMs: 1e9 }));
      expect(await q.submitted(twin("e", "replace", { key: "m" }))).toEqual([
        { id: "c", outcome: "replaced" },
      ]);
      expect(await q.claimIds("h", 9)).toEqual(["c"]);
    },
  );

  siteCase(
    harness,
    "replace: where the first is active a further one is submitted, and that bears the key",
    async (site) => {
      const q = await declaredQueue(await site.open());
      await q.submit(twin("a", "replace"));
      const a = await q.claimOne("h");
      expect(await q.submitted(twin("b", "replace"))).toEqual([{ id: "b", outcome: "submitted" }]);
      expect(await q.submitted(twin("c", "replace"))).toEqual([{ id: "b", outcome: "replaced" }]);
      expect(await q.submitted(twin("e", "ignore"))).toEqual([{ id: "b", outcome: "ignored" }]);
      await q.settle(failed(a));
      expect(await q.submitted(twin("c", "replace"))).toEqual([{ id: "b", outcome: "replaced" }]);
      await q.cancel("b");
      // The key belonged to the one submitted last, which has ended.
      expect(await q.submitted(twin("f", "ignore"))).toEqual([{ id: "f", outcome: "submitted" }]);
      expect(await q.counts()).toEqual({ waiting: 2, cancelled: 1 });
    },
  );

  siteCase(harness, "debounce: due a window after the last submission", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options));
    expect(await q.submit(twin("a", "debounce", { payload: "1", delayMs: 99_000 }))).toEqual(["submitted"]);
    expect(await q.get("a")).toMatchObject({ state: "scheduled", dueAt: clock.ms + WINDOW_MS });
    clock.advance(WINDOW_MS - 1);
    expect(await q.submitted(twin("b", "debounce", { payload: "2" }))).toEqual([
      { id: "a", outcome: "replaced" },
    ]);
    clock.advance(WINDOW_MS - 1);
    expect(await q.claim("h", 9)).toEqual([]);
    clock.advance(1);
    expect(await q.claim("h", 9)).toMatchObject([{ id: "a", payload: "2" }]);
    const dueAt = clock.ms + WINDOW_MS;
    expect(await q.submitted(twin("c", "debounce"))).toEqual([{ id: "c", outcome: "submitted" }]);
    expect(await q.get("c")).toMatchObject({ state: "scheduled", dueAt });
    expect(await q.counts()).toEqual({ scheduled: 1, active: 1 });
  });

  siteCase(
    harness,
    "supersede: the first is cancelled, or asked to be, and the new one goes its way",
    async ({ open }) => {
      const q = await declaredQueue(await open());
      await q.submit(twin("a", "supersede"), task("x"));
      expect(await q.submitted(twin("b", "supersede"))).toEqual([{ id: "b", outcome: "submitted" }]);
      expect(await q.get("a")).toMatchObject({
        state: "cancelled",
        finishedAt: expect.any(Number) as number,
      });
      expect((await q.claimIds("h", 1))[0]).toBe("x");
      const b = await q.claimOne("h");
      expect(await q.submit(twin("c", "supersede"))).toEqual(["submitted"]);
      expect(await q.get("b")).toMatchObject({ state: "active", cancelling: true });
      expect(await q.submitted(twin("e", "ignore"))).toEqual([{ id: "c", outcome: "ignored" }]);
      await q.settle(failed(b));
      expect(await q.counts()).toEqual({ waiting: 1, active: 1, cancelled: 2 });
      expect(await q.claimIds("h", 9)).toEqual(["c"]);
      expect(await totals(q)).toEqual({ submitted: 4, duplicates: 1, cancelled: 2 });
    },
  );
}

function never(): never {
  throw new Error("there was nothing to claim");
}
