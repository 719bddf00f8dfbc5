import type { Watch } from "./watch.ts";

/**
 * Locks, counters and rate limits: small shared state. Each name may have many keys, each of them a lock, a counter or a limit of its own; the key
 * `""` is that of a name without keys. All times by the store's clock, all lengths in milliseconds.
 */
export interface StateStore {
  readonly locks: LockStore;
  readonly counters: CounterStore;
  readonly limits: LimitStore;
}

/** Which lock, counter or limit. A key is any text without NUL characters. */
export interface StateRef {
  name: string;
  key: string;
}

/**
 * A lock is **exclusive while its lease holds**: between two grants of one lock the first was released or its lease has expired. Each grant
 * has a fencing token, greater than every token of that name before (also over a loss of all data, as it is the store's microseconds at
 * least); a call that bears another token than the present grant's changes nothing and answers `"lease-lost"`.
 *
 * **Fair**: those who wait stand in a line in the order in which they first asked; only the first in line is granted a free lock. Whoever stands
 * in line says so again within `patienceMs`, or is forgotten, so a dead waiter delays the others by no more than that.
 */
export interface LockStore {
  /**
   * Asks for a lock. `request` is new for each attempt to get the lock: a repeat with the same one, after a lost answer, is answered with
   * the grant that it had. `waitFor` keeps (or takes) a place in line when the lock is not granted.
   */
  acquire(
    args: StateRef & {
      request: string;
      /** Who holds it: one process, unique for ever; what `lose` goes by. */
      holder: string;
      /** For people: `automation/slot on worker`. */
      by: string;
      holdMs: number;
      waitFor?: { patienceMs: number };
    },
  ): Promise<AcquireResult>;
  /** From now on `holdMs` more, unless it holds longer already. */
  extend(
    args: StateRef & { token: string; holdMs: number },
  ): Promise<{ outcome: "extended"; until: number } | { outcome: "lease-lost" }>;
  release(args: StateRef & { token: string }): Promise<"released" | "lease-lost">;
  /** Gives up a place in line, and the grant where the request has been granted meanwhile. */
  leave(args: StateRef & { request: string }): Promise<void>;
  /** Extends many at once, for a supervisor: those answered with false are lost. */
  keep(args: {
    name: string;
    leases: readonly { key: string; token: string; holdMs: number }[];
  }): Promise<boolean[]>;
  /** These holders are gone: their grants end, their places in line as well. */
  lose(args: { name: string; holders: readonly string[] }): Promise<{ released: number }>;
  /** Names that were ever used and have a grant or a waiter, sorted. */
  list(): Promise<string[]>;
  /** What is held and who waits. */
  show(args: { name: string }): Promise<LockRecord[]>;
  /** Hint: the lock of this key may be free, or its next in line has changed; undefined: hints may have been lost, so look at all. */
  watch(args: { name: string }, onHint: (key: string | undefined) => void): Watch;
}

export type AcquireResult =
  | { outcome: "granted"; token: string; until: number; now: number }
  /** `position` counts those before it in line, from 0; null where it does not stand in line. */
  | { outcome: "held"; by: string; until: number | null; position: number | null; now: number };

export interface LockRecord {
  key: string;
  holder: { by: string; since: number; until: number; token: string } | null;
  waiting: { by: string; since: number }[];
}

/**
 * A counter is a whole number, 0 until it is first written. **Each change is applied exactly once**: `op` numbers the changes of one producer to
 * one name 1, 2, 3, …, one under way at a time, and a repeat is answered as it was the first time. Values beyond
 * ±9 007 199 254 740 991 are refused with `"overflow"`, and nothing is changed.
 */
export interface CounterStore {
  add(
    args: StateRef & { by: number; op: CounterOp },
  ): Promise<{ outcome: "done"; value: number } | { outcome: "overflow"; value: number }>;
  get(args: StateRef): Promise<number>;
  set(args: StateRef & { value: number; op: CounterOp }): Promise<{ value: number; before: number }>;
  /** `"different"` where it does not stand at `expected`; `value` is where it stands now. */
  compareAndSet(
    args: StateRef & { expected: number; value: number; op: CounterOp },
  ): Promise<{ outcome: "set" | "different"; value: number }>;
  /** Names with at least one key, sorted. */
  list(): Promise<string[]>;
  /** Keys and values, by key, from `after` on (exclusive). */
  page(args: { name: string; n: number; after?: string }): Promise<{ key: string; value: number }[]>;
  /** Forgets a key (its value is 0 again). */
  remove(args: StateRef): Promise<"removed" | "unknown">;
}

export interface CounterOp {
  producer: string;
  seq: number;
}

/**
 * A rate limit grants permits. It is a set of windows that all have to agree: `limit` permits per `perMs`, of which `burst` may be taken at once.
 * **Exact**: over any span of `perMs` that begins at a grant no more than `limit + burst - 1` permits are granted, so with
 * `burst: 1` never more than `limit`. Grants are spread by the generic cell rate algorithm (GCRA; ATM Forum, Traffic Management 4.0, 1996):
 * one number per window and key, the theoretical arrival time of the next permit.
 *
 * **Fair**: a permit that is due later can be reserved; reservations are granted in the order in which they were made.
 */
export interface LimitStore {
  /**
   * Takes `cost` permits. Where they are due only later, but within `withinMs`, they are reserved: `"granted"` with `waitMs` above 0, and the
   * caller waits so long before it goes on. Else `"later"`, nothing is taken, and `waitMs` tells when a grant would have been possible.
   * A `request` that is repeated (a lost answer) gets the grant that it had, until a minute after its time. Where some were given back
   * before their time, whoever asks next for as many gets those, if that is sooner.
   */
  take(
    args: StateRef & {
      windows: readonly LimitWindow[];
      cost: number;
      withinMs: number;
      request: string;
    },
  ): Promise<{
    outcome: "granted" | "later";
    waitMs: number;
    /** Store time of the grant; it may have a fraction. */ at: number;
  }>;
  /**
   * Gives back what was granted to this request and not used. Where nobody has taken any after it, it is as if it had never been granted; else
   * whoever asks next gets it, as long as its time has not come; then it is gone: `"too-late"`. So is what was given back before.
   */
  giveBack(
    args: StateRef & { windows: readonly LimitWindow[]; cost: number; at: number; request: string },
  ): Promise<"given-back" | "too-late">;
  list(): Promise<string[]>;
  /** Keys with permits outstanding: how many could be taken at once now, by the windows of the last call, and when all are free again. */
  show(args: { name: string; n: number }): Promise<LimitRecord[]>;
  /** Forgets keys whose windows are all free again. */
  sweep(): Promise<{ forgotten: number }>;
}

export interface LimitWindow {
  limit: number;
  perMs: number;
  /** 1 to `limit`. */
  burst: number;
}

export interface LimitRecord {
  key: string;
  windows: (LimitWindow & { available: number })[];
  freeAt: number;
}
