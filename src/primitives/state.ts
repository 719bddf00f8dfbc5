import { setMaxListeners } from "node:events";
import { FleetError } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { uuidv7 } from "../internal/uuid.ts";
import type { Store } from "../store/store.ts";
import type { Counter, CounterOptions } from "./counter.ts";
import { Counters } from "./counters.ts";
import { OwnLeaseKeeper, type LeaseKeeper } from "./lease-keeper.ts";
import type { LockLease, LockOptions } from "./lock.ts";
import { Locks } from "./locks.ts";
import type { RateLimitOptions } from "../contracts/rate-limit.ts";
import type { RateLimit } from "./rate-limit.ts";
import { RateLimits } from "./rate-limits.ts";
import type { StateUse } from "./state-use.ts";

export interface SharedStateOptions {
  log: Log;
  /** Under which name this process holds locks, unique for ever; default a new UUIDv7. */
  holder?: string;
  /** Who renews leases that extend themselves; default this process itself, at a third of the hold. */
  keeper?: LeaseKeeper;
  /** For people: who holds a lock, where no slot does. */
  by?: string;
}

/** The locks, counters and rate limits of one process, from their users' side. */
export class SharedState {
  readonly #locks: Locks;
  readonly #counters: Counters;
  readonly #limits: RateLimits;
  readonly #over = new AbortController();

  constructor(store: Store, options: SharedStateOptions) {
    const { log, holder = uuidv7(), keeper = new OwnLeaseKeeper(), by = holder } = options;
    const over = this.#over.signal;
    // As many parts of a process may wait at once as there are; each listens while it waits, so more than ten are no leak.
    setMaxListeners(0, over);
    this.#locks = new Locks(store.state.locks, { log, holder, keeper, by, over });
    this.#counters = new Counters(store.state.counters);
    this.#limits = new RateLimits(store.state.limits, over);
  }

  async lock(name: string, options?: LockOptions, use: StateUse = {}): Promise<LockLease | null> {
    this.#check(use);
    return this.#locks.lock(name, options, use);
  }

  counter(name: string, options?: CounterOptions, use: StateUse = {}): Counter {
    this.#check(use);
    return this.#counters.counter(name, options, use);
  }

  rateLimit(name: string, options: RateLimitOptions, use: StateUse = {}): RateLimit {
    this.#check(use);
    return this.#limits.rateLimit(name, options, use);
  }

  /** Ends all waiting and gives back the locks that are held. Idempotent. */
  async close(): Promise<void> {
    this.#over.abort(new FleetError("FLEET_CLOSED", "this fleet has been closed"));
    await this.#locks.close();
  }

  #check({ signal }: StateUse): void {
    if (this.#over.signal.aborted) throw new FleetError("FLEET_CLOSED", "this fleet has been closed");
    // Its user may wait in as many places at once as there are.
    if (signal !== undefined) setMaxListeners(0, signal);
  }
}
