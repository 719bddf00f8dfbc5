import { describe, expect, it } from "vitest";
import { checkOptions } from "../contracts/options.ts";
import { QUEUE_DEFAULTS } from "../contracts/queue.ts";
import { newTask, SUBMIT, type SubmitOptions } from "./queue-options.ts";

const taskOf = (options: SubmitOptions) =>
  newTask(
    'queue "q"',
    QUEUE_DEFAULTS,
    "{}",
    checkOptions<Required<SubmitOptions>>('queue "q"', options, SUBMIT),
  );
const refusal = (options: object) => {
  try {
    taskOf(options);
  } catch (error) {
    return error as Error & { code: string };
  }
  throw new Error("was not refused");
};

describe("a task's options", () => {
  it("follow from the queue's where they are left out, each task with an id of its own", () => {
    const task = taskOf({});
    expect(task).toEqual({
      id: task.id,
      payload: "{}",
      delayMs: 0,
      priority: 0,
      maxAttempts: 5,
      timeoutMs: 3_600_000,
      ttlMs: 0,
    });
    expect(task.id).toMatch(/^[0-9a-f-]{36}$/);
    expect(taskOf({}).id).not.toBe(task.id);
  });

  it("become milliseconds", () => {
    const runAt = new Date("2027-06-01T00:00:00Z");
    expect(
      taskOf({
        id: "mine",
        delaySeconds: 1.5,
        priority: -7,
        key: "k",
        maxAttempts: 1,
        timeoutSeconds: 0.1,
        ttlSeconds: 60,
      }),
    ).toEqual({
      id: "mine",
      payload: "{}",
      delayMs: 1500,
      priority: -7,
      key: "k",
      maxAttempts: 1,
      timeoutMs: 100,
      ttlMs: 60_000,
    });
    expect(taskOf({ runAt })).toMatchObject({ delayMs: 0, runAt: runAt.getTime() });
    expect(taskOf({ runAt: runAt.getTime() })).toMatchObject({ runAt: runAt.getTime() });
  });

  it("keep the shortest timeout apart from none", () => {
    expect(taskOf({ timeoutSeconds: 0.0001 }).timeoutMs).toBe(1);
    expect(taskOf({ timeoutSeconds: 0 }).timeoutMs).toBe(0);
  });

  it("carry how a duplicate is treated", () => {
    expect(taskOf({ dedupeKey: "d" }).dedupe).toEqual({ key: "d", onDuplicate: "ignore", windowMs: 0 });
    expect(taskOf({ dedupeKey: "d", onDuplicate: "debounce", dedupeSeconds: 2 }).dedupe).toEqual({
      key: "d",
      onDuplicate: "debounce",
      windowMs: 2000,
    });
  });

  it.each([Number.POSITIVE_INFINITY, Number.NaN, -1, 1.5])("refuse maxAttempts: %o", (maxAttempts) => {
    const error = refusal({ maxAttempts });
    expect(error.code).toBe("FLEET_OPTION_INVALID");
    expect(error.message).toMatch(new RegExp(`^queue "q": maxAttempts must be .*, got ${maxAttempts}$`));
  });

  it.each<[object, string]>([
    [{ delaySeconds: 1, runAt: new Date() }, "give delaySeconds or runAt, not both"],
    [{ delaySeconds: Number.POSITIVE_INFINITY }, "delaySeconds must be a finite number, got Infinity"],
    [{ delaySeconds: -1 }, "delaySeconds must be at least 0, got -1"],
    [{ runAt: new Date("no date") }, "runAt must be a valid Date"],
    [{ runAt: "tomorrow" }, 'runAt must be a Date or a time in Unix milliseconds, got "tomorrow"'],
    [{ runAt: 1_778_000_000 }, "got 1778000000 (seconds? multiply by 1000)"],
    [{ runAt: 1e15 }, "runAt must be a time before the year 10000"],
    [{ priority: 1001 }, "priority must be at most 1000, got 1001"],
    [{ priority: 0.5 }, "priority must be a whole number, got 0.5"],
    [{ key: "" }, "key must be a text of 1 to 256 characters"],
    [{ onDuplicate: "replace" }, "onDuplicate needs a dedupeKey"],
    [{ dedupeSeconds: 1 }, "dedupeSeconds needs a dedupeKey"],
    [{ dedupeKey: "d", onDuplicate: "throttle" }, 'onDuplicate: "throttle" needs dedupeSeconds, its window'],
    [
      { dedupeKey: "d", dedupeSeconds: 1 },
      'dedupeSeconds is for onDuplicate: "throttle" or "debounce", got "ignore"',
    ],
    [{ dedupeKey: "d", onDuplicate: "drop" }, 'onDuplicate must be "ignore" or "replace"'],
    [{ delay: 5 }, 'unknown option "delay"'],
    [{ ttlSeconds: Number.NaN }, "ttlSeconds must be a finite number, got NaN"],
  ])("refuse %o", (options, message) => {
    expect(refusal(options)).toMatchObject({ code: "FLEET_OPTION_INVALID" });
    expect(refusal(options).message).toContain(message);
    expect(refusal(options).message).toMatch(/^queue "q": /);
  });
});
