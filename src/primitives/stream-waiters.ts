import type { Watch } from "../store/watch.ts";
import type { IdlePoller } from "./idle-poller.ts";

/** How long a watch outlives its last waiter, so that a loop of short waits does not subscribe anew each time. */
const LINGER_MS = 10_000;

type Wake = () => void;

/**
 * All consumers of one process that wait on one stream. They share one watch. A hint or a turn of the idle poller wakes the
 * first in line only; who finds something wakes the next. So a hint costs as many pops as there are entries, plus one.
 */
export class StreamWaiters {
  readonly #watchStream: (onHint: () => void) => Watch;
  readonly #poller: IdlePoller;
  readonly #line: Wake[] = [];
  #watch: Watch | undefined;
  #linger: ReturnType<typeof setTimeout> | undefined;
  #present = 0;
  /** A hint came while everybody was looking: the next who would wait looks once more instead. */
  #unheard = false;

  constructor(watchStream: (onHint: () => void) => Watch, poller: IdlePoller) {
    this.#watchStream = watchStream;
    this.#poller = poller;
  }

  /** Enters the line. Leave again whatever happens. */
  enter(): void {
    this.#present += 1;
    clearTimeout(this.#linger);
    if (this.#present === 1) this.#poller.add(this.#hint);
    if (this.#watch !== undefined) return;
    this.#watch = this.#watchStream(this.#hint);
    this.#watch.ready.then(
      // What came before the watch was up made no hint: look once more.
      this.#hint,
      // The store is away; it brings the watch up when it is back, and the idle poller looks meanwhile.
      () => undefined,
    );
  }

  leave(): void {
    this.#present -= 1;
    if (this.#present > 0) return;
    this.#poller.remove(this.#hint);
    this.#linger = setTimeout(() => void this.#unwatch(), LINGER_MS);
    this.#linger.unref();
  }

  /** Waits to be woken, at most `ms`, or until `signal` aborts. */
  wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
    if (this.#unheard) {
      this.#unheard = false;
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", wake);
        const at = this.#line.indexOf(wake);
        if (at >= 0) this.#line.splice(at, 1);
        resolve();
      };
      const timer = setTimeout(wake, Math.min(ms, 2 ** 31 - 1));
      this.#line.push(wake);
      if (signal?.aborted === true) wake();
      else signal?.addEventListener("abort", wake, { once: true });
    });
  }

  /** Who found something says so: there may be more. */
  passOn(): void {
    this.#line[0]?.();
  }

  readonly #hint = (): void => {
    if (this.#line.length === 0) this.#unheard = true;
    else this.passOn();
  };

  async close(): Promise<void> {
    this.#poller.remove(this.#hint);
    while (this.#line.length > 0) this.passOn();
    await this.#unwatch();
  }

  async #unwatch(): Promise<void> {
    clearTimeout(this.#linger);
    const watch = this.#watch;
    this.#watch = undefined;
    await watch?.close();
  }
}
