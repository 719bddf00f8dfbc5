import { monotonicMs } from "../internal/timers.ts";
import type { ClaimedTask } from "../protocol/task.ts";

export interface Collected {
  /** To be run together. */
  tasks: readonly ClaimedTask[];
  /** To be put back: not to be run with the others. */
  back: readonly ClaimedTask[];
}

export interface CollectOptions {
  size: number;
  waitMs: number;
  /** Up to `most` further tasks, none when there were none within `ms`. */
  more: (most: number, ms: number) => readonly ClaimedTask[] | Promise<readonly ClaimedTask[]>;
  /** Told what has been collected so far. */
  taken: (tasks: readonly ClaimedTask[]) => void;
}

/**
 * Adds to the first tasks of a `runMany` until there are `size`, or for `waitMs`. A task that has crashed before runs alone: if it is
 * the one that breaks its process, it must not take its neighbours to their crash limit.
 */
export async function collect(first: readonly ClaimedTask[], options: CollectOptions): Promise<Collected> {
  const { size, waitMs, more, taken } = options;
  let all = [...first];
  const until = monotonicMs() + waitMs;
  while (all.length > 0 && all.length < size && !all.some(hasCrashed)) {
    const left = until - monotonicMs();
    if (left <= 0) break;
    const next = await more(size - all.length, left);
    if (next.length === 0) break;
    all = [...all, ...next];
    taken(all);
  }
  const suspect = all.find(hasCrashed);
  if (suspect === undefined || all.length === 1) return { tasks: all, back: [] };
  if (suspect === all[0]) return { tasks: [suspect], back: all.slice(1) };
  const sound = all.filter((task) => !hasCrashed(task));
  return { tasks: sound, back: all.filter(hasCrashed) };
}

function hasCrashed({ crashes }: ClaimedTask): boolean {
  return crashes > 0;
}
