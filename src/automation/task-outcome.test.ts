import { describe, expect, it } from "vitest";
import type { StopReason } from "./context.ts";
import { FatalError, isFatal, pauseOf, RetryAfter } from "./task-errors.ts";
import { invalid, outcomeOf, pauseAfter, settlementOf } from "./task-outcome.ts";

const BACKOFF = { baseSeconds: 1, capSeconds: 60, jitter: 0.2 };
const none = () => 0;
const outcome = (error: unknown, aborted: StopReason | null, attempts = 0) =>
  outcomeOf({ attempts, timeoutMs: 2000 }, error, aborted, BACKOFF, none);

describe("outcomeOf", () => {
  it.each<[what: string, error: unknown, aborted: StopReason | null, expected: object]>([
    ["a throw", new Error("x"), null, { outcome: "failed", reason: "error", retryInMs: 1000, final: false }],
    ["a thrown text", "x", null, { outcome: "failed", reason: "error", error: "thrown: x" }],
    ["a FatalError", new FatalError("x"), null, { outcome: "failed", reason: "fatal", final: true }],
    ["a FatalError in a drain", new FatalError("x"), "drain", { outcome: "failed", reason: "fatal" }],
    [
      "RetryAfter",
      new RetryAfter(7),
      null,
      { outcome: "failed", reason: "error", retryInMs: 7000, final: false },
    ],
    [
      "a timeout",
      undefined,
      "timeout",
      { outcome: "failed", reason: "timeout", retryInMs: 1000, final: false },
    ],
    ["a throw after the timeout", new Error("x"), "timeout", { outcome: "failed", reason: "timeout" }],
    ["no progress", undefined, "stuck", { outcome: "failed", reason: "timeout" }],
    ["a cancellation", new Error("x"), "cancelled", { outcome: "cancelled" }],
    ["a drain", new Error("x"), "drain", { outcome: "interrupted" }],
    ["a lost lease", undefined, "lease-lost", { outcome: "interrupted" }],
  ])("%s", (_, error, aborted, expected) => {
    expect(outcome(error, aborted)).toMatchObject(expected);
  });

  it("says how long it was and what it ended with", () => {
    const made = outcome(new Error("half way"), "timeout");
    expect(made).toMatchObject({
      error: expect.stringMatching(/timeout of 2 s; it ended with: Error: half way/) as string,
    });
  });
});

it("waits longer after each attempt, never longer than the cap, and never for no time or for ever", () => {
  const pauses = Array.from({ length: 10_000 }, (_, attempts) => pauseAfter(attempts, BACKOFF, none));
  expect(pauses.slice(0, 8)).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
  expect(pauses.every((ms, at) => ms >= (pauses[at - 1] ?? 0) && ms <= 60_000)).toBe(true);
  expect(pauseAfter(3, BACKOFF, () => 1)).toBe(6400);
});

it("keeps what it stores short, and says whose end it is", () => {
  expect(invalid(new Error("y".repeat(9000)))).toMatchObject({
    reason: "invalid",
    final: true,
    error: "y".repeat(4000),
  });
  const task = { id: "t", token: "5" };
  expect(settlementOf(task, { outcome: "completed", result: "1" })).toEqual({
    ...task,
    outcome: "completed",
    result: "1",
  });
  expect(settlementOf(task, { outcome: "interrupted" })).toEqual({ ...task, outcome: "interrupted" });
});

describe("what a handler throws on purpose", () => {
  it("is known across two copies of the package, and nothing else is", () => {
    const foreign = Object.assign(new Error("x"), { [Symbol.for("fleet-framework.fatal")]: true });
    expect(isFatal(foreign)).toBe(true);
    expect(isFatal(Object.assign(new Error("x"), { name: "FatalError" }))).toBe(false);
    expect(
      pauseOf(Object.assign(new Error("x"), { seconds: 3, [Symbol.for("fleet-framework.retry-after")]: 1 })),
    ).toBe(3000);
    for (const other of [null, undefined, "x", new Error("x"), { seconds: 3 }]) {
      expect(isFatal(other)).toBe(false);
      expect(pauseOf(other)).toBeUndefined();
    }
  });

  it("refuses a pause that is none", () => {
    for (const seconds of [-1, Number.NaN, Infinity, "5" as unknown as number])
      expect(() => new RetryAfter(seconds)).toThrow(/RetryAfter: seconds must be/);
    expect(new RetryAfter(0).message).toBe("try again after 0 s");
  });
});
