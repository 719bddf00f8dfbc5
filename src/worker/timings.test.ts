import { describe, expect, it } from "vitest";
import { DEFAULT_TIMINGS, workerTimings, type WorkerTimings } from "./timings.ts";

const refusal = (given: unknown): string => {
  try {
    workerTimings(given as Partial<WorkerTimings>);
    return "accepted";
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    expect(code).toBe("FLEET_OPTION_INVALID");
    return message;
  }
};

describe("a worker's times", () => {
  it("are the defaults where nothing is said, and those pass their own checks", () => {
    expect(workerTimings(undefined)).toEqual(DEFAULT_TIMINGS);
    expect(workerTimings(DEFAULT_TIMINGS)).toEqual(DEFAULT_TIMINGS);
    // So that a slot in the middle of a call to a store that is away can end by itself.
    expect(DEFAULT_TIMINGS.stopGraceMs).toBeGreaterThan(5000);
  });

  it("are refused where one does not go with another, given or by default", () => {
    expect(workerTimings({ beatMs: 1000, leaseMs: 3000 }).leaseMs).toBe(3000);
    expect(refusal({ beatMs: 1000, leaseMs: 2999 })).toMatch(
      /^timings: leaseMs must be at least three beats \(3 × beatMs = 3000\).*, got 2999$/,
    );
    expect(refusal({ leaseMs: 2000 })).toContain("leaseMs");
    expect(refusal({ beatMs: 5000 })).toContain("got 10000");
    expect(refusal({ backoffCapMs: 10 })).toBe(
      "timings: backoffCapMs must be at least backoffBaseMs (1000), got 10",
    );
    expect(workerTimings({ backoffBaseMs: 10, backoffCapMs: 10 }).backoffCapMs).toBe(10);
  });

  it("have budgets that are checked field by field", () => {
    const budgets = [{ failures: 1, windowMs: 1 }];
    expect(workerTimings({ budgets }).budgets).toEqual(budgets);
    expect(workerTimings({ budgets: [] }).budgets).toEqual([]);
    expect(refusal({ budgets: 3 })).toContain("budgets must be an array of budgets");
    expect(refusal({ budgets: [...budgets, { failures: 0, windowMs: 1 }] })).toBe(
      "timings: budgets[1]: failures must be at least 1, got 0",
    );
    expect(refusal({ budgets: [{ failures: 1 }] })).toContain("budgets[0]: windowMs");
    expect(refusal({ budgets: [{ failures: 1, windowMS: 5 }] })).toContain('did you mean "windowMs"?');
    expect(refusal({ budgets: [null] })).toContain("budgets[0]");
    expect(refusal({ budgets: [undefined] })).toContain("budgets[0]");
  });

  it("name what is unknown, and leave children time for a sign of life", () => {
    expect(refusal({ leasMs: 1 })).toContain('did you mean "leaseMs"?');
    expect(refusal({ blockedMs: 500 })).toContain("blockedMs must be at least 1500");
  });
});
