/**
 * When a schedule is due, and what to do about ticks that nobody fired. Pure: `now` is an argument (store time, Unix milliseconds).
 *
 * A tick's nominal time is what the schedule says, whenever it is fired; it is decided on once, and never goes back. A tick that is
 * looked at soon enough (`graceOf`) is on time and fired. Older ones were missed: nobody led the fleet, or the store was away. What
 * happens to those is the schedule's own policy.
 */
import { Cron } from "croner";
import type { ScheduleRecord, ScheduleSpec } from "../protocol/task.ts";

/** A tick so old still counts as on time, however soon the next one follows: about two rounds of a leader. */
const LEAST_GRACE_MS = 2500;
/** The longest: what it takes to replace a leader that was lost, and a little more. */
const MOST_GRACE_MS = 15_000;
/** Cron ticks that are looked at of a long absence: the newest. */
const MOST_MISSED = 1000;

/** How long after its time a tick counts as on time: half the way to the next one, 2.5 to 15 s. */
export function graceOf(timing: ScheduleSpec["timing"], tick: number): number {
  const next = nextTick(timing, tick);
  const half = next === null ? MOST_GRACE_MS : (next - tick) / 2;
  return Math.min(MOST_GRACE_MS, Math.max(LEAST_GRACE_MS, half));
}

export interface Due {
  /** Nominal times to fire, oldest first. */
  fire: number[];
  /** Everything up to here is decided; null when nothing was due. */
  upTo: number | null;
  /** Ticks that were missed and are not fired. */
  skipped: number;
}

/** What is due of a schedule at `now`. */
export function dueTicks({ spec, paused, since, lastTick }: ScheduleRecord, now: number): Due {
  // A single time that had passed when the schedule was made is due all the same.
  const from = "at" in spec.timing ? Number.NEGATIVE_INFINITY : since;
  const after = Math.max(lastTick ?? Number.NEGATIVE_INFINITY, from);
  const { newest, count } = ticksBetween(spec.timing, after, now, Math.max(spec.missedCap, 1));
  const last = newest.at(-1);
  if (last === undefined) return { fire: [], upTo: null, skipped: 0 };
  // What falls into a pause is nobody's miss: it is decided on, and not made up for.
  if (paused) return { fire: [], upTo: last, skipped: 0 };
  const graceMs = graceOf(spec.timing, last);
  const onTime = newest.filter((tick) => now - tick <= graceMs);
  const missed = newest.filter((tick) => now - tick > graceMs);
  const made = missed.slice(missed.length - madeUpFor(spec, missed.length));
  const fire = [...made, ...onTime];
  return { fire, upTo: last, skipped: count - fire.length };
}

function madeUpFor({ missed, missedCap }: ScheduleSpec, count: number): number {
  const most = { skip: 0, once: 1, all: missedCap };
  return Math.min(most[missed], count);
}

/** The first tick after `after`; null when there is none any more. */
export function nextTick(timing: ScheduleSpec["timing"], after: number): number | null {
  if ("at" in timing) return timing.at > after ? timing.at : null;
  if ("everyMs" in timing) {
    const { everyMs, anchor } = timing;
    return anchor + (Math.floor((after - anchor) / everyMs) + 1) * everyMs;
  }
  return cron(timing).nextRun(new Date(after))?.getTime() ?? null;
}

/** As {@link nextTick}; null too where it cannot be told, as of a pattern that is none. */
export function tellableTick(timing: ScheduleSpec["timing"], after: number): number | null {
  try {
    return nextTick(timing, after);
  } catch {
    return null;
  }
}

/** Ticks after `after` and up to `until`: the newest (at least `most` of them, where there are so many), oldest first, and how many in all. */
function ticksBetween(
  timing: ScheduleSpec["timing"],
  after: number,
  until: number,
  most: number,
): { newest: number[]; count: number } {
  if ("at" in timing) {
    const due = timing.at > after && timing.at <= until;
    return { newest: due ? [timing.at] : [], count: due ? 1 : 0 };
  }
  if ("everyMs" in timing) {
    const { everyMs, anchor } = timing;
    const first = Math.floor((after - anchor) / everyMs) + 1;
    const last = Math.floor((until - anchor) / everyMs);
    const count = Math.max(0, last - first + 1);
    const kept = Math.min(count, most + Math.ceil(LEAST_GRACE_MS / everyMs));
    return {
      newest: Array.from({ length: kept }, (_, index) => anchor + (last - kept + 1 + index) * everyMs),
      count,
    };
  }
  // Nothing is due far more often than something is: that costs one look.
  const next = cron(timing).nextRun(new Date(after));
  if (next === null || next.getTime() > until) return { newest: [], count: 0 };
  // The newest first, from the millisecond after `until`, as the reference itself does not count.
  const newest = cron(timing)
    .previousRuns(Math.min(MOST_MISSED, most + 3), new Date(until + 1))
    .map((date) => date.getTime())
    .filter((tick) => tick > after)
    .toReversed();
  return { newest, count: newest.length };
}

const known = new Map<string, Cron>();

/** Patterns are parsed once: a fleet has few, and they are asked about every few seconds. */
function cron({ cron: pattern, timezone }: { cron: string; timezone: string }): Cron {
  const key = `${timezone} ${pattern}`;
  let found = known.get(key);
  if (found === undefined) {
    if (known.size > 1000) known.clear();
    found = new Cron(pattern, { timezone, paused: true });
    known.set(key, found);
  }
  return found;
}
