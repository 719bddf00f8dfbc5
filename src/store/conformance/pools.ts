import { describe } from "vitest";
import type { StoreHarness } from "./harness.ts";
import { poolClaims } from "./pools-claims.ts";
import { poolEnds } from "./pools-ends.ts";
import { poolHolders } from "./pools-holders.ts";
import { poolLeases } from "./pools-leases.ts";
import { poolLife } from "./pools-life.ts";
import { poolLines } from "./pools-lines.ts";
import { poolListing } from "./pools-listing.ts";
import { poolModel } from "./pools-model.ts";
import { poolOrder } from "./pools-order.ts";
import { poolRace } from "./pools-race.ts";
import { poolSettings } from "./pools-settings.ts";
import { poolTime } from "./pools-time.ts";
import { poolWatch } from "./pools-watch.ts";
import { poolWhere } from "./pools-where.ts";

/** All that `PoolStore` promises. */
export function poolConformance(harness: StoreHarness): void {
  describe("pools: an item's life", () => {
    poolLife(harness);
  });
  describe("pools: where", () => {
    poolWhere(harness);
  });
  describe("pools: order", () => {
    poolOrder(harness);
  });
  describe("pools: claims", () => {
    poolClaims(harness);
  });
  describe("pools: leases and tokens", () => {
    poolLeases(harness);
  });
  describe("pools: what ends an item", () => {
    poolEnds(harness);
  });
  describe("pools: time, sweeps and retention", () => {
    poolTime(harness);
  });
  describe("pools: holders kept and lost", () => {
    poolHolders(harness);
  });
  describe("pools: settings and steps at once", () => {
    poolSettings(harness);
  });
  describe("pools: lines", () => {
    poolLines(harness);
  });
  describe("pools: pages, counts and refills", () => {
    poolListing(harness);
  });
  describe("pools: random operations against a model", () => {
    poolModel(harness);
    poolRace(harness);
  });
  describe("pools: hints", () => {
    poolWatch(harness);
  });
}
