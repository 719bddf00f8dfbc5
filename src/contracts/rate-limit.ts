import { FleetError } from "../errors.ts";
import { checkName } from "./name.ts";
import { checkOptions, integer, number, type OptionRules, refuse } from "./options.ts";

export interface RateWindow {
  /** How many permits in `perSeconds`. */
  limit: number;
  /** Length of the window, in seconds; 0.001 to 366 days. */
  perSeconds: number;
  /**
   * How many of them may be taken at once; 1 (default) spreads them evenly. Over any span of the window no more than
   * `limit + burst - 1` are granted: with a burst of 1 never more than `limit`.
   */
  burst?: number;
}

export interface RateLimitShared {
  /** Each key is a limit of its own; default none. */
  key?: string;
  /** How many permits one `take` takes, where it does not say; default 1. Without a `burst`, it is the burst, too. */
  cost?: number;
}

/** One window, or several that all have to agree. All who use a limit should give the same ones. */
export type RateLimitOptions =
  | (RateLimitShared & RateWindow & { windows?: undefined })
  | (RateLimitShared & { windows: readonly RateWindow[] });

/** The rate limit that a queue's tasks are started by: `cost` is what each of them takes. */
export type QueueRateLimit = RateLimitOptions & {
  /** Which rate limit, as in `ctx.rateLimit(name, …)`; default the queue's own name. */
  name?: string;
};

/** A rate limit with all filled in. */
export interface CheckedRateLimit {
  readonly name: string;
  readonly key: string;
  readonly cost: number;
  /** The shortest first: so all who give the same ones mean the same, in whatever order. */
  readonly windows: readonly { readonly limit: number; readonly perMs: number; readonly burst: number }[];
}

const YEAR = 366 * 86_400;
const MOST_WINDOWS = 8;
const MAX_KEY = 512;
/** The store counts whole microseconds. */
const MOST_PER_MS = 1000;

/** How many permits. */
export const permits = integer({ min: 1, max: 1_000_000_000 });

const WINDOW: OptionRules<Required<RateWindow>> = {
  limit: permits,
  perSeconds: number({ min: 0.001, max: YEAR }),
  burst: permits,
};
type Given = Required<RateWindow> & { name: string; key: string; cost: number; windows: readonly unknown[] };
const RULES: OptionRules<Omit<Given, "name">> = { key: stateKey, cost: permits, ...WINDOW, windows: list };

/** A key of a lock, counter or rate limit: any text, for the stores without NUL characters. */
export function stateKey(value: unknown, where: string): string {
  if (typeof value === "string" && value.length <= MAX_KEY && !value.includes("\0")) return value;
  return refuse(where, `a text of at most ${MAX_KEY} characters, none of them NUL`, value);
}

/** Throws `FLEET_NAME_INVALID` or `FLEET_OPTION_INVALID`. */
export function checkRateLimit(where: string, name: string, options: unknown): CheckedRateLimit {
  return filledIn(where, checkName("rate limit", name), checkOptions(where, options, RULES));
}

/** As {@link checkRateLimit}, for the option of a queue of this name. */
export function checkQueueRateLimit(where: string, queue: string, options: unknown): CheckedRateLimit {
  const { name = queue, ...given } = checkOptions<Given>(where, options, {
    ...RULES,
    name: (value) => checkName("rate limit", value),
  });
  return filledIn(where, name, given);
}

function filledIn(where: string, name: string, given: Partial<Given>): CheckedRateLimit {
  const { key = "", cost = 1 } = given;
  const windows = windowsOf(where, given, cost);
  checkCost(where, cost, windows);
  return { name, key, cost, windows };
}

/** A cost that can never be granted is refused. */
export function checkCost(where: string, cost: number, windows: CheckedRateLimit["windows"]): void {
  const tooSmall = windows.find(({ burst }) => burst < cost);
  if (tooSmall === undefined) return;
  const { limit, perMs, burst } = tooSmall;
  throw invalid(
    `${where}: a cost of ${cost} is more than may be taken at once of ${limit} in ${perMs / 1000} s; raise burst, which is ${burst}, to ${cost} at least`,
  );
}

function list(value: unknown, where: string): readonly unknown[] {
  if (Array.isArray(value) && value.length > 0 && value.length <= MOST_WINDOWS) return value;
  return refuse(where, `an array of 1 to ${MOST_WINDOWS} windows { limit, perSeconds, burst? }`, value);
}

function windowsOf(where: string, given: Partial<Given>, cost: number): CheckedRateLimit["windows"] {
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
): CheckedRateLimit["windows"][number] {
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

function invalid(message: string): FleetError {
  return new FleetError("FLEET_OPTION_INVALID", message);
}
