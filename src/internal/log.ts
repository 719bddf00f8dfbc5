export type LogLevel = "debug" | "info" | "warn" | "error";
export const LOG_LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];
export type LogFields = Record<string, unknown>;

/** How every part of Fleet logs: a message for people, fields for machines. */
export interface Log {
  /** Lowest level that is written, where that is known: child processes do not send what is below it. */
  readonly level?: LogLevel;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export const SILENT: Log = { debug() {}, info() {}, warn() {}, error() {} };

/**
 * Lets one message through per `everyMs` (the same one again only per `sameMs`), and says how many it swallowed since. For what can
 * happen thousands of times.
 */
export class Throttle {
  #last = Number.NEGATIVE_INFINITY;
  #swallowed = 0;
  #what = "";
  readonly #everyMs: number;
  readonly #sameMs: number;

  constructor(everyMs: number, sameMs = everyMs) {
    this.#everyMs = everyMs;
    this.#sameMs = sameMs;
  }

  pass(nowMs: number, say: (swallowed: number) => void, what = ""): void {
    if (nowMs - this.#last < (what === this.#what ? this.#sameMs : this.#everyMs)) {
      this.#swallowed += 1;
      return;
    }
    this.#last = nowMs;
    this.#what = what;
    say(this.#swallowed);
    this.#swallowed = 0;
  }
}
