import { expect } from "vitest";
import type { Settlement } from "../../protocol/task.ts";
import { HandClock, range, siteCase, type StoreHarness } from "./harness.ts";
import {
  completed,
  crashed,
  declaredQueue,
  ended,
  failed,
  LEASE_MS,
  Queue,
  SETTINGS,
  task,
  tasks,
} from "./queue-driver.ts";

export function queueLife(harness: StoreHarness): void {
  siteCase(harness, "a task is submitted, claimed and completed", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options));
    const payload = '{"url":"https://example.org"}';
    const more = {
      payload,
      key: "k",
      priority: 7,
      maxAttempts: 4,
      timeoutMs: 60_000,
      ttlMs: 5000,
      print: "f00",
    };
    const submittedAt = clock.ms;
    expect(await q.submitted(task("a", more))).toEqual([{ id: "a", outcome: "submitted" }]);
    const fresh = {
      id: "a",
      queue: "q",
      state: "waiting",
      payload,
      result: null,
      reason: null,
      error: null,
      priority: 7,
      key: "k",
      dedupeKey: null,
      attempts: 0,
      crashes: 0,
      interruptions: 0,
      maxAttempts: 4,
      timeoutMs: 60_000,
      submittedAt,
      dueAt: submittedAt,
      expiresAt: submittedAt + 5000,
      startedAt: null,
      finishedAt: null,
      worker: null,
      leaseUntil: null,
      cancelling: false,
      tick: null,
      print: "f00",
    };
    expect(await q.get("a")).toEqual(fresh);
    clock.advance(1000);
    const { tasks: claims, ...rest } = await q.turn("h1", 5);
    expect(rest).toEqual({ settled: [], now: clock.ms, ready: 0, nextDueAt: null });
    expect(claims).toEqual([
      {
        id: "a",
        payload,
        token: claims[0]?.token,
        attempts: 0,
        crashes: 0,
        interruptions: 0,
        maxAttempts: 4,
        timeoutMs: 60_000,
        key: "k",
        submittedAt,
        tick: null,
      },
    ]);
    const claim = claims[0] as (typeof claims)[0];
    expect(claim.token).toMatch(/^\d{16,}$/);
    const startedAt = clock.ms;
    const running = { state: "active", startedAt, worker: "w-h1", leaseUntil: startedAt + LEASE_MS };
    expect(await q.get("a")).toMatchObject(running);
    clock.advance(2000);
    expect(await q.settle(completed(claim, '{"ok":true}'))).toEqual(["settled"]);
    const { expiresAt: _, ...record } = await q.get("a");
    const { expiresAt: __, ...expected } = fresh;
    expect(record).toEqual({
      ...expected,
      state: "completed",
      result: '{"ok":true}',
      attempts: 1,
      startedAt,
      finishedAt: clock.ms,
      worker: "w-h1",
    });
    expect(await q.claim("h1", 5)).toEqual([]);
  });

  siteCase(harness, "each outcome of a claim leads where it should, and counts what it is", async (site) => {
    const clock = new HandClock();
    const q = await declaredQueue(await site.open(clock.options));
    const outcomes: [string, (claim: { id: string; token: string }) => Settlement, object][] = [
      ["done", (c) => completed(c), { state: "completed", attempts: 1, result: null }],
      ["again", (c) => failed(c), { state: "waiting", attempts: 1, error: "boom", finishedAt: null }],
      [
        "later",
        (c) => failed(c, { retryInMs: 500 }),
        { state: "scheduled", attempts: 1, dueAt: clock.ms + 500 },
      ],
      ["final", (c) => failed(c, { final: true }), { state: "failed", reason: "error", error: "boom" }],
      ["fatal", (c) => failed(c, { final: true, reason: "fatal" }), { state: "failed", reason: "fatal" }],
      ["wrong", (c) => failed(c, { final: true, reason: "invalid" }), { state: "failed", reason: "invalid" }],
      ["slow", (c) => failed(c, { final: true, reason: "timeout" }), { state: "failed", reason: "timeout" }],
      ["stop", (c) => ended(c, "cancelled"), { state: "cancelled", attempts: 0, finishedAt: clock.ms }],
      ["cut", (c) => ended(c, "interrupted"), { state: "waiting", attempts: 0, interruptions: 1 }],
      ["back", (c) => ended(c, "returned"), { state: "waiting", attempts: 0, crashes: 0, interruptions: 0 }],
      ["dead", (c) => crashed(c, "SIGSEGV"), { state: "waiting", attempts: 0, crashes: 1, error: "SIGSEGV" }],
    ];
    const names = outcomes.map(([name]) => name);
    await q.submit(...tasks(names));
    const claims = await q.claim("h", 20);
    expect(claims.map(({ id }) => id)).toEqual(names);
    const settlements = claims.map((claim, i) => (outcomes[i] as (typeof outcomes)[0])[1](claim));
    expect(await q.settle(...settlements)).toEqual(names.map(() => "settled"));
    for (const [id, , expected] of outcomes) {
      expect(await q.get(id)).toMatchObject({ id, leaseUntil: null, cancelling: false, ...expected });
    }
    const { counts, totals, reasons } = await q.stats();
    expect(counts).toEqual({ scheduled: 1, waiting: 4, active: 0, completed: 1, failed: 4, cancelled: 1 });
    expect(totals).toEqual({
      submitted: 11,
      completed: 1,
      failed: 4,
      cancelled: 1,
      retried: 2,
      crashed: 1,
      interrupted: 1,
      refused: 0,
      duplicates: 0,
    });
    expect(reasons).toEqual({ error: 1, fatal: 1, invalid: 1, timeout: 1 });
    clock.advance(500);
    const next = await q.claim("h2", 20);
    expect(next.map(({ id }) => id)).toEqual(["again", "later", "cut", "back", "dead"]);
    expect(next.map(({ attempts, crashes, interruptions }) => [attempts, crashes, interruptions])).toEqual([
      [1, 0, 0],
      [1, 0, 0],
      [0, 0, 1],
      [0, 0, 0],
      [0, 1, 0],
    ]);
  });

  siteCase(harness, "attempts are spent by failures alone", async ({ open }) => {
    const q = await declaredQueue(await open());
    await q.submit(task("a", { maxAttempts: 3 }));
    for (const attempts of range(0, 2)) {
      expect(await q.claimOne("h")).toMatchObject({ attempts, interruptions: attempts });
      await q.lose(["h"]);
      const claim = await q.claimOne("h");
      expect(claim).toMatchObject({ attempts, interruptions: attempts + 1 });
      await q.settle(failed(claim, { error: `boom ${attempts}` }));
      expect(await q.state("a")).toBe("waiting");
    }
    await q.settle(failed(await q.claimOne("h"), { reason: "timeout", error: "too slow", retryInMs: 50 }));
    const expected = { state: "failed", reason: "timeout", error: "too slow", attempts: 3, interruptions: 2 };
    expect(await q.get("a")).toMatchObject(expected);
    expect((await q.stats()).totals).toMatchObject({ failed: 1, retried: 2, interrupted: 2, crashed: 0 });
  });

  siteCase(harness, "an undeclared queue takes nothing and is empty", async ({ open }) => {
    const store = await open();
    const q = new Queue(store);
    const { queues } = store;
    expect(await queues.submit({ queue: "q", lists: [[task("a")], [task("b")]] })).toEqual({
      outcome: "undeclared",
    });
    expect(await queues.stats({ queue: "q" })).toBeUndefined();
    expect(await queues.get({ queue: "q", id: "a" })).toBeUndefined();
    expect(await queues.ask({ queue: "q", id: "a" })).toBeUndefined();
    expect(await q.turn("h", 5, [completed({ id: "a", token: "17812345678901234" })])).toMatchObject({
      settled: ["lease-lost"],
      tasks: [],
      ready: 0,
      nextDueAt: null,
    });
    expect(await queues.keep({ queue: "q", holders: ["h", "i"], leaseMs: 1000 })).toMatchObject({
      held: [[], []],
      ready: 0,
      nextDueAt: null,
    });
    expect(await q.lose(["h"], ["a"])).toEqual({ crashed: 0, interrupted: 0 });
    expect(await q.cancel("a")).toEqual(["unknown"]);
    expect(await q.retry("a", "b")).toEqual(["unknown", "unknown"]);
    expect(await q.ids("waiting")).toEqual([]);
    expect(await q.sweep()).toEqual({ reclaimed: 0, expired: 0, forgotten: 0 });
    expect((await queues.schedules({ queue: "q" })).schedules).toEqual([]);
    expect(await queues.list()).toEqual([]);
    await declaredQueue(store);
    expect(await q.submit(task("a"), task("b"))).toEqual(["submitted", "submitted"]);
    expect(await q.counts()).toEqual({ waiting: 2 });
  });

  siteCase(harness, "a guest declares only while nobody has, an owner always", async ({ open }) => {
    const { queues } = await open();
    const other = { ...SETTINGS, maxLength: 5, concurrency: 2, keepCount: 7, crashLimit: 9 };
    expect(await queues.declare({ queue: "q", settings: SETTINGS, as: "guest" })).toEqual(SETTINGS);
    expect(await queues.declare({ queue: "q", settings: other, as: "guest" })).toEqual(SETTINGS);
    expect(await queues.declare({ queue: "q", settings: other, as: "owner" })).toEqual(other);
    expect((await queues.stats({ queue: "q" }))?.settings).toEqual(other);
    expect(await queues.declare({ queue: "q", settings: SETTINGS, as: "guest" })).toEqual(other);
    for (const queue of ["b", "a.b", "a", "a-b"])
      await queues.declare({ queue, settings: SETTINGS, as: "guest" });
    expect(await queues.list()).toEqual(["a", "a-b", "a.b", "b", "q"]);
  });

  siteCase(
    harness,
    "nothing is lost on the way: submitted is what is there plus what was forgotten",
    async (site) => {
      const clock = new HandClock();
      const q = await declaredQueue(await site.open(clock.options), { keepCount: 4, keepFailedCount: 2 });
      await q.submit(...range(0, 40).map((i) => task(`t${i}`, { key: `k${i % 3}`, maxAttempts: 2 })));
      let forgotten = 0;
      for (const round of range(0, 12)) {
        const claims = await q.claim("h", 6);
        const [a, b, c, d] = claims;
        clock.advance(10);
        if (a) await q.settle(completed(a));
        if (b) await q.settle(failed(b, { final: round % 2 === 0, retryInMs: 30 }));
        if (c) await q.settle(crashed(c));
        if (d) await q.cancel(d.id);
        await q.lose(["h"]);
        forgotten += (await q.sweep()).forgotten;
        const { counts, totals } = await q.stats();
        const there = Object.values(counts).reduce((sum, n) => sum + n, 0);
        expect({ round, sum: there + forgotten, submitted: totals.submitted }).toEqual({
          round,
          sum: 40,
          submitted: 40,
        });
        expect(totals.completed + totals.failed + totals.cancelled).toBe(
          counts.completed + counts.failed + counts.cancelled + forgotten,
        );
      }
      expect(forgotten).toBeGreaterThan(10);
    },
  );
}
