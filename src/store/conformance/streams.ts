import { describe } from "vitest";
import type { StoreHarness } from "./harness.ts";
import { streamBounds } from "./streams-bounds.ts";
import { streamCounters } from "./streams-counters.ts";
import { streamHints } from "./streams-hints.ts";
import { streamModel } from "./streams-model.ts";
import { streamOrder } from "./streams-order.ts";
import { streamQuarantine } from "./streams-quarantine.ts";

/** All that `StreamStore` promises. */
export function streamConformance(harness: StoreHarness): void {
  describe("streams: order and pop", () => {
    streamOrder(harness);
  });
  describe("streams: bounds", () => {
    streamBounds(harness);
  });
  describe("streams: declarations, operation ids and counters", () => {
    streamCounters(harness);
  });
  describe("streams: random operations against a model", () => {
    streamModel(harness);
  });
  describe("streams: quarantine", () => {
    streamQuarantine(harness);
  });
  describe("streams: hints", () => {
    streamHints(harness);
  });
}
