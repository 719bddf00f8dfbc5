import { describe, expect, it } from "vitest";
import type { ClaimedTask } from "../protocol/task.ts";
import { collect } from "./batch-collect.ts";

const task = (id: string, crashes = 0): ClaimedTask => ({
  id,
  payload: "{}",
  token: id,
  attempts: 0,
  crashes,
  interruptions: 0,
  maxAttempts: 5,
  timeoutMs: 0,
  key: null,
  submittedAt: 0,
  tick: null,
});

/** What is there to be taken, in portions; then there is nothing for as long as one waits. */
function collecting(first: readonly ClaimedTask[], portions: readonly (readonly ClaimedTask[])[], size = 4) {
  const asked: number[] = [];
  const taken: string[][] = [];
  const left = [...portions];
  const done = collect(first, {
    size,
    waitMs: 1000,
    more: (most) => {
      asked.push(most);
      return left.shift() ?? [];
    },
    taken: (tasks) => taken.push(tasks.map(({ id }) => id)),
  });
  return done.then(({ tasks, back }) => ({
    tasks: tasks.map(({ id }) => id),
    back: back.map(({ id }) => id),
    asked,
    taken,
  }));
}

describe("collect", () => {
  it("takes as many as it may, and says what it has all along", async () => {
    expect(await collecting([task("a")], [[task("b")], [task("c"), task("d")]])).toEqual({
      tasks: ["a", "b", "c", "d"],
      back: [],
      asked: [3, 2],
      taken: [
        ["a", "b"],
        ["a", "b", "c", "d"],
      ],
    });
  });

  it("is content with what there is", async () => {
    expect(await collecting([task("a")], [])).toMatchObject({ tasks: ["a"], asked: [3] });
    expect(await collecting([], [[task("b")]])).toMatchObject({ tasks: [], asked: [] });
  });

  it("runs a task that has crashed before alone, first or not", async () => {
    expect(await collecting([task("bad", 1)], [[task("b")]])).toMatchObject({
      tasks: ["bad"],
      back: [],
      asked: [],
    });
    expect(await collecting([task("bad", 1), task("b"), task("worse", 2)], [])).toMatchObject({
      tasks: ["bad"],
      back: ["b", "worse"],
    });
    expect(await collecting([task("a")], [[task("bad", 1)], [task("c")]])).toMatchObject({
      tasks: ["a"],
      back: ["bad"],
      asked: [3],
    });
  });
});
