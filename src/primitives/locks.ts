import { checkName } from "../contracts/name.ts";
import { boolean, checkOptions, number, type OptionRules } from "../contracts/options.ts";
import { stateKey } from "../contracts/rate-limit.ts";
import { Throttle, type Log } from "../internal/log.ts";
import type { LockStore } from "../store/state-store.ts";
import { LeaseBook } from "./lease-book.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import { LockHold, lockText } from "./lock-hold.ts";
import { LockRequests, type LockRequest } from "./lock-requests.ts";
import { LockWaiters } from "./lock-waiters.ts";
import type { LockLease, LockOptions } from "./lock.ts";
import { type StateUse, waitingOnPurpose, waitSeconds } from "./state-use.ts";

/** How often trouble with one name is said. */
const SAY_MS = 5000;
const DAY = 86_400;
const holdSeconds = number({ above: 0, max: DAY });
const RULES: OptionRules<Required<LockOptions>> = {
  key: stateKey,
  holdSeconds,
  waitSeconds,
  autoExtend: boolean,
};

type Asked = LockRequest & { autoExtend: boolean };

export interface LocksParts {
  log: Log;
  /** Under which name this process holds locks, unique for ever. */
  holder: string;
  keeper: LeaseKeeper;
  /** For people: who holds, where no slot does. */
  by: string;
  /** Ends all waits. */
  over: AbortSignal;
}

/** The locks of one process: what its users share (one watch per name, leases). */
export class Locks {
  readonly #store: LockStore;
  readonly #parts: LocksParts;
  readonly #leases = new LeaseBook();
  /** Calls under way: a lock that is granted after the end is given back. */
  readonly #taking = new Set<Promise<unknown>>();
  readonly #names = new Map<string, { requests: LockRequests; waiters: LockWaiters }>();

  constructor(store: LockStore, parts: LocksParts) {
    this.#store = store;
    this.#parts = parts;
  }

  /** Null where somebody else has the lock for longer than it was waited for. */
  async lock(name: string, options: LockOptions | undefined, use: StateUse): Promise<LockLease | null> {
    const where = `lock ${JSON.stringify(name)}`;
    checkName("lock", name);
    const given = checkOptions<Required<LockOptions>>(where, options, RULES);
    const { key = "", holdSeconds: hold = 30, waitSeconds: wait = 0, autoExtend = false } = given;
    const args: Asked = {
      key,
      holdMs: Math.max(1, Math.round(hold * 1000)),
      waitMs: wait * 1000,
      by: use.by ?? this.#parts.by,
      signal: use.signal ?? this.#parts.over,
      fence: use.fence,
      autoExtend,
    };
    const taking = waitingOnPurpose(use, wait, () => this.#take(name, args, use));
    this.#taking.add(taking);
    try {
      return await taking;
    } finally {
      this.#taking.delete(taking);
    }
  }

  async #take(name: string, args: Asked, use: StateUse): Promise<LockLease | null> {
    const { key, holdMs, signal, autoExtend } = args;
    const { log, keeper } = this.#parts;
    // Code that is told to end may still take a lock to put something in order.
    const ending = isAborted(signal);
    const grant = await this.#requests(name).acquire(args);
    if (grant === null) return null;
    const held = new LockHold({
      name,
      key,
      holdMs,
      ...grant,
      store: this.#store,
      log: use.log ?? log,
      keeper: autoExtend ? keeper : undefined,
      books: use.leases === undefined ? [this.#leases] : [this.#leases, use.leases],
    });
    if (!ending && isAborted(signal)) {
      // Whoever gives back what is left may have done so already.
      await held.giveUp();
      return null;
    }
    use.activity?.progress();
    return leaseOf(name, key, grant.token, held);
  }

  /** Gives back what is held, after all waits have ended. */
  async close(): Promise<void> {
    for (const { waiters } of this.#names.values()) await waiters.close();
    await Promise.allSettled(this.#taking);
    await this.#leases.releaseAll();
    await Promise.all([...this.#names.values()].map(({ requests }) => requests.settled()));
  }

  #requests(name: string): LockRequests {
    const known = this.#names.get(name);
    if (known !== undefined) return known.requests;
    const { holder, log, keeper } = this.#parts;
    keeper.uses("lock", name);
    const waiters = new LockWaiters((onHint) => this.#store.watch({ name }, onHint));
    const quietly = new Throttle(SAY_MS);
    const requests = new LockRequests(this.#store, name, { holder, waiters, log, quietly });
    this.#names.set(name, { requests, waiters });
    return requests;
  }
}

/** A call, because the compiler would take a property's value as unchanged over an `await`. */
function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

function leaseOf(name: string, key: string, token: string, held: LockHold): LockLease {
  return {
    name,
    key,
    token,
    get signal() {
      return held.signal;
    },
    extend: async (seconds) =>
      held.extend(Math.round(holdSeconds(seconds, `${lockText(name, key)}: extend: seconds`) * 1000)),
    release: () => held.release(),
    [Symbol.asyncDispose]: () => held.giveUp(),
  };
}
