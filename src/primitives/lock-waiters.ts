import { after } from "../internal/timers.ts";
import type { Watch } from "../store/watch.ts";

/** How long a watch outlives its last waiter, so that a loop of short waits does not subscribe anew each time. */
const LINGER_MS = 10_000;

/** Somebody who waits for the lock of one key. */
export interface LockPlace {
  /** Waits until there is a reason to ask again, at most `ms`, or until `signal` aborts. A reason since the last wait counts. */
  woken(ms: number, signal: AbortSignal | undefined): Promise<void>;
  leave(): void;
}

interface Waiter {
  heard: boolean;
  wake: (() => void) | undefined;
}

/** All who wait for locks of one name in this process. They share one watch; a hint wakes the first of its key, who stands before the others in the store too. */
export class LockWaiters {
  readonly #watchName: (onHint: (key: string | undefined) => void) => Watch;
  readonly #lines = new Map<string, Set<Waiter>>();
  #watch: Watch | undefined;
  #linger: ReturnType<typeof setTimeout> | undefined;

  constructor(watchName: (onHint: (key: string | undefined) => void) => Watch) {
    this.#watchName = watchName;
  }

  enter(key: string): LockPlace {
    clearTimeout(this.#linger);
    this.#watchOn();
    const waiter: Waiter = { heard: false, wake: undefined };
    const line = this.#lines.get(key);
    if (line === undefined) this.#lines.set(key, new Set([waiter]));
    else line.add(waiter);
    return { woken: (ms, signal) => woken(waiter, ms, signal), leave: () => this.#leave(key, waiter) };
  }

  async close(): Promise<void> {
    for (const line of this.#lines.values()) for (const waiter of line) hear(waiter);
    await this.#unwatch();
  }

  #leave(key: string, waiter: Waiter): void {
    const line = this.#lines.get(key);
    if (line?.delete(waiter) !== true) return;
    const [next] = line;
    // What woke this one may have been meant for the next.
    if (next !== undefined) return hear(next);
    this.#lines.delete(key);
    if (this.#lines.size > 0) return;
    this.#linger = setTimeout(() => void this.#unwatch(), LINGER_MS);
    this.#linger.unref();
  }

  #watchOn(): void {
    if (this.#watch !== undefined) return;
    this.#watch = this.#watchName(this.#hint);
    this.#watch.ready.then(
      // What came before the watch was up made no hint: ask once more.
      () => this.#hint(undefined),
      // The store is away; it brings the watch up when it is back, and everybody asks from time to time meanwhile.
      () => undefined,
    );
  }

  readonly #hint = (key: string | undefined): void => {
    for (const line of key === undefined ? this.#lines.values() : [this.#lines.get(key) ?? []]) {
      const [first] = line;
      if (first !== undefined) hear(first);
    }
  };

  async #unwatch(): Promise<void> {
    clearTimeout(this.#linger);
    const watch = this.#watch;
    this.#watch = undefined;
    await watch?.close();
  }
}

function hear(waiter: Waiter): void {
  waiter.heard = true;
  waiter.wake?.();
}

function woken(waiter: Waiter, ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (waiter.heard || signal?.aborted === true) {
    waiter.heard = false;
    return Promise.resolve();
  }
  return new Promise((resolve) => {
    const wake = () => {
      timer.cancel();
      signal?.removeEventListener("abort", wake);
      waiter.wake = undefined;
      waiter.heard = false;
      resolve();
    };
    const timer = after(ms, wake);
    waiter.wake = wake;
    signal?.addEventListener("abort", wake, { once: true });
  });
}
