// What is kept of one edge, and how its rate comes of it. Pure; `edge-observe.lua` counts alike.

const MINUTE_MS = 60_000;

export interface EdgeMinutes {
  count: number;
  firstSeenAt: number;
  lastSeenAt: number;
  /** Number of the minute that `current` counts; `before` counts the one before. */
  minute: number;
  current: number;
  before: number;
}

/** Adds to what is kept, if there is something. A clock that goes back counts in the minute that it was in before. */
export function counted(kept: EdgeMinutes | undefined, count: number, now: number): EdgeMinutes {
  const at = Math.floor(now / MINUTE_MS);
  if (kept === undefined)
    return { count, firstSeenAt: now, lastSeenAt: now, minute: at, current: count, before: 0 };
  const { current, before } = kept;
  const base = { ...kept, count: kept.count + count, lastSeenAt: Math.max(kept.lastSeenAt, now) };
  if (at <= kept.minute) return { ...base, current: current + count, before };
  return { ...base, minute: at, current: count, before: at === kept.minute + 1 ? current : 0 };
}

/** How many there were within about the last minute, to a hundredth. */
export function perMinute({ minute, current, before }: EdgeMinutes, now: number): number {
  const at = Math.floor(now / MINUTE_MS);
  const left = 1 - (now % MINUTE_MS) / MINUTE_MS;
  const rate = at <= minute ? current + before * left : at === minute + 1 ? current * left : 0;
  return Math.round(rate * 100) / 100;
}
