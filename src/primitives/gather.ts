import { FleetError } from "../errors.ts";

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

interface Waiting<T> {
  item: T;
  bytes: number;
  resolve: () => void;
  reject: (error: unknown) => void;
}

/**
 * Gathers the calls of one tick, and all that come while a batch is under way, into one batch. One batch is under way at a
 * time: the order of calls is the order of effects, and a lone caller waits for nothing but a microtask.
 */
export class Gather<T> {
  readonly #options: GatherOptions<T>;
  #waiting: Waiting<T>[] = [];
  #waitingBytes = 0;
  #scheduled = false;
  #sending = false;
  #idle: (() => void)[] = [];

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
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, bytes, resolve, reject });
      this.#waitingBytes += bytes;
      this.#schedule();
    });
  }

  /** Resolves once everything accepted so far has settled. */
  flushed(): Promise<void> {
    if (!this.#sending && this.#waiting.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #schedule(): void {
    if (this.#scheduled || this.#sending) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      void this.#drain();
    });
  }

  async #drain(): Promise<void> {
    this.#sending = true;
    while (this.#waiting.length > 0) {
      const batch = this.#take();
      try {
        await this.#options.send(batch.map((entry) => entry.item));
        for (const entry of batch) entry.resolve();
      } catch (error) {
        for (const entry of batch) entry.reject(error);
      }
      // The callers just resolved may call again at once: let them, so that they travel together.
      if (this.#waiting.length === 0) await Promise.resolve();
    }
    this.#sending = false;
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  #take(): Waiting<T>[] {
    let bytes = 0;
    let count = 0;
    for (const entry of this.#waiting) {
      if (count > 0 && (count >= this.#options.maxItems || bytes + entry.bytes > this.#options.maxBytes))
        break;
      bytes += entry.bytes;
      count += 1;
    }
    this.#waitingBytes -= bytes;
    return this.#waiting.splice(0, count);
  }
}
