import { describe } from "vitest";
import type { StoreHarness } from "./harness.ts";
import { queueAtOnce } from "./queues-at-once.ts";
import { queueBearers } from "./queues-bearers.ts";
import { queueDuplicates } from "./queues-duplicates.ts";
import { queueHandOff } from "./queues-handoff.ts";
import { queueLength } from "./queues-length.ts";
import { queueLife } from "./queues-life.ts";
import { queueLimits } from "./queues-limits.ts";
import { queueListing } from "./queues-listing.ts";
import { queueModel } from "./queues-model.ts";
import { queueOrder } from "./queues-order.ts";
import { queuePayloads } from "./queues-payloads.ts";
import { queueRace } from "./queues-race.ts";
import { queueRetention } from "./queues-retention.ts";
import { queueSchedules } from "./queues-schedules.ts";
import { queueTime } from "./queues-time.ts";
import { queueTokens } from "./queues-tokens.ts";
import { queueWatch } from "./queues-watch.ts";

/** All that `QueueStore` promises. */
export function queueConformance(harness: StoreHarness): void {
  describe("queues: a task's life", () => {
    queueLife(harness);
  });
  describe("queues: tokens and repeats", () => {
    queueTokens(harness);
  });
  describe("queues: order and turns", () => {
    queueOrder(harness);
  });
  describe("queues: limits", () => {
    queueLimits(harness);
  });
  describe("queues: limits under many takers", () => {
    queueRace(harness);
  });
  describe("queues: many calls at once", () => {
    queueAtOnce(harness);
  });
  describe("queues: due times, leases and losses", () => {
    queueTime(harness);
  });
  describe("queues: time to live and retention", () => {
    queueRetention(harness);
  });
  describe("queues: duplicates", () => {
    queueDuplicates(harness);
  });
  describe("queues: whose key it is, and ticks", () => {
    queueBearers(harness);
  });
  describe("queues: payloads and names", () => {
    queuePayloads(harness);
  });
  describe("queues: lists and length", () => {
    queueLength(harness);
  });
  describe("queues: pages, cancellation and retry by hand", () => {
    queueListing(harness);
  });
  describe("queues: schedules", () => {
    queueSchedules(harness);
  });
  describe("queues: random operations against a model", () => {
    queueModel(harness);
  });
  describe("queues: hints", () => {
    queueWatch(harness);
  });
  describe("queues: hand-off", () => {
    queueHandOff(harness);
  });
}
