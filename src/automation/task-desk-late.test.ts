import { expect, it, vi } from "vitest";
import { SILENT } from "../internal/log.ts";
import type { ClaimedTask, Settlement } from "../protocol/task.ts";
import type { QueueStore } from "../store/queue-store.ts";
import { TaskDesk, type DeskSlot } from "./task-desk.ts";

function claimed(id: string, token: string): ClaimedTask {
  const counters = { attempts: 0, crashes: 0, interruptions: 0 };
  return {
    id,
    token,
    payload: "null",
    ...counters,
    maxAttempts: 5,
    timeoutMs: 0,
    key: null,
    submittedAt: 0,
    tick: null,
  };
}

/** A desk on a store that has nothing to claim; what it settles is noted, and hand-offs come when the test says so. */
function desk() {
  const settled: Settlement[] = [];
  let hand: ((tasks: readonly ClaimedTask[]) => void) | undefined;
  const store = {
    turn: vi.fn(async ({ settle }: { settle: readonly Settlement[] }) => {
      settled.push(...settle);
      return { settled: settle.map(() => "settled"), tasks: [], now: 0, ready: 0, nextDueAt: null };
    }),
    watch: (_args: object, on: { onTasks: typeof hand }) => {
      hand = on.onTasks;
      return { ready: Promise.resolve(), close: () => Promise.resolve() };
    },
  } as unknown as QueueStore;
  const made = new TaskDesk({
    store,
    queue: "q",
    holder: "h",
    worker: "w",
    leaseMs: 10_000,
    limited: false,
    crashLimit: 3,
    log: SILENT,
    declare: () => Promise.resolve(),
  });
  const slot: DeskSlot = { slotId: 0, tasks: () => [], abort: () => undefined, tick: () => false };
  made.join(slot);
  return { desk: made, slot, settled, hand: (task: ClaimedTask) => hand?.([task]) };
}

it("does not begin a claim that it has given back, when its hand-off comes late", async () => {
  const { desk: tested, slot, settled, hand } = desk();
  const taking = tested.take(slot, 1);
  await vi.waitFor(() => expect(settled).toEqual([]));
  // The loop was busy: the store has told of the claim twice before the message that brings it is read.
  const held = [{ id: "t", token: "5", cancelling: false }];
  for (let times = 0; times < 3; times++) {
    tested.hear({ held, at: "9", ready: 0, dueInMs: null });
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await vi.waitFor(() => expect(settled).toEqual([{ id: "t", token: "5", outcome: "returned" }]));
  hand(claimed("t", "5"));
  // One that comes afterwards is begun.
  hand(claimed("u", "7"));
  expect((await taking).map(({ id }) => id)).toEqual(["u"]);
});
