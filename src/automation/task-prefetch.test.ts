import { describe, expect, it } from "vitest";
import { type Demand, meanRun, SOON_MS, tasksAhead, tasksToClaim } from "./task-prefetch.ts";

const demand = (change: Partial<Demand> = {}): Demand => ({
  slots: 10,
  wanted: 0,
  held: 0,
  coming: 0,
  meanRunMs: undefined,
  limited: false,
  ...change,
});

describe("tasksToClaim", () => {
  it.each<[Partial<Demand>, number]>([
    [{ wanted: 10 }, 10],
    [{ wanted: 10, coming: 7 }, 3],
    [{ wanted: 10, coming: 12 }, 0],
    [{ wanted: 3, meanRunMs: 5000 }, 3],
    [{ wanted: 0, meanRunMs: 0.01 }, 64],
    [{ wanted: 0, coming: 64, meanRunMs: 0.01 }, 64],
    [{ wanted: 4, held: 100, coming: 8, meanRunMs: 0.01 }, 24],
    [{ slots: 100, wanted: 100, meanRunMs: 0.01 }, 150],
    [{ slots: 100, wanted: 100, meanRunMs: 40 }, 100],
    [{ wanted: 5000 }, 1000],
    [{ wanted: 2, meanRunMs: 0.01, limited: true }, 2],
    [{ slots: 0, meanRunMs: 0.01 }, 0],
  ])("%o claims %i", (change, count) => {
    expect(tasksToClaim(demand(change))).toBe(count);
  });

  it("never holds more than the slots can start soon, whatever the pace", () => {
    for (const slots of [1, 7, 100, 1000])
      for (const meanRunMs of [0, 0.01, 0.5, 3, 10, 24, 26, 49, 51, 1000, 1e6]) {
        const ahead = tasksAhead({ slots, meanRunMs, limited: false });
        expect(ahead).toBeGreaterThanOrEqual(0);
        // All slots are busy and `ahead` wait: the last of them starts after so long.
        const after = ahead === 0 ? 0 : (meanRunMs * (slots + ahead)) / slots;
        expect(after).toBeLessThanOrEqual(SOON_MS);
      }
    expect(tasksAhead({ slots: 1, meanRunMs: 26, limited: false })).toBe(0);
    expect(tasksAhead({ slots: 1, meanRunMs: 10, limited: false })).toBe(4);
  });
});

it("follows the pace of the last tasks", () => {
  let mean = meanRun(undefined, 0.1);
  expect(mean).toBe(0.1);
  mean = meanRun(mean, 1600);
  expect(mean).toBeGreaterThan(SOON_MS);
  for (let i = 0; i < 200; i++) mean = meanRun(mean, 0.1);
  expect(mean).toBeLessThan(1);
});
