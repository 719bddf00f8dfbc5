/**
 * How many tasks a process should claim. Pure.
 *
 * As many as its slots are free; and a few more while tasks are so short that a slot would have to wait for the next call's answer. What
 * is held ahead must start soon, because nobody else can have it meanwhile: within `SOON_MS`, going by how long the last tasks took.
 */

/** What is held ahead is started within so long, or given back. */
export const SOON_MS = 50;
/** Most tasks held ahead: the store works on one half while the slots work on the other. */
const FEW = 128;
/** Most tasks of one call. */
const MOST_PER_CALL = 1000;

export interface Demand {
  /** Slots that take tasks. */
  slots: number;
  /** Tasks that slots wait for. */
  wanted: number;
  /** Claimed, and no slot has them yet. */
  held: number;
  /** Asked for in calls under way. */
  coming: number;
  /** How long the last tasks took, in ms; undefined before the first. */
  meanRunMs: number | undefined;
  /** Claims count against a limit over all workers: what is held ahead would keep others from working. */
  limited: boolean;
}

/** For the next call: never more at once than what slots wait for, or half of what may be held, so that two calls take turns. */
export function tasksToClaim(demand: Demand): number {
  const { wanted, held, coming } = demand;
  const most = wanted + tasksAhead(demand);
  const lacking = Math.max(0, most - held - coming);
  return Math.min(lacking, Math.max(wanted, Math.ceil(most / 2)), MOST_PER_CALL);
}

/** How many tasks may be held beyond those that slots wait for. */
export function tasksAhead({
  slots,
  meanRunMs,
  limited,
}: Omit<Demand, "wanted" | "held" | "coming">): number {
  if (slots === 0 || limited || meanRunMs === undefined) return 0;
  // `held` tasks are through after `meanRunMs * held / slots`; what runs already counts too.
  const soon = Math.floor((slots * SOON_MS) / Math.max(meanRunMs, 0.001)) - slots;
  return Math.max(0, Math.min(soon, Math.max(FEW, 2 * slots)));
}

/** A moving average over about the last 16 runs. */
export function meanRun(before: number | undefined, ms: number): number {
  return before === undefined ? ms : before + (ms - before) / 16;
}
