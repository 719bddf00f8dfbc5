export interface LockOptions {
  /** Each key is a lock of its own; default none. */
  key?: string;
  /** How long the lease holds unless it is extended, in seconds; above 0 to a day, default 30. */
  holdSeconds?: number;
  /** How long to wait, in line, while somebody else has it; 0 (default) only asks, `Infinity` waits for ever. */
  waitSeconds?: number;
  /** Renews the lease by itself until it is released; default false. */
  autoExtend?: boolean;
}

/**
 * A lock that is held, exclusively. All calls fail with `FLEET_LEASE_LOST` once it is lost; released a second time, nothing happens.
 *
 * What it protects is safe in two steps: the lease ends here before it ends in the store, so code that looks at `signal` stops in time; and a
 * system that gets `token` along can refuse one that is smaller than it has seen, for code that looked too late.
 */
export interface LockLease extends AsyncDisposable {
  readonly name: string;
  readonly key: string;
  /** Fencing token: greater than those of all grants of this name before. */
  readonly token: string;
  /** Aborts when the lease is lost (not when it is released), before anybody else can have the lock. */
  readonly signal: AbortSignal;
  /** Holds it for so long from now, unless it holds longer already. */
  extend(seconds: number): Promise<void>;
  release(): Promise<void>;
}
