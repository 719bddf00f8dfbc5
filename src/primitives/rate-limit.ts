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
