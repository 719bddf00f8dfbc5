import { check, payloadError } from "../contracts/validate.ts";
import type { InferOutput, Schema } from "../contracts/schema/standard.ts";
import type { StreamContract } from "../contracts/stream.ts";
import { isFleetError, messageOf } from "../errors.ts";
import { backoffMs } from "../internal/backoff.ts";
import type { Log, Throttle } from "../internal/log.ts";
import { monotonicMs, sleep } from "../internal/timers.ts";
import { decodeEnvelope, type Envelope } from "../protocol/envelope.ts";
import type { QuarantinedEntry, StreamStore } from "../store/store.ts";
import type { StreamWaiters } from "./stream-waiters.ts";

export interface PopArgs {
  n: number;
  waitMs: number;
  signal: AbortSignal | undefined;
  /** Called right before each look into the store; what it throws ends the pop. */
  fence?: () => void;
}

/** A wait after the end is cut to this, not to nothing: a loop that overlooks the end would hold up its whole process. */
const ENDED_MS = 10;

type Sorted<T> = { good: Envelope<T>[]; bad: QuarantinedEntry[] };

/**
 * One stream's way out for one consumer's schema. Delivery class: at most once. A pop never blocks inside the store: it
 * waits on a hint and then pops, so a half-dead connection swallows nothing while waiting.
 *
 * An entry that does not fit goes to quarantine, is counted and logged, and the consumer goes on with the next.
 */
export class StreamReader<S extends Schema> {
  readonly #store: StreamStore;
  readonly #contract: StreamContract<S>;
  readonly #waiters: StreamWaiters;
  readonly #log: Log;
  readonly #quietly: Throttle;

  constructor(
    store: StreamStore,
    contract: StreamContract<S>,
    { waiters, log, quietly }: { waiters: StreamWaiters; log: Log; quietly: Throttle },
  ) {
    this.#store = store;
    this.#contract = contract;
    this.#waiters = waiters;
    this.#log = log;
    this.#quietly = quietly;
  }

  async pop({ n, waitMs, signal, fence }: PopArgs): Promise<Envelope<InferOutput<S>>[]> {
    if (waitMs <= 0) return this.#popFitting(n, signal, fence);
    if (isAborted(signal)) {
      await sleep(Math.min(waitMs, ENDED_MS));
      return [];
    }
    const until = monotonicMs() + waitMs;
    this.#waiters.enter();
    try {
      for (let failures = 0; !isAborted(signal);) {
        try {
          const found = await this.#popFitting(n, signal, fence);
          failures = 0;
          if (found.length > 0) {
            this.#waiters.passOn();
            return found;
          }
        } catch (error) {
          failures += 1;
          if (!(await this.#rideOut(error, failures, until, signal))) throw error;
          continue;
        }
        const left = until - monotonicMs();
        if (left <= 0) break;
        await this.#waiters.wait(left, signal);
      }
      return [];
    } finally {
      this.#waiters.leave();
    }
  }

  async peek(n: number): Promise<InferOutput<S>[]> {
    const entries = await this.#store.peek({ stream: this.#contract.name, n });
    const { good } = await this.#sort(entries.map((entry) => entry.raw));
    return good.map((envelope) => envelope.payload);
  }

  length(): Promise<number> {
    return this.#store.length({ stream: this.#contract.name });
  }

  /** Pops until something fits, nothing is left, or the end has come: what does not fit can come faster than it is put aside. */
  async #popFitting(
    n: number,
    signal: AbortSignal | undefined,
    fence?: () => void,
  ): Promise<Envelope<InferOutput<S>>[]> {
    for (;;) {
      fence?.();
      const raws = await this.#store.pop({ stream: this.#contract.name, n });
      if (raws.length === 0) return [];
      const { good, bad } = await this.#sort(raws);
      if (bad.length > 0) await this.#setAside(bad);
      if (good.length > 0 || isAborted(signal)) return good;
    }
  }

  async #sort(raws: readonly string[]): Promise<Sorted<InferOutput<S>>> {
    const sorted: Sorted<InferOutput<S>> = { good: [], bad: [] };
    for (const raw of raws) {
      const decoded = decodeEnvelope(raw);
      if (!decoded.ok) {
        sorted.bad.push({ raw, reason: decoded.reason });
        continue;
      }
      const checking = check(this.#contract.schema, decoded.envelope.payload);
      const checked = checking instanceof Promise ? await checking : checking;
      if (checked.ok) sorted.good.push({ ...decoded.envelope, payload: checked.value });
      else sorted.bad.push({ raw, reason: payloadError("payload", checked.issues).message });
    }
    return sorted;
  }

  async #setAside(entries: readonly QuarantinedEntry[]): Promise<void> {
    const stream = this.#contract.name;
    this.#quietly.pass(monotonicMs(), (swallowed) =>
      this.#log.warn(
        `stream "${stream}": ${entries.length + swallowed} entries do not fit the consumer's schema and went to quarantine`,
        {
          stream,
          reason: entries[0]?.reason,
        },
      ),
    );
    try {
      await this.#store.quarantine({ stream, entries });
    } catch (error) {
      // They are popped already: say it, rather than fail the entries beside them that are good.
      this.#log.error(
        `stream "${stream}": ${entries.length} unusable entries could not be put into quarantine`,
        { stream, error: messageOf(error) },
      );
    }
  }

  /** Waits out a passing fault of the store while there is time left; false when the error is the caller's to see. */
  async #rideOut(
    error: unknown,
    failures: number,
    until: number,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    if (!isFleetError(error) || !error.retryable || isAborted(signal)) return false;
    const pause = backoffMs(failures, { baseMs: 50, capMs: 1000, jitter: 0.3 });
    if (monotonicMs() + pause >= until) return false;
    const stream = this.#contract.name;
    this.#quietly.pass(monotonicMs(), () =>
      this.#log.warn(`stream "${stream}": waiting for the store`, { stream, error: error.message }),
    );
    await sleep(pause, signal);
    return true;
  }
}

/** A call, because the compiler would take a property's value as unchanged over an `await`. */
function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}
