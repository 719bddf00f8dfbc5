import { after } from "../internal/timers.ts";
import type { Watch } from "../store/watch.ts";

/** How long a watch outlives its last waiter, so that a loop of claims does not subscribe anew each time. */
const LINGER_MS = 10_000;

/** Somebody's place in line. */
export interface PoolPlace {
  /** Waits until there is a reason to look again, at most `ms`, or until `signal` aborts. */
  woken(ms: number, signal: AbortSignal | undefined): Promise<void>;
  leave(): void;
}

interface Waiter {
  /** A reason came while it was looking. */
  heard: boolean;
  wake: (() => void) | undefined;
}

/**
 * All who wait for items of one pool in this process. They share one watch. Those who want the same stand in line, in the store as
 * here, so a hint wakes the first of each line only; when that one leaves, the next looks.
 */
export class PoolWaiters {
  readonly #watchPool: (onHint: () => void) => Watch;
  readonly #lines = new Map<string, Set<Waiter>>();
  #watch: Watch | undefined;
  #linger: ReturnType<typeof setTimeout> | undefined;

  constructor(watchPool: (onHint: () => void) => Watch) {
    this.#watchPool = watchPool;
  }

  enter(what: string): PoolPlace {
    clearTimeout(this.#linger);
    this.#watchOn();
    const waiter: Waiter = { heard: false, wake: undefined };
    let line = this.#lines.get(what);
    if (line === undefined) this.#lines.set(what, (line = new Set()));
    line.add(waiter);
    return {
      woken: (ms, signal) => woken(waiter, ms, signal),
      leave: () => this.#leave(what, waiter),
    };
  }

  async close(): Promise<void> {
    for (const line of this.#lines.values()) for (const waiter of line) hear(waiter);
    await this.#unwatch();
  }

  #leave(what: string, waiter: Waiter): void {
    const line = this.#lines.get(what);
    const [first] = line ?? [];
    if (line?.delete(waiter) !== true) return;
    const [next] = line;
    // There may be more, and the line has moved.
    if (first === waiter && next !== undefined) hear(next);
    if (line.size > 0) return;
    this.#lines.delete(what);
    if (this.#lines.size > 0) return;
    this.#linger = setTimeout(() => void this.#unwatch(), LINGER_MS);
    this.#linger.unref();
  }

  #watchOn(): void {
    if (this.#watch !== undefined) return;
    this.#watch = this.#watchPool(this.#hint);
    this.#watch.ready.then(
      // What came before the watch was up made no hint: look once more.
      this.#hint,
      // The store is away; it brings the watch up when it is back, and everybody looks each second meanwhile.
      () => undefined,
    );
  }

  readonly #hint = (): void => {
    for (const [first] of this.#lines.values()) if (first !== undefined) hear(first);
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
