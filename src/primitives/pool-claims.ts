import { FleetError, isFleetError, messageOf } from "../errors.ts";
import { backoffMs } from "../internal/backoff.ts";
import type { Log, Throttle } from "../internal/log.ts";
import { monotonicMs, sleep } from "../internal/timers.ts";
import { uuidv7 } from "../internal/uuid.ts";
import type { ClaimedItem, ItemTags } from "../protocol/pool.ts";
import type { ClaimResult, PoolStore } from "../store/pool-store.ts";
import type { PoolPlace, PoolWaiters } from "./pool-waiters.ts";

/** A waiter that is not heard of for so long loses its place in line. */
const PATIENCE_MS = 3000;
/** How often a place in line is confirmed; also the look behind lost hints. */
const REFRESH_MS = 1000;
/** After a call that failed. */
const RETRY = { baseMs: 50, capMs: 1000, jitter: 0.3 };
/** The store may be emptied between a declaration and a claim; but not time after time. */
const DECLARE_TRIES = 5;

export interface ClaimArgs {
  where: ItemTags;
  n: number;
  holdMs: number;
  /** `Infinity` waits for ever. */
  waitMs: number;
  autoExtend: boolean;
  by: string;
  /** Ends the wait early: the slot is to end, or the fleet was closed. */
  signal: AbortSignal | undefined;
  /** Throws where this user must have no effect on the store any more. */
  fence: (() => void) | undefined;
}

export interface Granted {
  item: ClaimedItem;
  /** Own (monotonic) time before which the lease cannot end in the store. */
  untilMs: number;
}

export interface PoolClaimsParts {
  store: PoolStore;
  pool: string;
  holder: string;
  waiters: PoolWaiters;
  /** Writes the pool's settings where there are none. */
  declare: () => Promise<void>;
  log: Log;
  quietly: Throttle;
}

/**
 * Claims items of one pool, in line where they have to be waited for. One request per claim, whatever its looks: so an answer that was
 * lost is had by the next one, and what a request was granted behind its back is given up with it.
 */
export class PoolClaims {
  readonly #parts: PoolClaimsParts;
  readonly #leaving = new Set<Promise<void>>();
  readonly #over = new AbortController();

  constructor(parts: PoolClaimsParts) {
    this.#parts = parts;
  }

  async claim(args: ClaimArgs): Promise<Granted[] | null> {
    const request = uuidv7();
    let place: PoolPlace | undefined;
    let granted: Granted[] | null = null;
    // Whether the store may know of this request.
    let known = false;
    try {
      const until = monotonicMs() + args.waitMs;
      for (let failures = 0; ;) {
        args.fence?.();
        const started = monotonicMs();
        let answer: ClaimResult;
        try {
          known = true;
          answer = await this.#ask(request, args);
          failures = 0;
        } catch (error) {
          failures += 1;
          if (!(await this.#rideOut(error, failures, until, args.signal))) throw error;
          continue;
        }
        if (answer.outcome === "undeclared") throw this.#gone();
        if (answer.outcome === "claimed") {
          const { now } = answer;
          granted = answer.items.map((item) => ({ item, untilMs: started + item.until - now }));
          return granted;
        }
        const left = until - monotonicMs();
        known = args.waitMs > 0;
        if (left <= 0 || isAborted(args.signal)) return null;
        place ??= this.#parts.waiters.enter(lineOf(args.where));
        await place.woken(Math.min(left, nextLook(answer)), args.signal);
        if (isAborted(args.signal)) return null;
      }
    } finally {
      if (granted === null && known) this.#leave(request);
      place?.leave();
    }
  }

  /** Waits until what was given up is given up in the store, too, where that answers. */
  async settled(): Promise<void> {
    this.#over.abort();
    await Promise.all(this.#leaving);
  }

  async #ask(request: string, args: ClaimArgs): Promise<ClaimResult> {
    const { store, pool, holder, declare } = this.#parts;
    const { where, n, holdMs, autoExtend, by, waitMs } = args;
    const waitFor = waitMs > 0 ? { waitFor: { patienceMs: PATIENCE_MS } } : {};
    for (let tries = 1; ; tries++) {
      const answer = await store.claim({
        pool,
        where,
        n,
        holdMs,
        autoExtend,
        request,
        holder,
        by,
        ...waitFor,
      });
      if (answer.outcome !== "undeclared" || tries === DECLARE_TRIES) return answer;
      await declare();
    }
  }

  #leave(request: string): void {
    const leaving = this.#untilLeft(request).finally(() => this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
  }

  /** Again and again: what the request was granted may extend itself, with all that this holder has. */
  async #untilLeft(request: string): Promise<void> {
    const { store, pool, log } = this.#parts;
    for (let failures = 1; ; failures++) {
      try {
        return await store.leave({ pool, request });
      } catch (error) {
        log.debug("a place in line was not given up", { pool, error: messageOf(error) });
        if (this.#over.signal.aborted || !isFleetError(error) || !error.retryable) return;
        await sleep(backoffMs(failures, RETRY), this.#over.signal);
      }
    }
  }

  async #rideOut(
    error: unknown,
    failures: number,
    until: number,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    if (!isFleetError(error) || !error.retryable || isAborted(signal)) return false;
    const pause = backoffMs(failures, RETRY);
    if (monotonicMs() + pause >= until) return false;
    const { pool, log, quietly } = this.#parts;
    quietly.pass(monotonicMs(), () =>
      log.warn(`pool "${pool}": waiting for the store`, { pool, error: error.message }),
    );
    await sleep(pause, signal);
    return true;
  }

  #gone(): FleetError {
    return new FleetError(
      "FLEET_STORE_BUSY",
      `pool "${this.#parts.pool}": its settings were removed from the store again and again; nothing was claimed`,
      { retryable: true },
    );
  }
}

/** When to look again by oneself. Only the first in line has to look when something is due to come free. */
function nextLook({ position, nextFreeAt, now }: Extract<ClaimResult, { outcome: "none" }>): number {
  if (nextFreeAt === null || position !== 0) return REFRESH_MS;
  return Math.min(REFRESH_MS, Math.max(1, nextFreeAt - now));
}

/** Those with the same line are served in their order. `where` is sorted, so equal ones have equal texts. */
function lineOf(where: ItemTags): string {
  return JSON.stringify(where);
}

/** A call, because the compiler would take a property's value as unchanged over an `await`. */
function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}
