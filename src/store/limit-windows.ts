/**
 * The generic cell rate algorithm on whole microseconds. A permit counts for a step, `perMs` divided by `limit` and rounded up, so that
 * never more are granted than the limit says. `tat` is the theoretical arrival time of the next permit.
 *
 * Why it is exact: let the permits of a span that begins at a grant s be N, and t the time of its last grant. Each permit moved the tat by a
 * step, from s at least, so at t it stood at s + N steps or more; and it was granted, so that is at most t + burst steps. As t < s + perMs,
 * N is less than limit + burst. (This holds in the order of the calls, whatever their clocks say.)
 */
import type { LimitRecord, LimitWindow } from "./state-store.ts";

/** What tells the windows of one key apart: the length, and its place among windows of that length. A changed limit goes on from the same tat. */
export function windowIds(windows: readonly LimitWindow[]): string[] {
  const seen = new Map<number, number>();
  return windows.map(({ perMs }) => {
    const before = seen.get(perMs) ?? 0;
    seen.set(perMs, before + 1);
    return before === 0 ? String(perMs) : `${perMs}.${before + 1}`;
  });
}

export function stepUs({ limit, perMs }: LimitWindow): number {
  return Math.ceil((perMs * 1000) / limit);
}

/** When `cost` permits are due. More than `burst` at once have to wait for what they exceed it by. */
export function dueUs(window: LimitWindow, tat: number, cost: number, nowUs: number): number {
  const room = (window.burst - cost) * stepUs(window);
  return (room < 0 ? Math.max(tat, nowUs) : tat) - room;
}

export function nextTat(window: LimitWindow, tat: number, cost: number, atUs: number): number {
  return Math.max(tat, atUs) + cost * stepUs(window);
}

export interface KeptWindow extends LimitWindow {
  tat: number;
}

export function limitRecord(key: string, windows: readonly KeptWindow[], nowUs: number): LimitRecord {
  return {
    key,
    windows: windows.map(({ tat, ...window }) => ({
      ...window,
      available: Math.max(0, window.burst - Math.ceil(Math.max(0, tat - nowUs) / stepUs(window))),
    })),
    freeAt: Math.ceil(Math.max(...windows.map(({ tat }) => tat)) / 1000),
  };
}
