export interface BackoffOptions {
  /** Delay before the first retry, in ms. */
  baseMs: number;
  /** Upper bound of every delay, in ms. */
  capMs: number;
  /** Growth per attempt; default 2. */
  factor?: number;
  /** Share of the delay that is random, 0..1: `delay * (1 - jitter .. 1)`; default 0. */
  jitter?: number;
}

/**
 * Exponential back-off: attempt 1 waits `baseMs`, each further one `factor` times more, never above `capMs`.
 * Finite and non-negative for every attempt number (the exponent is capped before it can overflow).
 */
export function backoffMs(
  attempt: number,
  options: BackoffOptions,
  random: () => number = Math.random,
): number {
  const { baseMs, capMs, factor = 2, jitter = 0 } = options;
  const exponent = Math.min(Math.max(0, Math.floor(attempt) - 1), 64);
  const plain = Math.min(capMs, baseMs * factor ** exponent);
  return plain * (1 - jitter * random());
}
