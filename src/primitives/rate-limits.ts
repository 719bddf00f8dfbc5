import { checkName } from "../contracts/name.ts";
import { checkOptions, integer, number, type OptionRules, refuse } from "../contracts/options.ts";
import { FleetError } from "../errors.ts";
import { monotonicMs, sleep } from "../internal/timers.ts";
import { uuidv7 } from "../internal/uuid.ts";
import type { LimitStore, LimitWindow } from "../store/state-store.ts";
import type { RateLimit, RateLimitOptions, RateWindow, TakeOptions, TakeResult } from "./rate-limit.ts";
import { stateKey, type StateUse, waitingOnPurpose, waitSeconds } from "./state-use.ts";

const YEAR = 366 * 86_400;
const MOST_WINDOWS = 8;
/** The store counts whole microseconds. */
const MOST_PER_MS = 1000;
const permits = integer({ min: 1, max: 1_000_000_000 });

const WINDOW: OptionRules<Required<RateWindow>> = {
  limit: permits,
  perSeconds: number({ min: 0.001, max: YEAR }),
  burst: permits,
};
const SHARED = { key: stateKey, cost: permits };
type Given = Required<RateWindow> & { key: string; cost: number; windows: readonly unknown[] };
const RULES: OptionRules<Given> = { ...SHARED, ...WINDOW, windows: list };
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
    checkName("rate limit", name);
    const where = `rate limit ${JSON.stringify(name)}`;
    const given = checkOptions<Given>(where, options, RULES);
    const { key = "", cost: usual = 1 } = given;
    const windows = windowsOf(where, given, usual);
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
    const { outcome, waitMs, at } = await this.#store.take({ ...args, withinMs, request: uuidv7() });
    if (outcome === "later") return { granted: false, retryInSeconds: waitMs / 1000 };
    const due = monotonicMs() + waitMs;
    // A timer may fire a little early.
    for (let left = waitMs; left > 0 && !signal.aborted; left = due - monotonicMs())
      await sleep(left, signal);
    if (monotonicMs() < due) {
      // Whoever waits no more gives its place back, where nobody stands behind it.
      await this.#store.giveBack({ ...args, at }).catch(() => undefined);
      return { granted: false, retryInSeconds: Math.max(0, due - monotonicMs()) / 1000 };
    }
    use.activity?.progress();
    return { granted: true, at };
  }
}

function list(value: unknown, where: string): readonly unknown[] {
  if (Array.isArray(value) && value.length > 0 && value.length <= MOST_WINDOWS) return value;
  return refuse(where, `an array of 1 to ${MOST_WINDOWS} windows { limit, perSeconds, burst? }`, value);
}

/** The windows in milliseconds, the shortest first: so all who give the same ones mean the same, in whatever order. */
function windowsOf(where: string, given: Partial<Given>, cost: number): LimitWindow[] {
  const { windows, limit, perSeconds, burst } = given;
  if (windows === undefined) return [windowOf(where, { limit, perSeconds, burst }, cost)];
  if ((limit ?? perSeconds ?? burst) !== undefined)
    throw invalid(`${where}: give either limit, perSeconds and burst, or windows; not both`);
  const found = windows
    .map((window, i) => {
      const at = `${where}: windows[${i}]`;
      return windowOf(at, checkOptions<Required<RateWindow>>(at, window, WINDOW), cost);
    })
    .toSorted((a, b) => a.perMs - b.perMs);
  const twice = found.find(({ perMs }, i) => perMs === found[i + 1]?.perMs);
  if (twice !== undefined)
    throw invalid(`${where}: two windows of ${twice.perMs / 1000} s; keep the tighter one`);
  return found;
}

function windowOf(
  where: string,
  { limit, perSeconds, burst }: { [K in keyof RateWindow]?: RateWindow[K] | undefined },
  cost: number,
): LimitWindow {
  if (limit === undefined || perSeconds === undefined)
    throw invalid(
      `${where}: ${limit === undefined ? "limit" : "perSeconds"} is missing, for example { limit: 10, perSeconds: 1 }`,
    );
  const perMs = Math.round(perSeconds * 1000);
  if (limit > perMs * MOST_PER_MS)
    throw invalid(
      `${where}: ${limit} in ${perSeconds} s is more than a million per second, which no store keeps up with`,
    );
  const atOnce = burst ?? Math.min(cost, limit);
  if (atOnce > limit)
    throw invalid(`${where}: burst must be at most limit, which is ${limit}, got ${atOnce}`);
  return { limit, perMs, burst: atOnce };
}

function checkCost(where: string, cost: number, windows: readonly LimitWindow[]): void {
  const tooSmall = windows.find(({ burst }) => burst < cost);
  if (tooSmall === undefined) return;
  const { limit, perMs, burst } = tooSmall;
  throw invalid(
    `${where}: a cost of ${cost} is more than may be taken at once of ${limit} in ${perMs / 1000} s; raise burst, which is ${burst}, to ${cost} at least`,
  );
}

function invalid(message: string): FleetError {
  return new FleetError("FLEET_OPTION_INVALID", message);
}
