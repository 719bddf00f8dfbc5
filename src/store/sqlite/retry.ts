import { after, monotonicMs } from "../../internal/timers.ts";
import { isBusy } from "./errors.ts";

/**
 * How long to wait before the lock is tried again, in ms. SQLite's own busy handler blocks the event loop and starves
 * whoever came late; short random waits share the lock evenly, because a transaction of ours lasts a few ms at most. They do not
 * grow with the number of refusals: whoever has waited for long would get the lock less and less often.
 */
export function busyWaitMs(random: () => number = Math.random): number {
  return 1 + 2 * random();
}

/** Runs `step` until it is not refused as busy, at most until `deadline` (monotonic ms); then throws the refusal. */
export async function whileBusy<T>(deadline: number, step: () => T): Promise<T> {
  for (;;) {
    try {
      return step();
    } catch (error) {
      if (!isBusy(error) || monotonicMs() >= deadline) throw error;
    }
    await new Promise<void>((resolve) => void after(busyWaitMs(), resolve));
  }
}
