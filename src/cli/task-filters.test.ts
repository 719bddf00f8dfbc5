import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import type { TaskRecord, TaskState } from "../protocol/task.ts";
import type { QueueStore } from "../store/queue-store.ts";
import { span } from "./options.ts";
import { matches, selectIds, selectTasks, sinceOf, statesOf } from "./task-filters.ts";

const NOW = 1_000_000;
const task = (over: Partial<TaskRecord>) =>
  ({
    id: "t",
    state: "failed",
    reason: "error",
    key: null,
    submittedAt: 1,
    dueAt: 2,
    startedAt: 3,
    finishedAt: 4,
    ...over,
  }) as TaskRecord;

describe("lengths of time", () => {
  it("are seconds unless they say otherwise", () => {
    expect(["90", "90s", "1.5 m", "2h", "3d", "250ms"].map(span)).toEqual([
      90_000, 90_000, 90_000, 7_200_000, 259_200_000, 250,
    ]);
    for (const wrong of ["", "m", "-1", "1 week", "1e3", "Infinity"])
      expect(() => span(wrong)).toThrow("length of time");
  });
});

describe("filters", () => {
  it("count since when a task is in its state", () => {
    const states: TaskState[] = ["scheduled", "waiting", "active", "completed", "failed", "cancelled"];
    expect(states.map((state) => sinceOf(task({ state })))).toEqual([1, 2, 3, 4, 4, 4]);
  });

  it("all have to fit", () => {
    const old = task({ key: "k", finishedAt: NOW - 60_000 });
    expect(matches(old, {}, NOW)).toBe(true);
    expect(matches(old, { key: "k", reason: "error", older: 59_000, newer: 61_000 }, NOW)).toBe(true);
    for (const filter of [{ key: "x" }, { reason: "timeout" }, { older: 60_000 }, { newer: 60_000 }] as const)
      expect(matches(old, filter, NOW)).toBe(false);
  });

  it("choose among states, and only the failed have a reason", () => {
    const all: TaskState[] = ["active", "waiting", "failed"];
    expect(statesOf({}, all)).toEqual(all);
    expect(statesOf({ state: ["failed", "active"] }, all)).toEqual(["active", "failed"]);
    expect(statesOf({ reason: "timeout" }, all)).toEqual(["failed"]);
    expect(statesOf({ reason: "timeout", state: ["waiting"] }, all)).toEqual([]);
  });

  it("go through all pages, and stop at the limit", async () => {
    const asked: string[] = [];
    const page: QueueStore["page"] = ({ state, cursor = "0" }) => {
      asked.push(`${state} ${cursor}`);
      const n = Number(cursor);
      const tasks = [task({ id: `${state}-${n}`, state }), task({ id: `${state}-seen-twice`, state })];
      return Promise.resolve(n < 2 ? { tasks, next: String(n + 1) } : { tasks });
    };
    const select = (limit?: number) =>
      selectTasks({ page } as QueueStore, {
        queue: "q",
        states: ["active", "waiting"],
        filters: limit === undefined ? {} : { limit },
        now: NOW,
      });
    expect((await select()).map(({ id }) => id)).toEqual([
      "active-0",
      "active-seen-twice",
      "active-1",
      "active-2",
      "waiting-0",
      "waiting-seen-twice",
      "waiting-1",
      "waiting-2",
    ]);
    expect(asked.splice(0)).toHaveLength(6);
    expect(await select(3)).toHaveLength(3);
    expect(asked).toEqual(["active 0", "active 1"]);
  });

  it("keep no more than the ids of those that are to be changed", async () => {
    setFlagsFromString("--expose-gc");
    const gc = runInNewContext("gc") as () => void;
    const given: WeakRef<TaskRecord>[] = [];
    let leftAtEnd = -1;
    const page: QueueStore["page"] = async ({ cursor = "0" }) => {
      await new Promise((resolve) => setImmediate(resolve));
      const n = Number(cursor);
      if (n === 10) {
        gc();
        leftAtEnd = given.slice(0, 800).filter((ref) => ref.deref() !== undefined).length;
      }
      const tasks = Array.from({ length: 100 }, (_, i) => task({ id: `${n}-${i}` }));
      given.push(...tasks.map((one) => new WeakRef(one)));
      return n < 10 ? { tasks, next: String(n + 1) } : { tasks };
    };
    const selection = { queue: "q", states: ["failed" as const], filters: {}, now: NOW };
    const ids = await selectIds({ page } as QueueStore, selection);
    expect([ids.length, ids[0], ids.at(-1)]).toEqual([1100, "0-0", "10-99"]);
    expect(leftAtEnd).toBe(0);
  });
});
