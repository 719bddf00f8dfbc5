import type { StoreOptions } from "../store.ts";

/** Store time in Unix milliseconds. The machine's clock is the store's: all processes on one file share it. */
export type Clock = () => number;

/** The one place where the store's time is read, so that tests can shift or freeze it. */
export function storeClock(options: Pick<StoreOptions, "clockOffsetMs" | "frozenNow">): Clock {
  const { clockOffsetMs = 0, frozenNow } = options;
  return frozenNow ?? (() => Date.now() + clockOffsetMs);
}
