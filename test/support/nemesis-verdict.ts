import { expect } from "vitest";
import { type NemesisReport, SLOTS } from "./nemesis.ts";

/** What must hold after any number of faults. */
export function expectWhole(report: NemesisReport): void {
  expect(report.injected.filter(({ bit }) => bit).length).toBeGreaterThan(report.injected.length / 2);
  const slots = Array.from({ length: SLOTS }, (_, slot) => slot);
  // By what the workers say, and by what came out of the stream.
  expect([...report.running.values()].map((workers) => workers.length)).toEqual(slots.map(() => 1));
  expect(report.running.size).toBe(SLOTS);
  expect([...report.emitters.keys()].toSorted((a, b) => a - b)).toEqual(slots);
  for (const [slot, emitters] of report.emitters) expect([slot, ...emitters]).toHaveLength(2);
  expect(report.overlaps).toEqual([]);
  expect(report.worstGapMs).toBeLessThan(30_000);
  expect(report.injected.filter(({ recoveredMs }) => recoveredMs === undefined)).toEqual([]);
  // Nothing is left behind.
  expect(report.orphanLeases).toBe(0);
  expect(report.exits).toEqual(report.exits.map(() => "exit code 0"));
  expect(report.leasesLeft).toBe(0);
  expect(report.processesLeft).toEqual([]);
  const descriptors = report.samples.map((sample) => sample.descriptors);
  const early = Math.max(...descriptors.slice(0, Math.ceil(descriptors.length / 3)));
  expect(descriptors.at(-1)).toBeLessThanOrEqual(early + 5);
}
