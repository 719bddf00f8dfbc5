export interface RateWindow {
  /** How many permits in `perSeconds`. */
  limit: number;
  /** Length of the window, in seconds; 0.001 to 366 days. */
  perSeconds: number;
  /**
   * How many of them may be taken at once; 1 (default) spreads them evenly. Over any span of the window no more than
   * `limit + burst - 1` are granted: with a burst of 1 never more than `limit`.
   */
  burst?: number;
}

interface RateLimitShared {
  /** Each key is a limit of its own; default none. */
  key?: string;
  /** How many permits one `take` takes, where it does not say; default 1. Without a `burst`, it is the burst, too. */
  cost?: number;
}

/** One window, or several that all have to agree. All who use a limit should give the same ones. */
export type RateLimitOptions =
  | (RateLimitShared & RateWindow & { windows?: undefined })
  | (RateLimitShared & { windows: readonly RateWindow[] });

export interface TakeOptions {
  /** How long to wait for its turn; 0 (default) only asks, `Infinity` waits for as long as it takes. */
  waitSeconds?: number;
  cost?: number;
}

/** `at`: store time of the grant. `retryInSeconds`: when it would be possible, as things stand. */
export type TakeResult = { granted: true; at: number } | { granted: false; retryInSeconds: number };

/** A rate limit that all automations and hosts share. */
export interface RateLimit {
  /** Takes permits. Those who wait are served in the order in which they asked: each has its place in time at once. */
  take(options?: TakeOptions): Promise<TakeResult>;
}
