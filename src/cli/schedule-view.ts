import { nextTickOf } from "../control/known-schedule.ts";
import type { ScheduleRecord, ScheduleSpec } from "../protocol/task.ts";
import { type Column, duration, renderTable } from "./table.ts";

/** One line of `fleet schedule ls --json`. Points in time are Unix milliseconds. */
export interface ScheduleLine {
  queue: string;
  id: string;
  /** The pattern with its time zone, the interval, or the single time. */
  when: string;
  paused: boolean;
  /** Nominal time of the next tick; null when there is none, or while it is paused. */
  next_at: number | null;
  next_in_seconds: number | null;
  /** Nominal time of the last tick that was decided on. */
  last_at: number | null;
  overlap: ScheduleSpec["overlap"];
  missed: ScheduleSpec["missed"];
  origin: ScheduleSpec["origin"];
  payload: unknown;
}

export function scheduleLine(queue: string, record: ScheduleRecord, now: number): ScheduleLine {
  const { spec, paused, lastTick } = record;
  const next = nextTickOf(record, now);
  return {
    queue,
    id: spec.id,
    when: whenOf(spec.timing),
    paused,
    next_at: next,
    next_in_seconds: next === null ? null : (next - now) / 1000,
    last_at: lastTick,
    overlap: spec.overlap,
    missed: spec.missed,
    origin: spec.origin,
    payload: JSON.parse(spec.payload) as unknown,
  };
}

export function whenOf(timing: ScheduleSpec["timing"]): string {
  if ("at" in timing) return `at ${new Date(timing.at).toISOString()}`;
  if ("everyMs" in timing) return `every ${duration(timing.everyMs)}`;
  return `${timing.cron} (${timing.timezone})`;
}

const COLUMNS: readonly Column<ScheduleLine>[] = [
  { title: "QUEUE", text: ({ queue }) => queue },
  { title: "SCHEDULE", text: ({ id }) => id },
  { title: "WHEN", text: ({ when }) => when },
  { title: "NEXT", text: nextText },
  { title: "LAST", text: ({ last_at: last }) => (last === null ? "-" : new Date(last).toISOString()) },
  { title: "MISSED", text: ({ missed }) => missed },
];

function nextText({ paused, next_in_seconds: seconds }: ScheduleLine): string {
  if (paused) return "paused";
  return seconds === null ? "never" : `in ${duration(seconds * 1000)}`;
}

export function renderSchedules(
  lines: readonly ScheduleLine[],
  paintTitle: (text: string) => string,
): string {
  return lines.length === 0
    ? "There are no schedules yet.\n"
    : `${renderTable(lines, COLUMNS, paintTitle)}\n`;
}
