import { expect, it, onTestFinished } from "vitest";
import { FlightMark, markedLease } from "./flight-mark.ts";

it("keeps a time for each slot, and none for those that were never named", () => {
  const mark = new FlightMark();
  onTestFinished(() => mark.close());
  expect(markedLease(0, mark.fd)).toBe(0);
  expect(mark.leases({ 0: 1234.5, 9998: 76, 9999: 77 })).toBe(true);
  mark.leases({ 3: 5 });
  expect([0, 1, 3, 9998, 9999, 10_000].map((slotId) => markedLease(slotId, mark.fd))).toEqual([
    1234.5, 0, 5, 76, 77, 0,
  ]);
  mark.leases({ 0: 0 });
  expect(markedLease(0, mark.fd)).toBe(0);
  // The slot that ran last stands beside them.
  expect(mark.read()).toEqual({ lastSlot: null, endedBy: null, tasks: [] });
});

it("says nothing once it is closed", () => {
  const mark = new FlightMark();
  mark.close();
  expect(mark.leases({ 0: 1 })).toBe(false);
  expect(markedLease(0, mark.fd)).toBe(0);
});
