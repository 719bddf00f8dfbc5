import { expect, it, onTestFinished } from "vitest";
import { FlightMark, markedLease } from "./flight-mark.ts";
import { readKept } from "./lease-marks.ts";

it("keeps a time for each lease, and none for the one that had its place before", () => {
  const mark = new FlightMark();
  onTestFinished(() => mark.close());
  expect(readKept(mark.fd, 0, 1)).toBe(0);
  mark.leases({ 9999: 77 });
  mark.kept([
    { number: 1, place: 0, until: 1234.5 },
    { number: 2, place: 3071, until: 99 },
    { number: 3, place: 3072, until: 5 },
  ]);
  expect(readKept(mark.fd, 0, 1)).toBe(1234.5);
  expect(readKept(mark.fd, 3071, 2)).toBe(99);
  // There is room for so many only.
  expect(readKept(mark.fd, 3072, 3)).toBe(0);
  expect(readKept(mark.fd, 0, 4)).toBe(0);
  mark.kept([{ number: 4, place: 0, until: 7 }]);
  expect([1, 4].map((number) => readKept(mark.fd, 0, number))).toEqual([0, 7]);
  mark.kept([{ number: 4, place: 0, until: null }]);
  expect(readKept(mark.fd, 0, 4)).toBe(0);
  // What else stands there is left alone.
  expect(markedLease(9999, mark.fd)).toBe(77);
  expect(mark.read()).toEqual({ lastSlot: null, endedBy: null, tasks: [] });
});

it("says nothing once it is closed", () => {
  const mark = new FlightMark();
  mark.close();
  expect(() => mark.kept([{ number: 1, place: 0, until: 1 }])).not.toThrow();
  expect(readKept(mark.fd, 0, 1)).toBe(0);
});
