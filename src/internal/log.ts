export type LogLevel = "debug" | "info" | "warn" | "error";
export type LogFields = Record<string, unknown>;

/** How every part of Fleet logs: a message for people, fields for machines. */
export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export const SILENT: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** Lets one message through per `everyMs`, and says how many it swallowed since. For what can happen thousands of times. */
export class Throttle {
  #last = Number.NEGATIVE_INFINITY;
  #swallowed = 0;
  readonly #everyMs: number;

  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  pass(nowMs: number, say: (swallowed: number) => void): void {
    if (nowMs - this.#last < this.#everyMs) {
      this.#swallowed += 1;
      return;
    }
    this.#last = nowMs;
    say(this.#swallowed);
    this.#swallowed = 0;
  }
}
