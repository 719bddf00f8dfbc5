// Short (`npm test`): workers in this process run tasks, on both stores.
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { defineBatch } from "../src/automation/definition-batch.ts";
import { defineContinuous } from "../src/automation/definition.ts";
import { FatalError, RetryAfter } from "../src/automation/task-errors.ts";
import { defineQueue } from "../src/contracts/queue.ts";
import { inlineWorker, KINDS } from "./support/batch-worker.ts";

const QUICK = { backoff: { baseSeconds: 0.05, capSeconds: 0.2, jitter: 0 } };
const Sum = z.object({ a: z.number(), b: z.number().default(1) });
const SUM = defineQueue("sum", { payload: Sum, result: z.number(), ...QUICK });

describe.each(KINDS)("batch automations on %s", (kind) => {
  it("answers results, with payloads parsed once by the queue's schema", async () => {
    const sum = defineBatch("sum", { tasks: SUM, runOne: ({ payload }) => payload.a + payload.b });
    const { fleet } = await inlineWorker(kind, [[sum, 3]]);
    const handles = await fleet.queue(SUM).submitMany(Array.from({ length: 200 }, (_, a) => ({ a })));
    const results = await Promise.all(handles.map((handle) => handle.result({ waitSeconds: 20 })));
    expect(results).toEqual(Array.from({ length: 200 }, (_, a) => a + 1));
    expect(await fleet.queue(SUM).get(handles[7]?.id as string)).toMatchObject({
      state: "completed",
      attempts: 1,
      crashes: 0,
      interruptions: 0,
      result: 8,
    });
  });

  it("tries a failed attempt again after the backoff, and ends in the dead letter when all have failed", async () => {
    const seen: [id: string, attempt: number, at: number][] = [];
    const queue = defineQueue("flaky", { payload: z.number(), maxAttempts: 3, ...QUICK });
    const flaky = defineBatch("flaky", {
      tasks: queue,
      runOne(task) {
        seen.push([task.id, task.attempt, performance.now()]);
        if (task.attempt <= task.payload) throw new Error(`not yet, ${task.attempt}`);
        return task.attempt;
      },
    });
    const { fleet } = await inlineWorker(kind, [[flaky, 2]]);
    const good = await fleet.queue(queue).submit(2);
    const bad = await fleet.queue(queue).submit(9);
    expect(await good.result({ waitSeconds: 10 })).toBe(3);
    await expect(bad.result({ waitSeconds: 10 })).rejects.toMatchObject({ code: "FLEET_TASK_FAILED" });
    expect(await fleet.queue(queue).get(bad.id)).toMatchObject({
      state: "failed",
      reason: "error",
      attempts: 3,
    });
    const times = seen.filter(([id]) => id === bad.id);
    expect(times.map(([, attempt]) => attempt)).toEqual([1, 2, 3]);
    expect((times[1]?.[2] ?? 0) - (times[0]?.[2] ?? 0)).toBeGreaterThanOrEqual(45);
    expect((times[2]?.[2] ?? 0) - (times[1]?.[2] ?? 0)).toBeGreaterThanOrEqual(95);
  });

  it("does not try a FatalError again, and waits as long as RetryAfter says", async () => {
    const queue = defineQueue("says", { payload: z.enum(["fatal", "later"]), ...QUICK });
    const at: number[] = [];
    const says = defineBatch("says", {
      tasks: queue,
      runOne(task) {
        if (task.payload === "fatal") throw new FatalError("no such page");
        at.push(performance.now());
        if (task.attempt === 1) throw new RetryAfter(0.6);
        return "done";
      },
    });
    const { fleet } = await inlineWorker(kind, [[says, 2]]);
    const fatal = await fleet.queue(queue).submit("fatal");
    const later = await fleet.queue(queue).submit("later");
    await expect(fatal.result({ waitSeconds: 10 })).rejects.toThrow(/no such page/);
    expect(await fleet.queue(queue).get(fatal.id)).toMatchObject({ reason: "fatal", attempts: 1 });
    expect(await later.result({ waitSeconds: 10 })).toBe("done");
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThanOrEqual(590);
  });

  it("puts what does not fit aside at once: a payload of an older version, a result of the wrong type", async () => {
    const ran: unknown[] = [];
    const wide = defineQueue("strict", { payload: z.any(), ...QUICK });
    const strict = defineBatch("strict", {
      tasks: { payload: z.object({ url: z.string() }), result: z.number(), ...QUICK },
      runOne(task) {
        ran.push(task.payload.url);
        return (task.payload.url === "bad" ? "text" : 1) as number;
      },
    });
    const { fleet } = await inlineWorker(kind, [[strict, 1]]);
    const old = await fleet.queue(wide).submit({ link: 5 });
    const bad = await fleet.queue(wide).submit({ url: "bad" });
    const good = await fleet.queue(wide).submit({ url: "good" });
    expect(await good.result({ waitSeconds: 10 })).toBe(1);
    await expect(old.result({ waitSeconds: 10 })).rejects.toThrow(/payload: url/);
    await expect(bad.result({ waitSeconds: 10 })).rejects.toThrow(/result: /);
    for (const { id } of [old, bad])
      expect(await fleet.queue(wide).get(id)).toMatchObject({
        state: "failed",
        reason: "invalid",
        attempts: 1,
      });
    expect(ran).toEqual(["bad", "good"]);
  });

  it("aborts the signal when a task has run for too long, and fails the attempt", async () => {
    const queue = defineQueue("slow", { payload: z.number(), maxAttempts: 2, timeoutSeconds: 0.3, ...QUICK });
    const reasons: unknown[] = [];
    const slow = defineBatch("slow", {
      tasks: queue,
      async runOne(task, ctx) {
        if (task.attempt > task.payload) return "in time";
        await ctx.sleep(60);
        reasons.push(ctx.signal.reason);
        return undefined;
      },
    });
    const { fleet } = await inlineWorker(kind, [[slow, 2]]);
    expect(await fleet.queue(queue).call(1, { waitSeconds: 10 })).toBe("in time");
    const never = await fleet.queue(queue).submit(9);
    await expect(never.result({ waitSeconds: 10 })).rejects.toThrow(/timeout of 0.3 s/);
    expect(await fleet.queue(queue).get(never.id)).toMatchObject({
      reason: "timeout",
      attempts: 2,
      crashes: 0,
    });
    expect(reasons).toEqual(["timeout", "timeout", "timeout"]);
  });

  it("gives up a task whose code goes on after its timeout, and runs the next ones", async () => {
    const queue = defineQueue("deaf", { payload: z.number(), maxAttempts: 1, timeoutSeconds: 0.3 });
    const deaf = defineBatch("deaf", {
      tasks: queue,
      runOne: (task) => (task.payload === 0 ? new Promise<never>(() => undefined) : task.payload),
    });
    const { fleet } = await inlineWorker(kind, [[deaf, 1]]);
    const hung = await fleet.queue(queue).submit(0);
    await expect(hung.result({ waitSeconds: 10 })).rejects.toThrow(/timeout of 0.3 s/);
    expect(await fleet.queue(queue).call(5, { waitSeconds: 10 })).toBe(5);
    expect(await fleet.queue(queue).get(hung.id)).toMatchObject({
      reason: "timeout",
      attempts: 1,
      crashes: 0,
    });
  });

  it("cancels a task that runs, from elsewhere", async () => {
    const queue = defineQueue("long", { payload: z.string() });
    const ended: unknown[] = [];
    const long = defineBatch("long", {
      tasks: queue,
      async runOne(task, ctx) {
        await ctx.sleep(60);
        ended.push(ctx.signal.reason);
        if (task.payload === "throws") throw new Error("told to");
        return task.payload === "has a result" ? "made it" : undefined;
      },
    });
    const { fleet } = await inlineWorker(kind, [[long, 3]]);
    const tasks = await fleet.queue(queue).submitMany(["throws", "returns nothing", "has a result"]);
    const states = () => Promise.all(tasks.map(async ({ id }) => (await fleet.queue(queue).get(id))?.state));
    await vi.waitFor(async () => expect(await states()).toEqual(["active", "active", "active"]), 10_000);
    for (const { id } of tasks) expect(await fleet.queue(queue).cancel(id)).toBe("cancelling");
    await vi.waitFor(
      async () => expect(await states()).toEqual(["cancelled", "cancelled", "completed"]),
      10_000,
    );
    expect(ended).toEqual(["cancelled", "cancelled", "cancelled"]);
    expect(await tasks[2]?.result()).toBe("made it");
  });

  it("ends a task that gets stuck, also while its slot is to stop, and where it is deaf", async () => {
    const queue = defineQueue("stuck", { payload: z.boolean(), timeoutSeconds: 0, maxAttempts: 1, ...QUICK });
    const told: unknown[] = [];
    const job = defineBatch("stuck", {
      tasks: queue,
      stuckSeconds: 1,
      async runOne({ payload: deaf }, { signal }) {
        await new Promise<void>((resolve) =>
          signal.addEventListener("abort", () => {
            told.push(signal.reason);
            if (!deaf) resolve();
          }),
        );
        signal.throwIfAborted();
      },
    });
    const { fleet, store } = await inlineWorker(kind, [[job, 2]]);
    const tasks = await fleet.queue(queue).submitMany([false, true]);
    const active = async () => (await store.queues.stats({ queue: "stuck" }))?.counts.active;
    await vi.waitFor(async () => expect(await active()).toBe(2), { timeout: 5000 });
    const desired = (await store.registry.view()).desired["stuck"];
    if (desired === undefined) throw new Error("it was deployed");
    const { generation } = desired;
    const paused = { ...desired, paused: true, generation: generation + 1 };
    await store.registry.putDesired({ name: "stuck", desired: paused, expected: generation });
    for (const [at, { id }] of tasks.entries()) {
      await vi.waitFor(
        async () =>
          expect(await fleet.queue(queue).get(id)).toMatchObject({
            state: "failed",
            reason: "timeout",
            attempts: 1,
            crashes: 0,
            interruptions: 0,
            error: expect.stringContaining("no progress for longer than stuckSeconds") as string,
          }),
        { timeout: 8000 },
      );
      const ended = (await fleet.queue(queue).get(id))?.error?.includes("its process was ended");
      expect(ended).toBe(at === 1);
    }
    expect(told).toEqual(["stuck", "stuck"]);
  }, 20_000);

  it("runs many tasks together, and lets one fail alone", async () => {
    const queue = defineQueue("many", { payload: z.number(), maxAttempts: 2, ...QUICK });
    const sizes: number[] = [];
    const many = defineBatch("many", {
      tasks: queue,
      size: 10,
      waitSeconds: 0.3,
      runMany(tasks) {
        sizes.push(tasks.length);
        if (tasks.some(({ payload }) => payload < 0)) throw new Error("all of them");
        return tasks.map(({ payload }) => (payload === 3 ? new Error("just this one") : payload * 2));
      },
    });
    const { fleet } = await inlineWorker(kind, [[many, 1]]);
    const tasks = await fleet.queue(queue).submitMany([1, 2, 3, 4]);
    const [one, two, three, four] = tasks;
    await expect(three?.result({ waitSeconds: 10 })).rejects.toThrow(/just this one/);
    const rest = [one, two, four].map(async (task) => task?.result({ waitSeconds: 10 }));
    expect(await Promise.all(rest)).toEqual([2, 4, 8]);
    expect(sizes[0]).toBe(4);
    const all = await fleet.queue(queue).submitMany([-1, 5]);
    await expect(all[1]?.result({ waitSeconds: 10 })).rejects.toThrow(/all of them/);
    sizes.length = 0;
    const more = await fleet.queue(queue).submitMany(Array.from({ length: 25 }, (_, at) => at + 10));
    await Promise.all(more.map((task) => task.result({ waitSeconds: 10 })));
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(25);
    expect(Math.max(...sizes)).toBe(10);
  });

  it("keeps to the limits of the queue and of its keys", async () => {
    const queue = defineQueue("limited", { payload: z.null(), concurrency: 4, keyConcurrency: 2 });
    const running = new Map<string, number>();
    const most = new Map<string, number>();
    let all = 0;
    let mostOfAll = 0;
    const limited = defineBatch("limited", {
      tasks: queue,
      async runOne(task) {
        const key = task.key ?? "";
        const count = (running.get(key) ?? 0) + 1;
        running.set(key, count);
        most.set(key, Math.max(most.get(key) ?? 0, count));
        mostOfAll = Math.max(mostOfAll, (all += 1));
        await delay(15);
        running.set(key, (running.get(key) ?? 0) - 1);
        all -= 1;
      },
    });
    const { fleet } = await inlineWorker(kind, [[limited, 8]]);
    const tasks = await Promise.all(
      ["a", "b", "c"].flatMap((key) =>
        Array.from({ length: 10 }, () => fleet.queue(queue).submit(null, { key })),
      ),
    );
    await Promise.all(tasks.map((task) => task.result({ waitSeconds: 20 })));
    expect(Object.fromEntries(most)).toEqual({ a: 2, b: 2, c: 2 });
    expect(mostOfAll).toBe(4);
  });

  it("lets automations call each other, continuous ones too", async () => {
    const inner = defineQueue("inner", { payload: z.number(), result: z.number() });
    const outer = defineQueue("outer", { payload: z.number(), result: z.number() });
    const got: number[] = [];
    const automations = [
      defineBatch("inner", { tasks: inner, runOne: (task) => task.payload * 10 }),
      defineBatch("outer", {
        tasks: outer,
        uses: { submit: [inner] },
        runOne: async (task, { call }) => (await call(inner, task.payload)) + 1,
      }),
      defineContinuous("asker", {
        uses: { submit: [outer] },
        async runSlot(ctx) {
          got.push(await ctx.call(outer, 4));
          const { id } = await ctx.submit(inner, 7);
          got.push(await ctx.queue(inner).result(id));
          await ctx.sleep(3600);
        },
      }),
    ];
    await inlineWorker(
      kind,
      automations.map((one) => [one, 1]),
    );
    await vi.waitFor(() => expect(got).toEqual([41, 70]), 10_000);
  });

  it("finishes its tasks before it drains", async () => {
    const queue = defineQueue("steady", { payload: z.number() });
    const begun: number[] = [];
    const steady = defineBatch("steady", {
      tasks: queue,
      async runOne(task, ctx) {
        begun.push(task.payload);
        await delay(400);
        return ctx.signal.aborted ? "aborted" : "finished";
      },
    });
    const { fleet, worker } = await inlineWorker(kind, [[steady, 2]]);
    const tasks = await fleet.queue(queue).submitMany([1, 2, 3]);
    await vi.waitFor(() => expect(begun).toHaveLength(2), 10_000);
    expect(await worker.drain({ deadlineSeconds: 10 })).toEqual({ forced: false });
    expect(await Promise.all(tasks.slice(0, 2).map(({ id }) => fleet.queue(queue).get(id)))).toMatchObject([
      { state: "completed", result: "finished", interruptions: 0 },
      { state: "completed", result: "finished", interruptions: 0 },
    ]);
    expect(await fleet.queue(queue).get(tasks[2]?.id as string)).toMatchObject({
      state: "waiting",
      attempts: 0,
    });
  });
});
