import { describe } from "vitest";
import type { StoreHarness } from "./harness.ts";
import { counterCases } from "./state-counters.ts";
import { limitCases } from "./state-limits.ts";
import { limitProperties } from "./state-limits-random.ts";
import { lockLines } from "./state-lines.ts";
import { lockCases } from "./state-locks.ts";

/** All that `StateStore` promises. */
export function stateConformance(harness: StoreHarness): void {
  describe("state: locks", () => {
    lockCases(harness);
  });
  describe("state: lines before locks", () => {
    lockLines(harness);
  });
  describe("state: counters", () => {
    counterCases(harness);
  });
  describe("state: rate limits", () => {
    limitCases(harness);
  });
  describe("state: rate limits under random use", () => {
    limitProperties(harness);
  });
}
