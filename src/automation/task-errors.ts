import { number } from "../contracts/options.ts";

/** Mark what a handler throws on purpose, across two copies of the package. */
const FATAL = Symbol.for("fleet-framework.fatal");
const RETRY_AFTER = Symbol.for("fleet-framework.retry-after");

/** Thrown by a handler: this task cannot succeed, do not try again. It goes to the dead letter, reason `fatal`. */
export class FatalError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "FatalError";
    Object.defineProperty(this, FATAL, { value: true });
  }
}

const pause = number({ min: 0, max: 365 * 86_400 });

/** Thrown by a handler: this attempt has failed, and the next one should wait for so long, whatever the queue's backoff says. */
export class RetryAfter extends Error {
  readonly seconds: number;

  constructor(seconds: number, message?: string, options?: ErrorOptions) {
    pause(seconds, "RetryAfter: seconds");
    super(message ?? `try again after ${seconds} s`, options);
    this.name = "RetryAfter";
    this.seconds = seconds;
    Object.defineProperty(this, RETRY_AFTER, { value: true });
  }
}

export function isFatal(error: unknown): boolean {
  return typeof error === "object" && error !== null && FATAL in error;
}

/** The pause that a thrown error asks for, in ms; undefined when it asks for none. */
export function pauseOf(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null || !(RETRY_AFTER in error)) return undefined;
  return (error as unknown as RetryAfter).seconds * 1000;
}
