import { FleetError } from "../errors.ts";
import { Throttle, type Log } from "../internal/log.ts";
import { uuidv7 } from "../internal/uuid.ts";
import { PoolClaims } from "../primitives/pool-claims.ts";
import { poolSettings } from "../primitives/pool-settings.ts";
import { PoolWaiters } from "../primitives/pool-waiters.ts";
import type { ClaimedItem, ItemTags } from "../protocol/pool.ts";
import type { Store } from "../store/store.ts";
import { contractOf, findPool } from "./known-pool.ts";

/** How often trouble with one pool is said. */
const SAY_MS = 5000;

export interface DeskClaim {
  where: ItemTags;
  holdMs: number;
  waitMs: number;
  /** For people: who claims. */
  by: string;
  /** Aborts when whoever asked has gone: what is granted after that is given back. */
  signal: AbortSignal;
}

/**
 * Claims items for those who are no part of this process: they hold them by their tokens alone, also when this process has ended. Those who
 * wait stand in line like everybody else, and share one watch per pool.
 */
export class PoolDesk {
  readonly #store: Store;
  readonly #log: Log;
  readonly #holder = uuidv7();
  readonly #pools = new Map<string, { claims: PoolClaims; waiters: PoolWaiters }>();

  constructor(store: Store, log: Log) {
    this.#store = store;
    this.#log = log;
  }

  /** Null where none is free in time. Throws `FLEET_NOT_FOUND` for a pool that nobody has used or declares. */
  async claim(pool: string, { where, holdMs, waitMs, by, signal }: DeskClaim): Promise<ClaimedItem | null> {
    const { claims } = this.#of(pool);
    const granted = await claims.claim({
      where,
      n: 1,
      holdMs,
      waitMs,
      autoExtend: false,
      by,
      signal,
      fence: undefined,
    });
    const item = granted?.[0]?.item ?? null;
    if (item === null || !signal.aborted) return item;
    // Nobody is there any more to be told of it.
    await this.#store.pools.change({ pool, id: item.id, token: item.token, change: { do: "release" } });
    return null;
  }

  /** Ends the lines that are open here. What is held stays held. */
  async close(): Promise<void> {
    await Promise.all(
      [...this.#pools.values()].map(async ({ claims, waiters }) => {
        await waiters.close();
        await claims.settled();
      }),
    );
  }

  #of(pool: string): { claims: PoolClaims; waiters: PoolWaiters } {
    const known = this.#pools.get(pool);
    if (known !== undefined) return known;
    const { pools } = this.#store;
    const waiters = new PoolWaiters((onHint) => pools.watch({ pool }, onHint));
    const claims = new PoolClaims({
      store: pools,
      pool,
      holder: this.#holder,
      waiters,
      declare: () => this.#declare(pool),
      log: this.#log,
      quietly: new Throttle(SAY_MS),
    });
    const made = { claims, waiters };
    this.#pools.set(pool, made);
    return made;
  }

  /** Of a pool that workers have published and nobody has put anything into yet. */
  async #declare(pool: string): Promise<void> {
    const known = await findPool(this.#store, pool);
    if (known.published === undefined) throw new FleetError("FLEET_NOT_FOUND", `pool "${pool}" is gone`);
    const settings = poolSettings(contractOf(known, true));
    await this.#store.pools.declare({ pool, settings, as: "guest" });
  }
}
