import { expect, test } from "vitest";
import { FleetError } from "../../errors.ts";
import { callError, isBusy, openError } from "./errors.ts";

const sqlite = (errcode: number) => Object.assign(new Error("text of SQLite"), { errcode });

test.each([
  [5, "FLEET_STORE_UNAVAILABLE", true, "locked"],
  [8, "FLEET_STORE_UNAVAILABLE", true, "read-only"],
  [14, "FLEET_STORE_UNAVAILABLE", true, "cannot be opened"],
  [13, "FLEET_STORE_FAILED", true, "disk is full"],
  [10, "FLEET_STORE_FAILED", true, "disk reported an error"],
  [11, "FLEET_STORE_FAILED", false, "damaged"],
  [1, "FLEET_STORE_FAILED", false, "text of SQLite"],
])("result code %i of a call is %s", (errcode, code, retryable, text) => {
  const error = callError(sqlite(errcode), "/x/fleet.db");
  expect(error).toMatchObject({ code, retryable, cause: { errcode } });
  expect(error.message).toContain("/x/fleet.db");
  expect(error.message).toContain(text);
});

test.each([
  [8, "FLEET_STORE_UNAVAILABLE", "read-only"],
  [11, "FLEET_STORE_INCOMPATIBLE", "damaged"],
  [14, "FLEET_STORE_UNAVAILABLE", "cannot be opened"],
  [26, "FLEET_STORE_INCOMPATIBLE", "no SQLite database"],
])("result code %i of an opening is %s", (errcode, code, text) => {
  const error = openError(sqlite(errcode), "/x/fleet.db");
  expect(error).toMatchObject({ code });
  expect(error.message).toContain(text);
});

test("extended codes count by their primary code, and our own errors pass", () => {
  expect(isBusy(sqlite(5 | (2 << 8)))).toBe(true);
  expect(isBusy(sqlite(8))).toBe(false);
  const own = new FleetError("FLEET_CLOSED", "closed");
  expect(callError(own, "x")).toBe(own);
});
