import { monotonicMs } from "../internal/timers.ts";

/** A due time that has passed is looked at again no sooner than this. */
const LEAST_MS = 10;
/** A longer time is told again before it has passed. */
const MOST_MS = 3_600_000;

/** Fires at the earliest of the times that it was told. */
export class DueTimer {
  readonly #fire: () => void;
  #next: { at: number; timer: ReturnType<typeof setTimeout> } | undefined;

  constructor(fire: () => void) {
    this.#fire = fire;
  }

  /** Null: nothing is due. */
  in(ms: number | null): void {
    if (ms === null) return;
    const at = monotonicMs() + Math.max(LEAST_MS, ms);
    if (this.#next !== undefined && this.#next.at <= at) return;
    clearTimeout(this.#next?.timer);
    const fire = () => {
      this.#next = undefined;
      this.#fire();
    };
    const timer = setTimeout(fire, Math.min(at - monotonicMs(), MOST_MS));
    timer.unref();
    this.#next = { at, timer };
  }

  stop(): void {
    clearTimeout(this.#next?.timer);
  }
}
