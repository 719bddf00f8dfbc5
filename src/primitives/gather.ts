import { FleetError, isFleetError } from "../errors.ts";
import { monotonicMs } from "../internal/timers.ts";

export interface GatherOptions<T> {
  /** Sends one batch; called again only after it has settled, so batches keep their order. */
  send: (items: readonly T[]) => Promise<void>;
  sizeOf: (item: T) => number;
  /** Most items of one batch. */
  maxItems: number;
  /** Most bytes of one batch (a single larger item travels alone). */
  maxBytes: number;
  /** Most bytes waiting; more are refused with `FLEET_STORE_BUSY`. */
  maxWaitingBytes: number;
}

/** A call that failed sooner was refused; one that failed later ran into its deadline. */
const SLOW_MS = 250;

/** Taken at load, so that tests with fake timers do not stop it. */
const soon = setImmediate;

const DONE = Promise.resolve();

/** Items that travel, succeed and fail together, and so share one promise. */
interface Batch<T> {
  items: T[];
  bytes: number;

  settled: Promise<void>;
  resolve: () => void;
  reject: (error: unknown) => void;
}

/**
 * Gathers the calls of one tick, and all that come while a batch is under way, into batches. One batch is under way at a
 * time: the order of calls is the order of effects, and a lone caller waits for nothing but a microtask.
 */
export class Gather<T> {
  readonly #options: GatherOptions<T>;
  readonly #waiting: Batch<T>[] = [];
  #waitingBytes = 0;
  #scheduled = false;
  #sending = false;
  /** Of batches that have settled: their callers are to be told, in this order. */
  readonly #answers: (() => void)[] = [];
  readonly #idle: (() => void)[] = [];

  constructor(options: GatherOptions<T>) {
    this.#options = options;
  }

  add(item: T): Promise<void> {
    const bytes = this.#options.sizeOf(item);
    if (this.#waitingBytes + bytes > this.#options.maxWaitingBytes && this.#waiting.length > 0) {
      return Promise.reject(
        new FleetError(
          "FLEET_STORE_BUSY",
          `the store does not keep up: ${this.#waitingBytes} bytes are waiting already; await earlier calls first`,
          {
            retryable: true,
          },
        ),
      );
    }
    const batch = this.#batchFor(bytes);
    batch.items.push(item);
    batch.bytes += bytes;
    this.#waitingBytes += bytes;
    this.#schedule();
    return batch.settled;
  }

  /** Resolves once everything accepted so far has settled. */
  flushed(): Promise<void> {
    if (!this.#sending && this.#waiting.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /** The last batch that waits, or a new one where that is full. */
  #batchFor(bytes: number): Batch<T> {
    const { maxItems, maxBytes } = this.#options;
    const last = this.#waiting.at(-1);
    if (last !== undefined && last.items.length < maxItems && last.bytes + bytes <= maxBytes) return last;
    const batch = newBatch<T>();
    this.#waiting.push(batch);
    return batch;
  }

  #schedule(): void {
    if (this.#scheduled || this.#sending) return;
    this.#scheduled = true;
    // As `queueMicrotask`, at a fraction of its cost in Node.
    void DONE.then(() => {
      this.#scheduled = false;
      this.#next();
    });
  }

  #next(): void {
    const batch = this.#waiting.shift();
    if (batch === undefined) return;
    this.#sending = true;
    this.#waitingBytes -= batch.bytes;
    const sentAt = monotonicMs();
    const behind = this.#waiting.length;
    this.#options.send(batch.items).then(
      () => this.#settled(batch.resolve),
      (error: unknown) => {
        const late = monotonicMs() - sentAt >= SLOW_MS ? this.#giveUp(behind, error) : [];
        this.#settled(() => {
          batch.reject(error);
          for (const reject of late) reject();
        });
      },
    );
  }

  /**
   * A call ran into its deadline: the batches that stood behind it all that time have waited as long and fail too, unsent. Else a
   * thousand of them would each run into a deadline, one after the other.
   */
  #giveUp(behind: number, error: unknown): (() => void)[] {
    if (!isFleetError(error, "FLEET_STORE_UNAVAILABLE")) return [];
    const message = `not sent, because the store did not serve the call before it: ${error.message}`;
    return this.#waiting.splice(0, behind).map((batch) => {
      this.#waitingBytes -= batch.bytes;
      const unsent = new FleetError("FLEET_STORE_UNAVAILABLE", message, { retryable: true, cause: error });
      return () => batch.reject(unsent);
    });
  }

  #settled(answer: () => void): void {
    this.#answers.push(answer);
    if (this.#waiting.length > 0) {
      this.#next();
      // Stores write to their link in the next phase of the event loop. Let them, before the callers that are answered now
      // make their next calls: so those are prepared while the store is at work.
      soon(() => this.#answer());
      return;
    }
    this.#sending = false;
    this.#answer();
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  #answer(): void {
    for (const answer of this.#answers.splice(0)) answer();
  }
}

function newBatch<T>(): Batch<T> {
  let resolve: () => void = () => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const settled = new Promise<void>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { items: [], bytes: 0, settled, resolve, reject };
}
