import { setMaxListeners } from "node:events";
import { isPoolContract, type PoolContract } from "../contracts/pool.ts";
import type { Schema } from "../contracts/schema/standard.ts";
import { FleetError } from "../errors.ts";
import { Throttle, type Log } from "../internal/log.ts";
import { uuidv7 } from "../internal/uuid.ts";
import type { Store } from "../store/store.ts";
import { LeaseBook } from "./lease-book.ts";
import { OwnLeaseKeeper, type LeaseKeeper } from "./lease-keeper.ts";
import { PoolClaims } from "./pool-claims.ts";
import { poolHandle } from "./pool-handle.ts";
import { PoolRefill } from "./pool-refill.ts";
import { poolSettings } from "./pool-settings.ts";
import { PoolWaiters } from "./pool-waiters.ts";
import type { OnUse } from "./on-use.ts";
import type { PoolHandle } from "./pool.ts";

/** How often trouble with one pool is said. */
const SAY_MS = 5000;

export interface PoolsOptions {
  log: Log;
  /** Under which name this process claims, unique for ever; default a new UUIDv7. */
  holder?: string;
  /** Who renews leases that extend themselves; default this process itself. */
  keeper?: LeaseKeeper;
  /** For people: who claims, where no slot does. */
  by?: string;
  /** As what the settings of a pool are written with the first put; default `"owner"`: who puts items in has the say. */
  declareAs?: "owner" | "guest";
  /** Default nobody. */
  onUse?: OnUse;
}

/** By whom a handle is used, where that is a slot. */
export interface PoolUse {
  /** Ends waits early. Its user ends it before all this is closed. */
  signal?: AbortSignal;
  /** Called when something was put or claimed, and around waits on purpose. */
  activity?: { progress(): void; waiting(on: boolean): void };
  /** Called before each effect; throws where this user must have none any more. */
  fence?: () => void;
  /** For people: who claims. */
  by?: string;
  /** Where leases are entered too: whoever keeps it gives back what is left. */
  leases?: LeaseBook;
  log?: Log;
}

/** What this process shares of one pool. */
interface Shared {
  claims: PoolClaims;
  refill: PoolRefill;
  waiters: PoolWaiters;
  /** Settings are written with the first put, and anew with those of another contract. */
  declared: PoolContract | undefined;
}

/** The pools of one process, from their users' side: what its handles share (waits in line, leases, one watch per pool). */
export class Pools {
  readonly #store: Store;
  readonly #options: PoolsOptions;
  readonly #holder: string;
  readonly #keeper: LeaseKeeper;
  readonly #leases = new LeaseBook();
  readonly #shared = new Map<string, Shared>();
  readonly #over = new AbortController();

  constructor(store: Store, options: PoolsOptions) {
    this.#store = store;
    this.#options = options;
    this.#holder = options.holder ?? uuidv7();
    this.#keeper = options.keeper ?? new OwnLeaseKeeper();
    // As many parts of a process may wait at once as there are; each listens while it waits, so more than ten are no leak.
    setMaxListeners(0, this.#over.signal);
  }

  handle<P extends Schema, T extends Schema>(
    contract: PoolContract<P, T>,
    use: PoolUse = {},
  ): PoolHandle<P, T> {
    if (!isPoolContract(contract))
      throw new FleetError(
        "FLEET_OPTION_INVALID",
        "expected a pool contract made by definePool(name, { payload, tags })",
      );
    if (this.#over.signal.aborted) throw new FleetError("FLEET_CLOSED", "this fleet has been closed");
    const shared = this.#sharedOf(contract);
    // Its user may wait in as many places at once as there are.
    if (use.signal !== undefined) setMaxListeners(0, use.signal);
    const as = this.#options.declareAs ?? "owner";
    return poolHandle<P, T>({
      contract,
      store: this.#store.pools,
      claims: shared.claims,
      refill: shared.refill,
      declare: (how) => this.declare(contract, how === "owner" ? as : how),
      declareOnce: async () => {
        if (shared.declared === contract) return;
        await this.declare(contract, as);
        shared.declared = contract;
      },
      keeper: this.#keeper,
      books: use.leases === undefined ? [this.#leases] : [this.#leases, use.leases],
      by: use.by ?? this.#options.by ?? this.#holder,
      log: use.log ?? this.#options.log,
      signal: use.signal ?? this.#over.signal,
      activity: use.activity,
      fence: use.fence,
      onUse: this.#options.onUse,
    });
  }

  /** Writes a pool's settings: as owner always, as guest only where there are none. */
  async declare(contract: PoolContract, as: "owner" | "guest"): Promise<void> {
    await this.#store.pools.declare({ pool: contract.name, settings: poolSettings(contract), as });
  }

  /** Ends all waiting and gives back what is held. Idempotent. */
  async close(): Promise<void> {
    this.#over.abort(new FleetError("FLEET_CLOSED", "this fleet has been closed"));
    await this.#leases.releaseAll();
    await Promise.all(
      [...this.#shared.values()].map(async ({ waiters, claims }) => {
        await waiters.close();
        await claims.settled();
      }),
    );
  }

  #sharedOf(contract: PoolContract): Shared {
    const { name } = contract;
    const known = this.#shared.get(name);
    if (known !== undefined) return known;
    const { pools } = this.#store;
    const waiters = new PoolWaiters((onHint) => pools.watch({ pool: name }, onHint));
    const refill = new PoolRefill(this.#store, contract, () => this.declare(contract, "guest"));
    const claims = new PoolClaims({
      store: pools,
      pool: name,
      holder: this.#holder,
      waiters,
      declare: async () => {
        refill.forget();
        await this.declare(contract, "guest");
      },
      log: this.#options.log,
      quietly: new Throttle(SAY_MS),
    });
    const made: Shared = { claims, refill, waiters, declared: undefined };
    this.#shared.set(name, made);
    return made;
  }
}
