import { expect } from "vitest";
import { HandClock, range, siteCase, type StoreHarness, until } from "./harness.ts";
import {
  completed,
  crashed,
  declaredQueue,
  ended,
  failed,
  LEASE_MS,
  type Queue,
  task,
  tasks,
} from "./queue-driver.ts";

const DAY = 86_400_000;

export function queueTime(harness: StoreHarness): void {
  siteCase(harness, "a delayed task is claimed when it is due and not before", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options));
    const born = clock.ms;
    const runAt = born + 200 * DAY;
    await q.submit(
      task("months", { runAt }),
      task("past", { runAt: born - 5000, delayMs: 77 }),
      task("soon", { delayMs: 250 }),
      task("tomorrow", { delayMs: DAY }),
    );
    expect(await q.counts()).toEqual({ scheduled: 3, waiting: 1 });
    expect(await q.get("past")).toMatchObject({ state: "waiting", dueAt: born, submittedAt: born });
    expect(await q.get("months")).toMatchObject({ state: "scheduled", dueAt: runAt, submittedAt: born });
    for (const [due, id, next] of [
      [born, "past", born + 250],
      [born + 250, "soon", born + DAY],
      [born + DAY, "tomorrow", runAt],
      [runAt, "months", null],
    ] as const) {
      clock.ms = due - 1;
      if (due > born) expect(await q.turn("h", 9)).toMatchObject({ tasks: [], ready: 0, nextDueAt: due });
      clock.ms = due;
      const { tasks: claims, nextDueAt } = await q.turn("h", 9);
      expect([claims.map((claim) => claim.id), nextDueAt]).toEqual([[id], next]);
      await q.settle(...claims.map((claim) => completed(claim)));
    }
  });

  siteCase(
    harness,
    "keep tells of tasks that have come due, so that somebody claims them",
    async ({ open }) => {
      const clock = new HandClock();
      const store = await open(clock.options);
      const q = await declaredQueue(store, { concurrency: 2 });
      const keep = () => store.queues.keep({ queue: "q", holders: ["h"], leaseMs: LEASE_MS });
      expect(await keep()).toMatchObject({ ready: 0, nextDueAt: null });
      await q.submit(task("later", { delayMs: 500 }));
      expect(await keep()).toMatchObject({ held: [[]], ready: 0, nextDueAt: clock.ms + 500 });
      clock.advance(500);
      const due = await keep();
      expect(due.ready > 0 || (due.nextDueAt !== null && due.nextDueAt <= clock.ms)).toBe(true);
      await q.sweep();
      expect(await keep()).toMatchObject({ ready: 1, nextDueAt: null });
      await q.submit(...tasks(["a", "b"]));
      const { ready } = await keep();
      expect(ready).toBeGreaterThan(0);
      expect(ready).toBeLessThanOrEqual(2);
      expect(await q.claim("h", 5)).toHaveLength(2);
      expect(await keep()).toMatchObject({ ready: 0 });
    },
  );

  siteCase(harness, "many tasks that come due at once are all claimed, in order", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options));
    const ids = range(0, 3000).map((i) => `t${String(i).padStart(4, "0")}`);
    await q.submit(...tasks(ids, { delayMs: 1000 }));
    clock.advance(1000);
    const got: string[] = [];
    for (;;) {
      const turn = await q.turn("h", 700);
      got.push(...turn.tasks.map(({ id }) => id));
      if (turn.ready === 0 && (turn.nextDueAt === null || turn.nextDueAt > clock.ms)) break;
    }
    expect(got).toEqual(ids);
  });

  siteCase(harness, "a failed attempt waits out its pause", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options));
    await q.submit(task("a", { maxAttempts: 3 }));
    await q.settle(failed(await q.claimOne("h"), { retryInMs: 5000 }));
    const dueAt = clock.ms + 5000;
    expect(await q.get("a")).toMatchObject({ state: "scheduled", dueAt });
    clock.ms = dueAt - 1;
    expect(await q.turn("h", 1)).toMatchObject({ tasks: [], nextDueAt: dueAt });
    clock.ms = dueAt;
    expect(await q.claimOne("h")).toMatchObject({ id: "a", attempts: 1 });
  });

  siteCase(harness, "an expired lease is a crash, and so many of them are poison", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options), { crashLimit: 3 });
    await q.submit(task("a", { maxAttempts: 1 }), task("b"));
    for (const crashes of range(0, 3)) {
      expect(await q.claimOne(`h${crashes}`)).toMatchObject({ id: "a", crashes, attempts: 0 });
      clock.advance(LEASE_MS - 1);
      expect(await q.sweep()).toMatchObject({ reclaimed: 0 });
      clock.advance(1);
      if (crashes === 1) expect(await q.sweep()).toMatchObject({ reclaimed: 1 });
    }
    // The third claim is taken back by whoever claims next, who gets the other task.
    expect(await q.claimIds("h", 5)).toEqual(["b"]);
    const expected = { state: "failed", reason: "poison", crashes: 3, attempts: 0, finishedAt: clock.ms };
    expect(await q.get("a")).toMatchObject(expected);
    expect((await q.get("a")).error).toEqual(expect.any(String));
    const { totals, reasons } = await q.stats();
    expect(totals).toMatchObject({ crashed: 3, failed: 1, interrupted: 0 });
    expect(reasons).toEqual({ poison: 1 });
  });

  siteCase(harness, "crashes of all kinds add up; interruptions never do", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options), { crashLimit: 3 });
    await q.submit(task("a"));
    const ways: ((q: Queue, claim: { id: string; token: string }) => Promise<unknown>)[] = [
      (q) => q.lose(["h"]),
      (q) => q.lose(["h"], ["a"]),
      (q, claim) => q.settle(ended(claim, "interrupted")),
      (q, claim) => q.settle(crashed(claim, "settled")),
      (q) => q.lose(["h"]),
    ];
    for (const way of ways) await way(q, await q.claimOne("h"));
    expect(await q.get("a")).toMatchObject({
      state: "waiting",
      crashes: 2,
      interruptions: 3,
      error: "settled",
    });
    await q.claimOne("h");
    expect(await q.lose(["h"], ["a"])).toEqual({ crashed: 1, interrupted: 0 });
    expect(await q.get("a")).toMatchObject({ state: "failed", reason: "poison", error: "process died" });
  });

  siteCase(harness, "lose names those who are gone, and which tasks they died of", async ({ open }) => {
    const q = await declaredQueue(await open());
    await q.submit(...tasks(["a", "b", "c", "d", "e"]));
    await q.claim("h1", 2);
    await q.claim("h2", 2);
    await q.claim("h3", 1);
    // Only what a lost holder has can have crashed: `e` is held by another.
    expect(await q.lose(["h1", "h2", "nobody"], ["b", "e", "x"])).toEqual({ crashed: 1, interrupted: 3 });
    expect(await q.lose(["h1", "h2"], ["b"])).toEqual({ crashed: 0, interrupted: 0 });
    expect(await q.get("b")).toMatchObject({
      state: "waiting",
      crashes: 1,
      interruptions: 0,
      error: "process died",
    });
    for (const id of ["a", "c", "d"])
      expect(await q.get(id)).toMatchObject({ state: "waiting", crashes: 0, interruptions: 1, error: null });
    expect(await q.get("e")).toMatchObject({ state: "active", crashes: 0, worker: "w-h3" });
    expect(await q.claimIds("h4", 9)).toEqual(["a", "b", "c", "d"]);
  });

  siteCase(harness, "keep renews claims by holder and tells what each holds", async ({ open }) => {
    const clock = new HandClock();
    const store = await open(clock.options);
    const q = await declaredQueue(store);
    await q.submit(...tasks(["a", "b", "c"]));
    const [a, b] = await q.claim("h1", 2);
    const c = await q.claimOne("h2");
    clock.advance(LEASE_MS - 1);
    const kept = await store.queues.keep({ queue: "q", holders: ["h2", "h1", "h9"], leaseMs: 2 * LEASE_MS });
    expect(kept.held.map((one) => one.toSorted((x, y) => (x.id < y.id ? -1 : 1)))).toEqual([
      [{ id: "c", token: c.token, cancelling: false }],
      [
        { id: "a", token: a?.token, cancelling: false },
        { id: "b", token: b?.token, cancelling: false },
      ],
      [],
    ]);
    expect(BigInt(kept.at)).toBeGreaterThan(BigInt(c.token));
    expect((await q.get("a")).leaseUntil).toBe(clock.ms + 2 * LEASE_MS);
    await q.submit(task("d"));
    const d = await q.claimOne("h9");
    expect(BigInt(d.token)).toBeGreaterThanOrEqual(BigInt(kept.at));
    clock.advance(LEASE_MS);
    expect(await q.claim("h3", 9)).toMatchObject([{ id: "d", crashes: 1 }]);
    await q.cancel("a");
    if (a && b) await q.settle(completed(b));
    expect(await q.keep("h1", "h9")).toEqual([[{ id: "a", token: a?.token, cancelling: true }], []]);
    clock.advance(LEASE_MS);
    expect(await q.claimIds("h3", 9)).toEqual(["c", "d"]);
    expect(await q.keep("h2")).toEqual([[]]);
    expect(await q.state("a")).toBe("cancelled");
  });

  siteCase(harness, "keep takes back what the leases of others have left", async (site) => {
    const clock = new HandClock();
    const [store, other] = await Promise.all([site.open(clock.options), site.open(clock.options)]);
    const q = await declaredQueue(store, { crashLimit: 2 });
    let hints = 0;
    const watch = other.queues.watch({ queue: "q" }, { onReady: () => hints++ });
    await watch.ready;
    const keep = () => store.queues.keep({ queue: "q", holders: ["idle"], leaseMs: LEASE_MS });
    await q.submit(...tasks(["a", "b", "c"]));
    await q.claim("lost", 2);
    await q.claim("idle", 1);
    clock.advance(LEASE_MS - 1);
    expect(await keep()).toMatchObject({ ready: 0 });
    expect(await q.counts()).toEqual({ active: 3 });
    hints = 0;
    clock.advance(1);
    // Also where it holds nothing itself.
    expect(await store.queues.keep({ queue: "q", holders: [], leaseMs: LEASE_MS })).toMatchObject({
      ready: 2,
    });
    await until("the others hear of it", () => hints > 0);
    expect(await q.counts()).toEqual({ active: 1, waiting: 2 });
    expect(await q.get("a")).toMatchObject({ state: "waiting", crashes: 1, error: expect.any(String) });
    // Its own claims are renewed first, also where they had ended.
    await q.claim("lost", 2);
    clock.advance(2 * LEASE_MS);
    const kept = await keep();
    expect(kept.held).toMatchObject([[{ id: "c" }]]);
    expect(kept.ready).toBe(0);
    expect(await q.counts()).toEqual({ active: 1, failed: 2 });
    expect((await q.stats()).reasons).toEqual({ poison: 2 });
    await watch.close();
  });
}
