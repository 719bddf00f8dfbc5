import { closeSync, mkdtempSync, openSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { ClaimedTask } from "../protocol/task.ts";
import { readTasks, writeTask } from "./task-marks.ts";

const claimed = (id: string, attempts = 0): ClaimedTask => ({
  id,
  payload: "{}",
  token: "1778000000000001",
  attempts,
  crashes: 0,
  interruptions: 0,
  maxAttempts: 5,
  timeoutMs: 0,
  key: null,
  submittedAt: 0,
  tick: null,
});

function mark() {
  const folder = mkdtempSync(join(tmpdir(), "fleet-marks-"));
  const path = join(folder, "mark");
  const fd = openSync(path, "w+");
  onTestFinished(() => {
    closeSync(fd);
    rmSync(folder, { recursive: true });
  });
  const begin = (seq: number, slotId: number, tasks: readonly ClaimedTask[]) => {
    const { id, token, attempts } = tasks[0] as ClaimedTask;
    const task = { id, token, attempts, startedAt: 10.5, timeoutMs: 2000, count: tasks.length };
    writeTask(fd, seq, slotId, task, tasks);
  };
  return { fd, path, begin };
}

it("tells what each slot runs, and nothing of those that run nothing", () => {
  const { fd, begin } = mark();
  expect(readTasks(fd)).toEqual([]);
  begin(1, 0, [claimed("first")]);
  begin(2, 9999, [claimed("a task, with spaces \u00e9 in its id", 3)]);
  begin(3, 0, [claimed("second", 1)]);
  begin(4, 5, [claimed("gone")]);
  begin(4, 10_000, [claimed("beyond")]);
  writeTask(fd, 5, 5, null, []);
  const about = { startedAt: 10.5, timeoutMs: 2000 };
  const token = "1778000000000001";
  expect(readTasks(fd)).toEqual([
    { ...about, slotId: 0, seq: 3, tasks: [{ id: "second", token, attempts: 1 }] },
    {
      ...about,
      slotId: 9999,
      seq: 2,
      tasks: [{ id: "a task, with spaces \u00e9 in its id", token, attempts: 3 }],
    },
  ]);
});

it("has room for long ids, and for as many as run together", () => {
  const { fd, begin } = mark();
  const wide = "\u4e2d".repeat(128);
  begin(1, 2, [claimed(wide)]);
  expect(readTasks(fd)[0]?.tasks).toMatchObject([{ id: wide }]);
  const many = Array.from({ length: 1000 }, (_, at) => claimed(`${at}${"x".repeat(120)}`, at));
  begin(2, 3, many);
  expect(readTasks(fd)[1]?.tasks.map(({ id, attempts }) => [id, attempts])).toEqual(
    many.map(({ id, attempts }) => [id, attempts]),
  );
});

it("takes a record whose list is not whole for none", () => {
  const { fd, path, begin } = mark();
  begin(
    1,
    0,
    Array.from({ length: 100 }, (_, at) => claimed(`task ${at}`)),
  );
  expect(readTasks(fd)[0]?.tasks).toHaveLength(100);
  truncateSync(path, 131_072 + 10_000 * 256 + 50);
  expect(readTasks(fd)[0]?.tasks).toEqual([]);
});
