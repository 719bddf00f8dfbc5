import { after } from "../internal/timers.ts";
import type { Watch } from "../store/watch.ts";
import type { IdlePoller } from "./idle-poller.ts";

/** How long a watch outlives its last waiter, so that a loop of calls does not subscribe anew each time. */
const LINGER_MS = 10_000;
/** Every task that somebody waits for is looked at within so many turns of the idle poller, in case that its hint was lost. */
const TURNS = 10;
/** Most tasks that one call looks at; where more than ten times as many are waited for, it takes more turns. */
const MOST_AT_ONCE = 1000;

/** Somebody who waits for the end of one task. */
export interface Place {
  /** Whether an end that was asked for from now on cannot be overlooked, hints lost on the way aside. */
  readonly covered: boolean;
  /** Waits until there is a reason to look again, at most `ms`, or until `signal` aborts. A reason since the last wait counts. */
  woken(ms: number, signal: AbortSignal | undefined): Promise<void>;
  leave(): void;
}

interface Waiter {
  heard: boolean;
  wake: (() => void) | undefined;
}

/**
 * All who wait for ends of tasks of one queue in this process. They share one watch, which names the tasks that have ended: a hint
 * costs one look by those who wait for that very task. Behind it, at each turn of the idle poller, one call looks at a tenth of the tasks.
 */
export class QueueWaiters {
  readonly #watchQueue: (onFinished: (id: string) => void) => Watch;
  readonly #ended: (ids: readonly string[]) => Promise<readonly string[]>;
  readonly #poller: IdlePoller;
  /** By task; those looked at longest ago come first. */
  readonly #waiting = new Map<string, Set<Waiter>>();
  #watch: Watch | undefined;
  #covered = false;
  #linger: ReturnType<typeof setTimeout> | undefined;
  #looking = false;

  /** `ended`: which of these tasks have ended. */
  constructor(
    watchQueue: (onFinished: (id: string) => void) => Watch,
    ended: (ids: readonly string[]) => Promise<readonly string[]>,
    poller: IdlePoller,
  ) {
    this.#watchQueue = watchQueue;
    this.#ended = ended;
    this.#poller = poller;
  }

  enter(id: string): Place {
    clearTimeout(this.#linger);
    if (this.#waiting.size === 0) this.#poller.add(this.#turn);
    this.#watchOn();
    const waiter: Waiter = { heard: false, wake: undefined };
    const same = this.#waiting.get(id);
    if (same === undefined) this.#waiting.set(id, new Set([waiter]));
    else same.add(waiter);
    return {
      covered: this.#covered,
      woken: (ms, signal) => woken(waiter, ms, signal),
      leave: () => this.#leave(id, waiter),
    };
  }

  async close(): Promise<void> {
    this.#poller.remove(this.#turn);
    for (const id of this.#waiting.keys()) this.#finished(id);
    await this.#unwatch();
  }

  #leave(id: string, waiter: Waiter): void {
    const same = this.#waiting.get(id);
    if (same?.delete(waiter) !== true || same.size > 0) return;
    this.#waiting.delete(id);
    if (this.#waiting.size > 0) return;
    this.#poller.remove(this.#turn);
    this.#linger = setTimeout(() => void this.#unwatch(), LINGER_MS);
    this.#linger.unref();
  }

  #watchOn(): void {
    if (this.#watch !== undefined) return;
    const watch = (this.#watch = this.#watchQueue(this.#finished));
    watch.ready.then(
      () => {
        if (this.#watch !== watch) return;
        this.#covered = true;
        // What ended before the watch was up made no hint.
        for (const id of this.#waiting.keys()) this.#finished(id);
      },
      // The store is away; it brings the watch up when it is back, and the idle poller looks meanwhile.
      () => undefined,
    );
  }

  readonly #finished = (id: string): void => {
    for (const waiter of this.#waiting.get(id) ?? []) {
      waiter.heard = true;
      waiter.wake?.();
    }
  };

  readonly #turn = (): void => {
    if (this.#looking) return;
    const most = Math.min(MOST_AT_ONCE, Math.ceil(this.#waiting.size / TURNS));
    const ids = [...this.#waiting.keys()].slice(0, most);
    for (const id of ids) {
      const waiters = this.#waiting.get(id) as Set<Waiter>;
      // To the back of the row: a Map keeps the order of insertion.
      this.#waiting.delete(id);
      this.#waiting.set(id, waiters);
    }
    void this.#look(ids);
  };

  async #look(ids: readonly string[]): Promise<void> {
    this.#looking = true;
    try {
      for (const id of await this.#ended(ids)) this.#finished(id);
    } catch {
      // Those who wait for one of them find out what it is, and say so.
      this.#finished(ids[0] as string);
    } finally {
      this.#looking = false;
    }
  }

  async #unwatch(): Promise<void> {
    clearTimeout(this.#linger);
    const watch = this.#watch;
    this.#watch = undefined;
    this.#covered = false;
    await watch?.close();
  }
}

function woken(waiter: Waiter, ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (waiter.heard || signal?.aborted === true) {
    waiter.heard = false;
    return Promise.resolve();
  }
  return new Promise((resolve) => {
    const wake = () => {
      timer?.cancel();
      signal?.removeEventListener("abort", wake);
      waiter.wake = undefined;
      waiter.heard = false;
      resolve();
    };
    const timer = ms === Number.POSITIVE_INFINITY ? undefined : after(ms, wake);
    waiter.wake = wake;
    signal?.addEventListener("abort", wake, { once: true });
  });
}
