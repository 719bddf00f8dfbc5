/**
 * How many tasks to submit for a pool that runs short. Pure: `now` is an argument (this process's own monotonic time).
 */

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 300_000;

export interface RefillState {
  /** Items that match: free, held or cooling. Counted after `outstanding` was. */
  count: number;
  below: number;
  /** Which of the places 0 … `below - 1` have a task that is not finished. */
  outstanding: ReadonlySet<number>;
  /** Rounds in a row whose tasks brought nothing. */
  failures: number;
  /** When the last one ended. */
  failedAt: number;
}

/**
 * Places for which a task is to be submitted now: one per item that is missing and for which none is under way. After failures only when the
 * pause is over: 1 s, doubling, at most 5 min; and then one alone is tried.
 */
export function missingPlaces(
  { count, below, outstanding, failures, failedAt }: RefillState,
  now: number,
): number[] {
  let missing = below - count - outstanding.size;
  if (missing <= 0) return [];
  if (failures > 0) {
    if (now < failedAt + refillPauseMs(failures)) return [];
    if (outstanding.size > 0) return [];
    missing = 1;
  }
  const places: number[] = [];
  for (let place = 0; place < below && places.length < missing; place++)
    if (!outstanding.has(place)) places.push(place);
  return places;
}

export function refillPauseMs(failures: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 20));
}
