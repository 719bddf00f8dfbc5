import { describe } from "vitest";
import type { StoreHarness } from "./harness.ts";
import { registryConfigs } from "./registry-configs.ts";
import { registryDesired } from "./registry-desired.ts";
import { registryLeader } from "./registry-leader.ts";
import { registryLeases } from "./registry-leases.ts";
import { registryTurns } from "./registry-turns.ts";
import { registryWishes } from "./registry-wishes.ts";
import { registryWorkers } from "./registry-workers.ts";

/** All that `Registry` promises. */
export function registryConformance(harness: StoreHarness): void {
  describe("registry: workers", () => {
    registryWorkers(harness);
  });
  describe("registry: what is asked of workers", () => {
    registryWishes(harness);
  });
  describe("registry: slot leases and state", () => {
    registryLeases(harness);
  });
  describe("registry: leader and assignments", () => {
    registryLeader(harness);
  });
  describe("registry: turns to move slots", () => {
    registryTurns(harness);
  });
  describe("registry: desired state, revision and hints", () => {
    registryDesired(harness);
  });
  describe("registry: history of config", () => {
    registryConfigs(harness);
  });
}
