import { expect, it } from "vitest";
import { FleetError } from "../errors.ts";
import { isStoreLost } from "./store-lost.ts";

it("tells what only the store is to blame for", () => {
  const retryable = { retryable: true };
  expect(isStoreLost(new FleetError("FLEET_STORE_UNAVAILABLE", "away", retryable))).toBe(true);
  expect(isStoreLost(new FleetError("FLEET_STORE_FAILED", "disk full", retryable))).toBe(true);
  expect(isStoreLost(new FleetError("FLEET_LEASE_LOST", "gone"))).toBe(true);
  expect(isStoreLost(new FleetError("FLEET_STORE_FAILED", "damaged"))).toBe(false);
  expect(isStoreLost(new FleetError("FLEET_PAYLOAD_INVALID", "no number"))).toBe(false);
  expect(isStoreLost(Object.assign(new Error("not ours"), retryable))).toBe(false);
  expect(isStoreLost(undefined)).toBe(false);
});

it("blames code that floods its own buffer", () => {
  expect(isStoreLost(new FleetError("FLEET_STORE_BUSY", "full", { retryable: true }))).toBe(false);
});
