import { expect, it, onTestFinished, vi } from "vitest";
import { SILENT } from "../internal/log.ts";
import type { ClaimedTask } from "../protocol/task.ts";
import type { QueueStore } from "../store/queue-store.ts";
import { AloneRuns } from "./task-alone.ts";
import { TaskDesk } from "./task-desk.ts";

function claimed(id: string, crashes = 0): ClaimedTask {
  return {
    id,
    token: id,
    payload: "null",
    attempts: 0,
    crashes,
    interruptions: 0,
    maxAttempts: 5,
    timeoutMs: 0,
    key: null,
    submittedAt: 0,
    tick: null,
  };
}

it("goes by the crash limit: alone runs what has crashed twice, or may not crash again", () => {
  const aloneFrom = (limit: number) =>
    [0, 1, 2, 3].find((crashes) => new AloneRuns(limit).hold([claimed("t", crashes)]));
  expect([1, 2, 3, 10].map(aloneFrom)).toEqual([1, 1, 2, 2]);
});

/** A desk with slots that take tasks as a batch run does, each ended by the test. `bring`: what the store has. */
function desk(slots: number) {
  const has: ClaimedTask[] = [];
  const returned: string[] = [];
  let hint: () => void = () => undefined;
  const turn: QueueStore["turn"] = async ({ settle, claim }) => {
    returned.push(...settle.filter(({ outcome }) => outcome === "returned").map(({ id }) => id));
    const tasks = has.splice(0, claim);
    return { settled: settle.map(() => "settled"), tasks, now: 0, ready: has.length, nextDueAt: null };
  };
  const watch: QueueStore["watch"] = (_, on) => {
    hint = () => on.onReady?.();
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
  const began: { id: string; beside: string[] }[] = [];
  const running = new Map<string, () => void>();
  const run = async (slotId: number) => {
    let taken: readonly ClaimedTask[] = [];
    let marked = "";
    const slot = {
      slotId,
      tasks: () => taken,
      abort: () => undefined,
      tick: () => {
        if (taken.length === 0) marked = "";
        return taken.length > 0;
      },
      marked: () => marked,
    };
    made.join(slot);
    all.push(slot);
    for (;;) {
      taken = await made.take(slot, 1);
      const [task] = taken;
      if (task === undefined) break;
      marked = task.id;
      began.push({
        id: task.id,
        beside: all.map((one) => one.marked()).filter((id) => id !== "" && id !== task.id),
      });
      await new Promise<void>((resolve) => running.set(task.id, resolve));
      running.delete(task.id);
      made.ended(slot, task, { outcome: "completed", result: null }, 1000);
      taken = [];
    }
    made.leave(slot);
  };
  const all: {
    slotId: number;
    tasks(): readonly ClaimedTask[];
    abort(): void;
    tick(): boolean;
    marked(): string;
  }[] = [];
  for (let i = 0; i < slots; i++) void run(i);
  onTestFinished(() => {
    for (const slot of all) made.dismiss(slot);
    for (const end of running.values()) end();
  });
  return {
    bring: (...tasks: ClaimedTask[]) => {
      has.push(...tasks);
      hint();
    },
    end: (id: string) => running.get(id)?.(),
    runs: () => [...running.keys()].toSorted(),
    began,
    returned,
    dismissAll: () => {
      for (const slot of all) made.dismiss(slot);
    },
  };
}

it("begins it once nothing else runs, and nothing else until it has ended", async () => {
  const { bring, end, runs, began, returned } = desk(3);
  bring(claimed("a"), claimed("b"));
  await vi.waitFor(() => expect(runs()).toEqual(["a", "b"]));
  // A free slot, and it waits all the same; what came with it is for others.
  bring(claimed("s", 2));
  await new Promise((resolve) => setTimeout(resolve, 120));
  bring(claimed("c"));
  end("a");
  await new Promise((resolve) => setTimeout(resolve, 120));
  expect(runs()).toEqual(["b"]);
  end("b");
  await vi.waitFor(() => expect(runs()).toEqual(["s"]));
  // Not even a mark of another one is left.
  expect(began.find(({ id }) => id === "s")?.beside).toEqual([]);
  await new Promise((resolve) => setTimeout(resolve, 120));
  expect(runs()).toEqual(["s"]);
  end("s");
  await vi.waitFor(() => expect(runs()).toEqual(["c"]));
  expect(returned).not.toContain("s");
});

it("begins several one after the other, and what came with them later", async () => {
  const { bring, end, runs } = desk(3);
  bring(claimed("a"), claimed("s", 2), claimed("t", 5));
  await vi.waitFor(() => expect(runs()).toEqual(["s"]));
  end("s");
  await vi.waitFor(() => expect(runs()).toEqual(["t"]));
  bring(claimed("b", 1), claimed("c"));
  end("t");
  await vi.waitFor(() => expect(runs()).toEqual(["b", "c"]));
});

it("gives it back when no slot goes on taking tasks", async () => {
  const { bring, runs, returned, dismissAll } = desk(2);
  bring(claimed("a"));
  await vi.waitFor(() => expect(runs()).toEqual(["a"]));
  bring(claimed("s", 2));
  await new Promise((resolve) => setTimeout(resolve, 120));
  expect(returned).toEqual([]);
  dismissAll();
  await vi.waitFor(() => expect(returned).toEqual(["s"]));
});
