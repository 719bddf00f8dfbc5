import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { backoffMs } from "./backoff.ts";

const anyOptions = fc.record({
  baseMs: fc.integer({ min: 1, max: 60_000 }),
  capMs: fc.integer({ min: 1, max: 86_400_000 }),
  factor: fc.double({ min: 1, max: 1000, noNaN: true }),
});

describe("backoffMs", () => {
  it("is finite, within 0 and the cap, and never shrinks, for attempts 1 to 10 000", () => {
    fc.assert(
      fc.property(anyOptions, (options) => {
        const delays = Array.from({ length: 10_000 }, (_, at) => backoffMs(at + 1, options));
        const wrong = delays.findIndex(
          (delay, at) =>
            !Number.isFinite(delay) || delay < 0 || delay > options.capMs || delay < (delays[at - 1] ?? 0),
        );
        expect(wrong).toBe(-1);
      }),
      { numRuns: 30 },
    );
  });

  it("starts at the base, doubles, and ends at the cap", () => {
    const options = { baseMs: 100, capMs: 1000 };
    expect([1, 2, 3, 4, 5, 10_000].map((attempt) => backoffMs(attempt, options))).toEqual([
      100, 200, 400, 800, 1000, 1000,
    ]);
  });

  it.each([0, -5, 0.5])("takes attempt %d for the first", (attempt) => {
    expect(backoffMs(attempt, { baseMs: 100, capMs: 1000 })).toBe(100);
  });

  it("takes off at most the jitter's share", () => {
    const options = { baseMs: 100, capMs: 1000, jitter: 0.2 };
    expect(backoffMs(1, options, () => 0)).toBe(100);
    expect(backoffMs(1, options, () => 1)).toBe(80);
  });
});
