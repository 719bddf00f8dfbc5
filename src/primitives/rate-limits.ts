import { checkOptions, type OptionRules } from "../contracts/options.ts";
import { checkCost, checkRateLimit, permits, type RateLimitOptions } from "../contracts/rate-limit.ts";
import { monotonicMs, sleep } from "../internal/timers.ts";
import { uuidv7 } from "../internal/uuid.ts";
import type { LimitStore, LimitWindow } from "../store/state-store.ts";
import type { RateLimit, TakeOptions, TakeResult } from "./rate-limit.ts";
import { type StateUse, waitingOnPurpose, waitSeconds } from "./state-use.ts";

const TAKE: OptionRules<Required<TakeOptions>> = { waitSeconds, cost: permits };

/** The rate limits of one process. Whoever waits has its permit reserved, so nothing is shared but the end. */
export class RateLimits {
  readonly #store: LimitStore;
  readonly #over: AbortSignal;

  constructor(store: LimitStore, over: AbortSignal) {
    this.#store = store;
    this.#over = over;
  }

  rateLimit(name: string, options: RateLimitOptions, use: StateUse): RateLimit {
    const where = `rate limit ${JSON.stringify(name)}`;
    const { key, cost: usual, windows } = checkRateLimit(where, name, options);
    const signal = use.signal ?? this.#over;
    return {
      take: async (how) => {
        const { waitSeconds: wait = 0, cost = usual } = checkOptions<Required<TakeOptions>>(
          `${where}: take`,
          how,
          TAKE,
        );
        checkCost(where, cost, windows);
        const args = { name, key, windows, cost };
        return waitingOnPurpose(use, wait, () => this.#take(args, wait * 1000, use, signal));
      },
    };
  }

  async #take(
    args: { name: string; key: string; windows: readonly LimitWindow[]; cost: number },
    withinMs: number,
    use: StateUse,
    signal: AbortSignal,
  ): Promise<TakeResult> {
    use.fence?.();
    const request = uuidv7();
    const { outcome, waitMs, at } = await this.#store.take({ ...args, withinMs, request });
    if (outcome === "later") return { granted: false, retryInSeconds: waitMs / 1000 };
    const due = monotonicMs() + waitMs;
    // A timer may fire a little early.
    for (let left = waitMs; left > 0 && !signal.aborted; left = due - monotonicMs())
      await sleep(left, signal);
    if (monotonicMs() < due) {
      // Whoever waits no more gives its place back.
      await this.#store.giveBack({ ...args, at, request }).catch(() => undefined);
      return { granted: false, retryInSeconds: Math.max(0, due - monotonicMs()) / 1000 };
    }
    use.activity?.progress();
    return { granted: true, at };
  }
}
