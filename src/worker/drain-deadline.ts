/** Until when a drain may take; somebody may move that while it is waited for. Times are monotonic. */
export class DrainDeadline {
  #until: number;
  #wake = new AbortController();

  constructor(ms: number, now: number) {
    this.#until = now + ms;
  }

  /** From now on it may take so long. */
  move(ms: number, now: number): void {
    this.#until = now + ms;
    this.#wake.abort();
    this.#wake = new AbortController();
  }

  left(now: number): number {
    return Math.max(0, this.#until - now);
  }

  /** Aborted when it is moved; the next one is another. */
  get moved(): AbortSignal {
    return this.#wake.signal;
  }
}
