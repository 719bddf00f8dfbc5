import { after } from "../../internal/timers.ts";
import { monotonicMs } from "../../internal/timers.ts";
import { isBusy } from "./errors.ts";

/**
 * How long to wait before the lock is tried again, in ms. SQLite's own busy handler blocks the event loop and starves
 * whoever came late; short random waits share the lock evenly, because a transaction of ours lasts a few ms at most.
 */
export function busyWaitMs(attempt: number, random: () => number = Math.random): number {
  const ceiling = Math.min(6, 1 + attempt / 4);
  return 0.5 + ceiling * random();
}

/** Runs `step` until it is not refused as busy, at most until `deadline` (monotonic ms); then throws the refusal. */
export async function whileBusy<T>(deadline: number, step: () => T): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return step();
    } catch (error) {
      if (!isBusy(error) || monotonicMs() >= deadline) throw error;
    }
    await new Promise<void>((resolve) => void after(busyWaitMs(attempt), resolve));
  }
}
