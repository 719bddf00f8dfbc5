import { monotonicMs } from "../../internal/timers.ts";

/**
 * What this process takes for the store's time: never later than it is, and no earlier than any that the process was told before. It is
 * behind by what the fastest answer took on its way.
 */
export class StoreClock {
  /** From local monotonic time to the store's; undefined until it was told. */
  #ahead: number | undefined;

  /** Milliseconds; 0 while nothing is known. */
  guess(now: number = monotonicMs()): number {
    return this.#ahead === undefined ? 0 : Math.floor(now + this.#ahead);
  }

  /** A call sent at `sentAt` and answered at `answeredAt` (local time) was at work when the store's clock stood at `storeMs`. */
  learn(storeMs: number, sentAt: number, answeredAt: number = monotonicMs()): void {
    const sample = storeMs - answeredAt;
    // Later than what had not even happened then (in whole milliseconds): one of the clocks was set, or this one runs faster.
    const wrong = this.#ahead === undefined || sentAt + this.#ahead >= storeMs + 1;
    if (wrong || sample > (this.#ahead as number)) this.#ahead = sample;
  }
}
