import { expect, test } from "vitest";
import { follows, type Goal } from "./follow.ts";
import type { AutomationLine, SlotLine } from "../control/status-report.ts";

const slot = (slot_id: number, state: SlotLine["state"], generation = 1) =>
  ({ slot_id, state, generation }) as SlotLine;
const line = (slots: number, paused = false) => ({ slots, paused }) as AutomationLine;
const ALL: Goal = { name: "a", slotId: undefined, freshSince: undefined };

test("a slot follows when it runs, or when it is gone where it should be", () => {
  expect(follows(slot(0, "running"), line(1), ALL)).toBe(true);
  for (const state of ["starting", "waiting", "silent", "backing-off", "circuit-open", "blocked"] as const)
    expect(follows(slot(0, state), line(1), ALL)).toBe(false);
  expect(follows(slot(1, "stopping"), line(1), ALL)).toBe(false);
  expect(follows(slot(0, "waiting"), line(1, true), ALL)).toBe(true);
  expect(follows(slot(0, "running"), line(1, true), ALL)).toBe(false);
  expect(follows(slot(0, "silent"), line(1, true), ALL)).toBe(false);
});

test("a recycled slot follows when its run has begun since; the others do not count", () => {
  expect(follows(slot(0, "running", 4), line(2), { ...ALL, freshSince: 5 })).toBe(false);
  expect(follows(slot(0, "running", 5), line(2), { ...ALL, freshSince: 5 })).toBe(true);
  expect(follows(slot(0, "running", 4), line(2), { ...ALL, slotId: 1, freshSince: 5 })).toBe(true);
  expect(follows(slot(1, "running", 4), line(2), { ...ALL, slotId: 1, freshSince: 5 })).toBe(false);
});
