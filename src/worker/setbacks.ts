import { isOwnFault } from "../control/damaged.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../internal/log.ts";

/**
 * What of a worker's round with the store has failed by itself and is tried again later, while the rest goes on. Each failure is said once for
 * what it is, however often it is tried.
 */
export class Setbacks {
  readonly #log: Log;
  /** Why, as it was said, by what has failed. */
  readonly #open = new Map<string, string>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Does it; a failure is noted, and keeps nothing else from its turn. */
  async spare(what: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.failed(what, error);
    }
  }

  failed(what: string, error: unknown): void {
    const why = messageOf(error);
    if (this.#open.get(what) === why) return;
    this.#open.set(what, why);
    const fields = { error: why };
    if (isOwnFault(error)) this.#log.error(`${what}; trying again`, fields);
    else this.#log.warn(`${what}; trying again`, fields);
  }

  /** It is done, or will not be tried again. True where it had failed before. */
  over(what: string): boolean {
    return this.#open.delete(what);
  }
}
