import { expect, it } from "vitest";
import { TaskRun } from "./task-run.ts";

it("aborts its signal with the first reason, also when it is looked at only then", () => {
  const seen = new TaskRun(0, 0, "t");
  const reasons: unknown[] = [];
  seen.signal.addEventListener("abort", () => reasons.push(seen.signal.reason));
  seen.abort("cancelled");
  seen.abort("drain");
  expect(reasons).toEqual(["cancelled"]);
  expect(seen.aborted).toBe("cancelled");

  const late = new TaskRun(0, 0, "t");
  late.abort("timeout");
  expect([late.signal.aborted, late.signal.reason]).toEqual([true, "timeout"]);
});

it("ends what its handler left going", () => {
  const run = new TaskRun(0, 0, "t");
  const { signal } = run;
  run.end();
  expect(signal.reason).toBe("ended");
  // An end is no reason to end early.
  run.abort("timeout");
  expect(run.aborted).toBeNull();
  const unseen = new TaskRun(0, 0, "t");
  unseen.end();
  expect(unseen.signal.reason).toBe("ended");
});

it("is overdue when its timeout has passed, and without one never", () => {
  expect(new TaskRun(1000, 500, "t").isOverdue(1499)).toBe(false);
  expect(new TaskRun(1000, 500, "t").isOverdue(1500)).toBe(true);
  expect(new TaskRun(1000, 0, "t").isOverdue(1e12)).toBe(false);
});
