import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { FleetError } from "../errors.ts";
import { SILENT } from "../internal/log.ts";
import type { ClaimedTask, Settlement } from "../protocol/task.ts";
import type { QueueStore, TurnResult } from "../store/queue-store.ts";
import { type DeskSlot, TaskDesk } from "./task-desk.ts";

const claimed = (id: string): ClaimedTask => ({
  id,
  payload: "{}",
  token: id,
  attempts: 0,
  crashes: 0,
  interruptions: 0,
  maxAttempts: 5,
  timeoutMs: 0,
  key: null,
  submittedAt: 0,
  tick: null,
});

interface Call {
  settle: readonly Settlement[];
  claim: number;
}

/** A desk whose store is the test: it hands out what is in `tasks` while `away` is false. */
function desk() {
  const calls: Call[] = [];
  const state = {
    tasks: [] as string[],
    away: false,
    hold: undefined as Promise<void> | undefined,
    due: null as number | null,
  };
  let hint: () => void = () => undefined;
  const turn = async ({ settle, claim }: Call): Promise<TurnResult> => {
    calls.push({ settle, claim });
    const ids = state.tasks.splice(0, claim);
    await state.hold;
    if (state.away) {
      state.tasks.unshift(...ids);
      throw new FleetError("FLEET_STORE_UNAVAILABLE", "away", { retryable: true });
    }
    const settled = settle.map(() => "settled" as const);
    return { settled, tasks: ids.map(claimed), now: 0, ready: state.tasks.length, nextDueAt: state.due };
  };
  const watch: QueueStore["watch"] = (_, { onReady }) => {
    hint = () => onReady?.();
    return { ready: Promise.resolve(), close: () => Promise.resolve() };
  };
  const made = new TaskDesk({
    store: { turn, watch } as unknown as QueueStore,
    queue: "q",
    declare: () => Promise.resolve(),
    holder: "h",
    worker: "w",
    leaseMs: 1000,
    limited: false,
    crashLimit: 3,
    log: SILENT,
  });
  const running: ClaimedTask[] = [];
  const aborted: [string, string][] = [];
  const slot: DeskSlot = {
    slotId: 0,
    tasks: () => running,
    abort: (token, reason) => aborted.push([token, reason]),
    tick: () => false,
  };
  made.join(slot);
  onTestFinished(() => made.close());
  /** All ends that the store has been told of, in order. */
  const told = () => calls.flatMap(({ settle }) => settle.map(({ id, outcome }) => `${id} ${outcome}`));
  const done = (task: ClaimedTask, ranMs = 1000) =>
    made.ended(slot, task, { outcome: "completed", result: null }, ranMs);
  return { desk: made, slot, running, aborted, calls, state, told, done, hint: () => hint() };
}

const ids = (tasks: readonly ClaimedTask[]) => tasks.map(({ id }) => id);
const heard = (held: string[], more = {}) => ({
  held: held.map((token) => ({ id: token, token, cancelling: false })),
  at: "999",
  ready: 0,
  dueInMs: null,
  ...more,
});

