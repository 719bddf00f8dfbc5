/**
 * The fallback behind hints: wakes one waiting place after another, one per interval, however many there are. So a process
 * that waits for everything still makes no more than one store call per interval, and a place among N that wait is looked
 * at every N intervals at the latest.
 */
export class IdlePoller {
  readonly #intervalMs: number;
  readonly #places = new Set<() => void>();
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs;
  }

  add(wake: () => void): void {
    this.#places.add(wake);
    this.#timer ??= setInterval(() => this.#turn(), this.#intervalMs);
  }

  remove(wake: () => void): void {
    this.#places.delete(wake);
    if (this.#places.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #turn(): void {
    const [next] = this.#places;
    if (next === undefined) return;
    // To the back of the row: a Set keeps the order of insertion.
    this.#places.delete(next);
    this.#places.add(next);
    next();
  }
}
