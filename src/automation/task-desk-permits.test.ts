import { setTimeout as delay } from "node:timers/promises";
import { expect, it, onTestFinished, vi } from "vitest";
import { QUEUE_DEFAULTS } from "../contracts/queue.ts";
import { SILENT } from "../internal/log.ts";
import { settingsOf } from "../primitives/queue-settings.ts";
import type { ClaimedTask } from "../protocol/task.ts";
import { openStore } from "../store/open.ts";
import type { QueueStore } from "../store/queue-store.ts";
import type { LimitStore } from "../store/state-store.ts";
import { type DeskSlot, TaskDesk } from "./task-desk.ts";

/** A desk on a store of its own, whose queue has a rate limit: every `perMs`. Keeps record of what it does there. */
async function limitedDesk(perMs: number, slots: number) {
  const store = await openStore("sqlite::memory:");
  const { queues, state } = store;
  await queues.declare({ queue: "q", settings: settingsOf({ options: QUEUE_DEFAULTS }), as: "owner" });
  const turns: Parameters<QueueStore["turn"]>[0][] = [];
  const limit = { taken: 0, givenBack: 0, grants: [] as number[] };
  const turn: QueueStore["turn"] = (args) => {
    turns.push(args);
    return queues.turn(args);
  };
  const take: LimitStore["take"] = async (args) => {
    const answer = await state.limits.take(args);
    if (answer.outcome === "granted") {
      limit.taken += 1;
      limit.grants.push(answer.at);
    }
    return answer;
  };
  const giveBack: LimitStore["giveBack"] = async (args) => {
    const answer = await state.limits.giveBack(args);
    if (answer === "given-back") limit.givenBack += 1;
    return answer;
  };
  const desk = new TaskDesk({
    store: { turn, watch: queues.watch.bind(queues) } as unknown as QueueStore,
    queue: "q",
    declare: () => Promise.resolve(),
    holder: "h",
    worker: "w",
    leaseMs: 10_000,
    limited: false,
    permits: {
      limits: { take, giveBack } as LimitStore,
      limit: { name: "l", key: "", cost: 1, windows: [{ limit: 1, perMs, burst: 1 }] },
    },
    crashLimit: 3,
    log: SILENT,
  });
  const started: number[] = [];
  const all = Array.from({ length: slots }, (_, slotId): DeskSlot => ({
    slotId,
    tasks: () => [],
    abort: () => undefined,
    tick: () => false,
  }));
  const run = async (slot: DeskSlot) => {
    desk.join(slot);
    for (let tasks: ClaimedTask[]; (tasks = await desk.take(slot, 1)).length > 0;) {
      started.push(Date.now());
      for (const task of tasks) desk.ended(slot, task, { outcome: "completed", result: null }, 0.1);
    }
    desk.leave(slot);
  };
  const running = all.map(run);
  onTestFinished(async () => {
    for (const slot of all) desk.dismiss(slot);
    await Promise.all(running);
    await desk.close();
    await store.close();
  });
  let submitted = 0;
  const submit = (n: number) =>
    queues.submit({
      queue: "q",
      lists: [
        Array.from({ length: n }, () => ({
          id: `t${++submitted}`,
          payload: "null",
          priority: 0,
          maxAttempts: 1,
          timeoutMs: 0,
          ttlMs: 0,
          delayMs: 0,
        })),
      ],
    });
  return { desk, submit, started, turns, limit, store };
}

it("claims a task only with a permit for it, none ahead, and is never handed one", async () => {
  const { submit, started, turns, limit } = await limitedDesk(40, 3);
  await vi.waitFor(() => expect(turns).toHaveLength(1));
  await submit(6);
  await vi.waitFor(() => expect(started).toHaveLength(6));
  // Later than its permit each may be, but not sooner.
  const early = started.filter((at, nth) => at < Math.floor(limit.grants[nth] ?? Number.POSITIVE_INFINITY));
  expect(early).toEqual([]);
  const grants = limit.grants.slice(0, 6);
  expect((grants.at(-1) as number) - (grants[0] as number)).toBeGreaterThanOrEqual(200);
  expect(turns.every(({ claim }) => claim <= 1)).toBe(true);
  expect(turns.filter(({ idle }) => idle === true)).toEqual([]);
  expect(limit.taken).toBeGreaterThanOrEqual(6);
});

it("takes no permits while nothing is there, and asks the store nothing", async () => {
  const { submit, started, turns, limit } = await limitedDesk(20, 3);
  await submit(1);
  await vi.waitFor(() => expect(started).toHaveLength(1));
  await delay(100);
  const [calls, taken] = [turns.length, limit.taken];
  await delay(200);
  expect(turns).toHaveLength(calls);
  expect(limit.taken).toBe(taken);
});

it("gives its place in line back when others have run the tasks that it was for", async () => {
  const { desk, submit, started, store, limit } = await limitedDesk(3_600_000, 2);
  await submit(3);
  await vi.waitFor(() => expect(started).toHaveLength(1));
  await vi.waitFor(() => expect(limit.taken).toBe(2));
  const { tasks } = await store.queues.turn({
    queue: "q",
    holder: "another",
    worker: "w",
    leaseMs: 10_000,
    settle: [],
    claim: 5,
  });
  expect(tasks).toHaveLength(2);
  desk.hear({ held: [], at: "0", ready: 0, dueInMs: null });
  await vi.waitFor(() => expect(limit.givenBack).toBe(1));
  await submit(1);
  await vi.waitFor(() => expect(limit.taken).toBe(3));
  expect(started).toHaveLength(1);
});
