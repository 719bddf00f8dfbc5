import { expect, it } from "vitest";
import type { ScheduleRecord } from "../protocol/task.ts";
import { renderSchedules, scheduleLine } from "./schedule-view.ts";

const NOW = Date.parse("2026-11-29T12:00:30Z");

function record(
  id: string,
  timing: ScheduleRecord["spec"]["timing"],
  more: Partial<ScheduleRecord> = {},
): ScheduleRecord {
  return {
    spec: {
      id,
      timing,
      payload: '{"n":1}',
      overlap: "allow",
      missed: "once",
      missedCap: 100,
      jitterMs: 0,
      task: { priority: 0, maxAttempts: 5, timeoutMs: 0, ttlMs: 0 },
      origin: "runtime",
    },
    paused: false,
    since: NOW - 60_000,
    lastTick: null,
    revision: 1,
    ...more,
  };
}

it("shows schedules with their next tick", () => {
  const lines = [
    record("minutely", { cron: "* * * * *", timezone: "UTC" }, { lastTick: NOW - 30_000 }),
    record("often", { everyMs: 20_000, anchor: 0 }, { paused: true }),
    record("over", { at: NOW - 1000 }, { lastTick: NOW - 1000 }),
  ].map((one) => scheduleLine("reports", one, NOW));
  expect(lines[0]).toMatchObject({ next_at: NOW + 30_000, next_in_seconds: 30, payload: { n: 1 } });
  expect(renderSchedules(lines, (text) => text)).toBe(
    [
      "QUEUE    SCHEDULE  WHEN                         NEXT     LAST                      MISSED",
      "reports  minutely  * * * * * (UTC)              in 30 s  2026-11-29T12:00:00.000Z  once",
      "reports  often     every 20 s                   paused   -                         once",
      "reports  over      at 2026-11-29T12:00:29.000Z  never    2026-11-29T12:00:29.000Z  once",
      "",
    ].join("\n"),
  );
});
