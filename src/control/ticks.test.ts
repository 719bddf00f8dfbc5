import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ScheduleRecord, ScheduleSpec } from "../protocol/task.ts";
import { dueTicks, graceOf, nextTick } from "./ticks.ts";

const MINUTE = 60_000;

function record(spec: Partial<ScheduleSpec>, more: Partial<ScheduleRecord> = {}): ScheduleRecord {
  return {
    spec: {
      id: "s",
      timing: { everyMs: 10_000, anchor: 0 },
      payload: "null",
      overlap: "allow",
      missed: "once",
      missedCap: 100,
      jitterMs: 0,
      task: { priority: 0, maxAttempts: 5, timeoutMs: 0, ttlMs: 0 },
      origin: "runtime",
      ...spec,
    },
    paused: false,
    since: 0,
    lastTick: null,
    revision: 1,
    ...more,
  };
}

describe("ticks that are due", () => {
  it("are fired on time, once", () => {
    const schedule = record({});
    expect(dueTicks(schedule, 9999)).toEqual({ fire: [], upTo: null, skipped: 0 });
    expect(dueTicks(schedule, 10_000)).toEqual({ fire: [10_000], upTo: 10_000, skipped: 0 });
    expect(dueTicks({ ...schedule, lastTick: 10_000 }, 19_999).fire).toEqual([]);
    expect(dueTicks({ ...schedule, lastTick: 10_000 }, 20_400).fire).toEqual([20_000]);
  });

  it.each([
    // Every 10 s, last fired at 10 s, nobody there until 49 s: 20, 30 and 40 s were missed.
    ["skip", []],
    ["once", [40_000]],
    ["all", [20_000, 30_000, 40_000]],
  ] as const)("after an absence of 35 s, with %s", (missed, fire) => {
    const due = dueTicks(record({ missed }, { lastTick: 10_000 }), 49_000);
    expect(due).toEqual({ fire, upTo: 40_000, skipped: 3 - fire.length });
  });

  it("are made up for with a cap, and the newest on time beside them", () => {
    const due = dueTicks(record({ missed: "all", missedCap: 2 }, { lastTick: 10_000 }), 60_500);
    expect(due).toEqual({ fire: [40_000, 50_000, 60_000], upTo: 60_000, skipped: 2 });
    const once = dueTicks(record({ missed: "once" }, { lastTick: 10_000 }), 60_500);
    expect(once.fire).toEqual([50_000, 60_000]);
    expect(dueTicks(record({ missed: "skip" }, { lastTick: 10_000 }), 60_500).fire).toEqual([60_000]);
  });

  it("cost the same after a year", () => {
    const started = performance.now();
    const cron = { cron: "* * * * * *", timezone: "UTC" };
    for (const timing of [cron, { everyMs: 1000, anchor: 0 }])
      expect(dueTicks(record({ timing, missed: "all" }, { lastTick: 0 }), 365 * 86_400_000).fire.length).toBe(
        103,
      );
    expect(performance.now() - started).toBeLessThan(2000);
  });

  it("pass by while the schedule is paused, and are not made up for", () => {
    const paused = record({ missed: "all" }, { paused: true, lastTick: 10_000 });
    expect(dueTicks(paused, 49_000)).toEqual({ fire: [], upTo: 40_000, skipped: 0 });
  });

  it("are on time for half the way to the next one, so a leader's loss drops none of a slow schedule", () => {
    const timings = [1000, 10_000, 60_000].map((everyMs) => ({ everyMs, anchor: 0 }));
    expect(timings.map((timing) => graceOf(timing, 0))).toEqual([2500, 5000, 15_000]);
    expect(graceOf({ cron: "0 3 * * *", timezone: "UTC" }, 0)).toBe(15_000);
    const minutely = record({ timing: { everyMs: MINUTE, anchor: 0 }, missed: "skip" });
    expect(dueTicks(minutely, MINUTE + 14_000).fire).toEqual([MINUTE]);
    expect(dueTicks(minutely, MINUTE + 16_000).fire).toEqual([]);
  });

  it("of a single time come once, also when they were missed", () => {
    const once = record({ timing: { at: 5000 } });
    expect(dueTicks(once, 4999).fire).toEqual([]);
    expect(dueTicks(once, 500_000).fire).toEqual([5000]);
    expect(dueTicks({ ...once, lastTick: 5000 }, 500_000).fire).toEqual([]);
    // It had passed when the schedule was made.
    expect(dueTicks(record({ timing: { at: 5000 } }, { since: 6000 }), 7000).fire).toEqual([5000]);
  });
});