describe("TaskDesk", () => {
  it("gathers ends and claims, and asks no more while there is nothing", async () => {
    const { desk: at, slot, state, calls, done, hint, told } = desk();
    state.tasks = ["1"];
    const [first] = await at.take(slot, 1);
    done(first as ClaimedTask);
    const waiting = at.take(slot, 1);
    await vi.waitFor(() => expect(told()).toEqual(["1 completed"]));
    // The end of the first and the claim of the next have travelled together.
    expect(calls.map(({ settle, claim }) => [settle.length, claim])).toEqual([
      [0, 1],
      [1, 1],
    ]);
    await delay(100);
    expect(calls).toHaveLength(2);
    state.tasks = ["2"];
    hint();
    expect(ids(await waiting)).toEqual(["2"]);
  });

  it("gives a slot nothing before the end of its last task is written, also where it has begun anew", async () => {
    const { desk: at, slot, state, done, told } = desk();
    state.tasks = ["1", "2", "3"];
    const [first] = await at.take(slot, 1);
    let release: () => void = () => undefined;
    state.hold = new Promise((resolve) => (release = resolve));
    // So short that others are held ahead.
    done(first as ClaimedTask, 0.1);
    const other: DeskSlot = { ...slot, slotId: 1 };
    at.join(other);
    const another = at.take(other, 1);
    await vi.waitFor(() => expect(told()).toEqual(["1 completed"]));
    at.leave(slot);
    const anew: DeskSlot = { ...slot };
    at.join(anew);
    const next = at.take(anew, 1);
    const given: string[] = [];
    void Promise.resolve(next).then((tasks) => given.push(...ids(tasks)));
    // What comes by hand is there before the answer.
    at.putBack([claimed("a"), claimed("b")]);
    expect(ids(await another)).toEqual(["a"]);
    await delay(20);
    expect(given).toEqual([]);
    release();
    expect(ids(await next)).toEqual(["b"]);
  });

  it("sends what many slots have done in two calls, so that one half runs while the other is written", async () => {
    const { desk: at, slot, state, calls, running } = desk();
    const slots = Array.from({ length: 40 }, (_, slotId): DeskSlot => ({ ...slot, slotId }));
    for (const one of slots) at.join(one);
    state.tasks = Array.from({ length: 100 }, (_, index) => String(index));
    const answers: (() => void)[] = [];
    const end = (one: DeskSlot, task: ClaimedTask) =>
      at.ended(one, task, { outcome: "completed", result: null }, 1000);
    const firsts = await Promise.all(slots.map(async (one) => at.take(one, 1)));
    calls.length = 0;
    Object.defineProperty(state, "hold", {
      get: () => new Promise<void>((resolve) => answers.push(resolve)),
    });
    onTestFinished(() => void Object.defineProperty(state, "hold", { get: () => undefined }));
    for (const [index, one] of slots.entries()) {
      end(one, firsts[index]?.[0] as ClaimedTask);
      void Promise.resolve(at.take(one, 1)).then((tasks) => running.push(...tasks));
    }
    await vi.waitFor(() =>
      expect(calls.map(({ settle, claim }) => [settle.length, claim])).toEqual([
        [20, 20],
        [20, 20],
      ]),
    );
    answers[0]?.();
    await vi.waitFor(() => expect(ids(running)).toHaveLength(20));
    await delay(20);
    expect(running).toHaveLength(20);
    answers[1]?.();
    await vi.waitFor(() => expect(ids(running)).toHaveLength(40));
  });

  it("is woken by its supervisor, and when a task falls due", async () => {
    const { desk: at, slot, state } = desk();
    const one = at.take(slot, 1);
    await delay(20);
    state.tasks = ["1"];
    at.hear(heard([], { ready: 1 }));
    expect(ids(await one)).toEqual(["1"]);
    const two = at.take(slot, 1);
    await delay(20);
    state.tasks = ["2"];
    at.hear(heard([], { dueInMs: 30 }));
    expect(ids(await two)).toEqual(["2"]);
  });

  it("keeps ends while the store is away, and tells each until it is answered", async () => {
    const { desk: at, slot, state, done, told, calls } = desk();
    state.tasks = ["1"];
    const [first] = await at.take(slot, 1);
    state.away = true;
    done(first as ClaimedTask);
    await vi.waitFor(() => expect(told().length).toBeGreaterThanOrEqual(2));
    state.away = false;
    const before = calls.length;
    await vi.waitFor(() => expect(calls.length).toBeGreaterThan(before));
    await at.close();
    expect(new Set(told())).toEqual(new Set(["1 completed"]));
    const after = calls.length;
    await delay(150);
    expect(calls).toHaveLength(after);
  });

  it("holds a few tasks ahead while tasks are short, and gives back what nobody takes", async () => {
    const { desk: at, slot, state, done, told } = desk();
    state.tasks = ["1", "2", "3", "4", "5"];
    const [first] = await at.take(slot, 1);
    done(first as ClaimedTask, 0.1);
    expect(ids(await at.take(slot, 1))).toEqual(["2"]);
    // The slot is busy with that one for long: the others are for somebody else.
    await vi.waitFor(() => expect(told()).toEqual(["1 completed", "3 returned", "4 returned", "5 returned"]));
  });

  it("holds none ahead while tasks are long", async () => {
    const { desk: at, slot, state, done, calls } = desk();
    state.tasks = ["1", "2", "3", "4"];
    const [first] = await at.take(slot, 1);
    done(first as ClaimedTask, 1000);
    expect(ids(await at.take(slot, 1))).toEqual(["2"]);
    await delay(50);
    expect(calls.map(({ claim }) => claim)).toEqual([1, 1]);
  });

  it("gives back what it holds once no slot takes any more, also what comes late", async () => {
    const { desk: at, slot, state, told } = desk();
    let release: () => void = () => undefined;
    state.tasks = ["1"];
    state.hold = new Promise((resolve) => (release = resolve));
    const waiting = at.take(slot, 1);
    await delay(20);
    at.leave(slot);
    expect(await waiting).toEqual([]);
    release();
    await vi.waitFor(() => expect(told()).toEqual(["1 returned"]));
  });

  it("gives back a claim that it does not know, once no call is under way that may bring it", async () => {
    const { desk: at, slot, state, running, told } = desk();
    let release: () => void = () => undefined;
    state.hold = new Promise((resolve) => (release = resolve));
    state.tasks = ["1"];
    const waiting = at.take(slot, 1);
    await delay(20);
    // The store knows the claim before its answer is here: told twice, and still not a stranger.
    at.hear(heard(["1", "77"]));
    at.hear(heard(["1", "77"]));
    await delay(20);
    release();
    running.push(...(await waiting));
    expect(ids(running)).toEqual(["1"]);
    at.hear(heard(["1", "77"]));
    await vi.waitFor(() => expect(told()).toEqual(["77 returned"]));
  });

  it("tells its slots what is lost and what is cancelled", async () => {
    const { desk: at, slot, running, aborted, state } = desk();
    state.tasks = ["1"];
    running.push(...(await at.take(slot, 1)), claimed("2"), claimed("5000"));
    // Younger than the list: that says nothing about it.
    at.hear({ ...heard([]), held: [{ id: "2", token: "2", cancelling: true }] });
    expect(aborted).toEqual([
      ["1", "lease-lost"],
      ["2", "cancelled"],
    ]);
  });

  it("says once that it waits for tasks no more, when its last slot takes none", async () => {
    const { desk: made, slot, calls } = desk();
    const other: DeskSlot = { ...slot, slotId: 1 };
    made.join(other);
    const taking = [made.take(slot, 1), made.take(other, 1)].map((tasks) => Promise.resolve(tasks));
    await vi.waitFor(() => expect(calls).toHaveLength(1));
    await delay(20);
    made.dismiss(slot);
    await delay(20);
    expect(calls).toHaveLength(1);
    made.leave(other);
    await Promise.all(taking);
    made.dismiss(other);
    await vi.waitFor(() => expect(calls).toHaveLength(2));
    await delay(20);
    expect(calls.slice(1)).toEqual([{ settle: [], claim: 0 }]);
  });
});
