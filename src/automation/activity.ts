import { monotonicMs } from "../internal/timers.ts";
import type { SlotActivity } from "../protocol/host.ts";

/**
 * What one run of a slot shows of itself: turns, the last progress, and whether it waits on purpose. `touched` is called whenever
 * the slot's own code is about to go on.
 */
export class Activity {
  readonly #touched: () => void;
  #iterations = 0;
  #lastProgress = monotonicMs();
  #waits = 0;

  constructor(touched: () => void) {
    this.#touched = touched;
  }

  progress(): void {
    this.#lastProgress = monotonicMs();
    this.#touched();
  }

  turn(): void {
    this.#iterations += 1;
    this.progress();
  }

  /** So many tasks have ended. Their code does not go on with that, so `touched` is not called. */
  finished(tasks: number): void {
    this.#iterations += tasks;
    this.#lastProgress = monotonicMs();
  }

  /** Waits nest: several parts of one slot may wait at the same time. */
  waiting(on: boolean): void {
    this.#waits += on ? 1 : -1;
    this.progress();
  }

  report(slotId: number): Omit<SlotActivity, "task"> {
    return {
      slotId,
      iterations: this.#iterations,
      quietMs: Math.round(monotonicMs() - this.#lastProgress),
      waiting: this.#waits > 0,
    };
  }
}