describe("cron patterns", () => {
  const at = (text: string) => Date.parse(text);
  const daily = { cron: "30 2 * * *", timezone: "Europe/Berlin" };

  it("go by their time zone, also on the days when clocks change", () => {
    // 2026-03-29: 02:30 does not exist there. 2026-10-25: it comes twice, and counts once.
    const spring = nextTick(daily, at("2026-03-28T12:00:00Z")) as number;
    expect(new Date(spring).toISOString()).toBe("2026-03-29T01:00:00.000Z");
    expect(nextTick(daily, spring)).toBe(at("2026-03-30T00:30:00Z"));
    const autumn = nextTick(daily, at("2026-10-24T12:00:00Z")) as number;
    expect(new Date(autumn).toISOString()).toBe("2026-10-25T00:30:00.000Z");
    expect(nextTick(daily, autumn)).toBe(at("2026-10-26T01:30:00Z"));
  });

  it("include a tick at this very millisecond, and never one twice", () => {
    const timing = { cron: "* * * * *", timezone: "UTC" };
    const schedule = record({ timing }, { since: 0 });
    expect(dueTicks(schedule, MINUTE).fire).toEqual([MINUTE]);
    expect(dueTicks({ ...schedule, lastTick: MINUTE }, MINUTE).fire).toEqual([]);
    expect(dueTicks({ ...schedule, lastTick: MINUTE }, 2 * MINUTE).fire).toEqual([2 * MINUTE]);
  });

  it("that never come are never due", () => {
    const timing = { cron: "0 0 31 2 *", timezone: "UTC" };
    expect(nextTick(timing, 0)).toBeNull();
    expect(dueTicks(record({ timing }), 86_400_000).fire).toEqual([]);
  });
});

describe("over any row of looks", () => {
  const timings = fc.oneof(
    fc.record({
      everyMs: fc.integer({ min: 1000, max: 100_000 }),
      anchor: fc.integer({ min: 0, max: 50_000 }),
    }),
    fc
      .constantFrom("* * * * *", "*/7 * * * * *", "0 */2 * * * *")
      .map((pattern) => ({ cron: pattern, timezone: "UTC" })),
  );

  it("each tick is decided once, in order, and nothing is fired before its time", () => {
    fc.assert(
      fc.property(
        timings,
        fc.constantFrom<ScheduleSpec["missed"]>("skip", "once", "all"),
        fc.array(fc.integer({ min: 0, max: 90_000 }), { maxLength: 30 }),
        (timing, missed, steps) => {
          let now = 1_780_000_000_000;
          let schedule = record({ timing, missed, missedCap: 5 }, { since: now });
          const fired: { tick: number; at: number }[] = [];
          const decided: { upTo: number; at: number }[] = [];
          for (const step of steps) {
            now += step;
            const { fire, upTo } = dueTicks(schedule, now);
            fired.push(...fire.map((tick) => ({ tick, at: now })));
            if (upTo === null) continue;
            decided.push({ upTo, at: now });
            schedule = { ...schedule, lastTick: upTo };
          }
          const start = schedule.since;
          const grown = (numbers: number[]) =>
            numbers.every((one, at) => at === 0 || one > (numbers[at - 1] as number));
          expect(grown(fired.map(({ tick }) => tick))).toBe(true);
          expect(grown(decided.map(({ upTo }) => upTo))).toBe(true);
          expect(fired.filter(({ tick, at }) => tick > at || tick <= start)).toEqual([]);
          // Nothing was due that is left over, and what is skipped on principle is only made up for within the grace.
          expect(decided.filter(({ upTo, at }) => (nextTick(timing, upTo) ?? Infinity) <= at)).toEqual([]);
          const late = fired.filter(({ tick, at }) => at - tick > graceOf(timing, tick));
          expect(missed === "skip" ? late : []).toEqual([]);
        },
      ),
      { numRuns: 200 },
    );
  });
});
