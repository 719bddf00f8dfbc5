import type { Direction, User } from "../protocol/topology.ts";

/** Most edges that are kept of a fleet. */
export const MOST_EDGES = 5000;

/**
 * Observed use: who used what in which direction, and how often. Figures for people, not books: a call whose answer is lost may have
 * counted, and is not repeated. Guarantees of every back end:
 *
 * - `observe` is one atomic step. What it counts is seen now, also where the count is 0: then something was asked for, and nothing came.
 * - Bounded: at most 5000 edges. Above that those that were seen longest ago go.
 * - `perMinute` is the count of this minute of the store's clock, and as much of the minute before as lies within the last 60 seconds, if
 *   that one's counts are taken as spread evenly.
 */
export interface EdgeStore {
  observe(args: { from: User; edges: readonly EdgeCount[] }): Promise<void>;
  /** All that are kept, in no promised order. */
  list(): Promise<{ now: number; edges: EdgeRecord[] }>;
  /** Forgets those that were seen last `unseenMs` ago or longer. */
  sweep(args: { unseenMs: number }): Promise<{ forgotten: number }>;
}

export interface EdgeCount {
  direction: Direction;
  /** Of what is used: what kind it is follows from the direction. */
  name: string;
  /** How many entries, tasks, items or events since the last report. */
  count: number;
}

export interface EdgeRecord {
  from: User;
  direction: Direction;
  name: string;
  /** Of all reports. */
  count: number;
  firstSeenAt: number;
  lastSeenAt: number;
  perMinute: number;
}
