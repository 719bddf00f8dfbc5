import { isFleetError, messageOf } from "../errors.ts";
import { backoffMs } from "../internal/backoff.ts";
import type { Log, Throttle } from "../internal/log.ts";
import { monotonicMs, sleep } from "../internal/timers.ts";
import { uuidv7 } from "../internal/uuid.ts";
import type { AcquireResult, LockStore } from "../store/state-store.ts";
import { lockText } from "./lock-hold.ts";
import type { LockPlace, LockWaiters } from "./lock-waiters.ts";

/** A waiter that is not heard of for so long loses its place in line. */
const PATIENCE_MS = 3000;
/** How often a place in line is confirmed; also the look behind lost hints. */
const REFRESH_MS = 1000;

export interface LockRequest {
  key: string;
  holdMs: number;
  /** `Infinity` waits for ever. */
  waitMs: number;
  by: string;
  /** Ends the wait early: the slot is to end, or the fleet was closed. */
  signal: AbortSignal | undefined;
  /** Throws where this user must have no effect on the store any more. */
  fence: (() => void) | undefined;
}

export interface LockGrant {
  token: string;
  /** Own (monotonic) time before which the lease cannot end in the store. */
  untilMs: number;
}

/**
 * Asks for locks of one name, in line where they have to be waited for. One request per attempt, whatever its looks: so a grant whose answer
 * was lost is had by the next look, and what a request was granted behind its back is given up with it.
 */
export class LockRequests {
  readonly #store: LockStore;
  readonly #name: string;
  readonly #parts: { holder: string; waiters: LockWaiters; log: Log; quietly: Throttle };
  readonly #leaving = new Set<Promise<void>>();

  constructor(
    store: LockStore,
    name: string,
    parts: { holder: string; waiters: LockWaiters; log: Log; quietly: Throttle },
  ) {
    this.#store = store;
    this.#name = name;
    this.#parts = parts;
  }

  /** Null where it was not granted in time. */
  async acquire(args: LockRequest): Promise<LockGrant | null> {
    const request = uuidv7();
    const until = monotonicMs() + args.waitMs;
    let place: LockPlace | undefined;
    let granted: LockGrant | null = null;
    /** Whether the store may know of this request. */
    let known = false;
    try {
      for (let failures = 0; ;) {
        args.fence?.();
        const started = monotonicMs();
        let answer: AcquireResult;
        try {
          known = true;
          answer = await this.#ask(request, args);
          failures = 0;
        } catch (error) {
          failures += 1;
          if (!(await this.#rideOut(error, { failures, until, key: args.key, signal: args.signal })))
            throw error;
          continue;
        }
        if (answer.outcome === "granted")
          return (granted = { token: answer.token, untilMs: started + answer.until - answer.now });
        known = args.waitMs > 0;
        const left = until - monotonicMs();
        if (left <= 0 || isAborted(args.signal)) return null;
        place ??= this.#parts.waiters.enter(args.key);
        await place.woken(Math.min(left, nextLook(answer)), args.signal);
        if (isAborted(args.signal)) return null;
      }
    } finally {
      if (granted === null && known) this.#leave(args.key, request);
      place?.leave();
    }
  }

  /** Waits until what was given up is given up in the store, too. */
  async settled(): Promise<void> {
    await Promise.all(this.#leaving);
  }

  #ask(request: string, { key, holdMs, waitMs, by }: LockRequest): Promise<AcquireResult> {
    const waitFor = waitMs > 0 ? { waitFor: { patienceMs: PATIENCE_MS } } : {};
    const { holder } = this.#parts;
    return this.#store.acquire({ name: this.#name, key, request, holder, by, holdMs, ...waitFor });
  }

  #leave(key: string, request: string): void {
    const { log } = this.#parts;
    const leaving = this.#store
      .leave({ name: this.#name, key, request })
      .catch((error: unknown) =>
        log.debug("a place in line was not given up; it ends by its time", {
          lock: this.#name,
          key,
          error: messageOf(error),
        }),
      )
      .finally(() => this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
  }

  /** A store that is away is waited out, for as long as the lock would be waited for. */
  async #rideOut(
    error: unknown,
    args: { failures: number; until: number; key: string; signal: AbortSignal | undefined },
  ): Promise<boolean> {
    const { failures, until, key, signal } = args;
    if (!isFleetError(error) || !error.retryable || isAborted(signal)) return false;
    const pause = backoffMs(failures, { baseMs: 50, capMs: 1000, jitter: 0.3 });
    if (monotonicMs() + pause >= until) return false;
    const { log, quietly } = this.#parts;
    quietly.pass(monotonicMs(), () =>
      log.warn(`${lockText(this.#name, key)}: waiting for the store`, {
        lock: this.#name,
        error: error.message,
      }),
    );
    await sleep(pause, signal);
    return !isAborted(signal);
  }
}

/** When to look again by oneself. Only the first in line has to look when the lease before it ends. */
function nextLook({ position, until, now }: Extract<AcquireResult, { outcome: "held" }>): number {
  if (until === null || position !== 0) return REFRESH_MS;
  return Math.min(REFRESH_MS, Math.max(1, until - now));
}

/** A call, because the compiler would take a property's value as unchanged over an `await`. */
function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}
