import {
  boolean,
  checkOptions,
  integer,
  number,
  oneOf,
  refuse,
  type OptionRules,
} from "../contracts/options.ts";
import type { PoolContract } from "../contracts/pool.ts";
import { tagNames, whereTexts } from "../contracts/pool-tags.ts";
import type { Schema } from "../contracts/schema/standard.ts";
import { FleetError } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import { ITEM_STATES, type ItemTags, type NewItem } from "../protocol/pool.ts";
import type { PoolStore } from "../store/pool-store.ts";
import type { LeaseBook } from "./lease-book.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import type { PoolClaims } from "./pool-claims.ts";
import type { OnUse } from "./on-use.ts";
import { itemView, newItem } from "./pool-items.ts";
import { holdSeconds, leasesOf, retireNote } from "./pool-leases.ts";
import type { PoolRefill } from "./pool-refill.ts";
import type { ClaimOptions, Lease, PeekItems, PoolHandle, PoolSelection } from "./pool.ts";
import { toMs } from "./queue-options.ts";

/** Most items of one `putMany`, `claimMany` or `peek`: it is one step of the store, which delays all others meanwhile. */
const MAX_LIST = 1000;
const MAX_LIST_BYTES = 16 * 1024 * 1024;
const DECLARE_TRIES = 5;

const CLAIM: OptionRules<Required<ClaimOptions>> = {
  holdSeconds,
  waitSeconds: (value, where) =>
    value === Number.POSITIVE_INFINITY ? value : number({ min: 0 })(value, where),
  autoExtend: boolean,
};
const count = integer({ min: 1, max: MAX_LIST });
const state = oneOf(ITEM_STATES);
const PEEK: OptionRules<Required<PeekItems>> = { n: count, state };

export interface PoolHandleParts {
  contract: PoolContract;
  store: PoolStore;
  claims: PoolClaims;
  refill: PoolRefill;
  /** Writes the pool's settings: as who puts items, always. */
  declare: (as: "owner" | "guest") => Promise<void>;
  /** The same, once per process. */
  declareOnce: () => Promise<void>;
  keeper: LeaseKeeper;
  /** Where leases are entered. */
  books: readonly LeaseBook[];
  /** For people: who claims. */
  by: string;
  log: Log;
  signal: AbortSignal | undefined;
  /** Called when something was put or claimed, and around waits on purpose. */
  activity?: { progress(): void; waiting(on: boolean): void } | undefined;
  /** Called before each effect; throws where this user of the pool must have none any more. */
  fence?: (() => void) | undefined;
  onUse?: OnUse | undefined;
}

export function poolHandle<P extends Schema, T extends Schema>(parts: PoolHandleParts): PoolHandle<P, T> {
  const { contract, store, fence, activity, onUse } = parts;
  const pool = contract.name;
  const name = `pool "${pool}"`;
  const names = tagNames(contract.tagsJsonSchema);

  const put = async (items: readonly NewItem[]): Promise<string[]> => {
    fence?.();
    await parts.declareOnce();
    for (let tries = 1; ; tries++) {
      const answer = await store.put({ pool, items });
      if (answer.outcome === "done") break;
      if (tries === DECLARE_TRIES)
        throw new FleetError(
          "FLEET_STORE_BUSY",
          `${name}: its settings were removed from the store again and again; nothing was put`,
          { retryable: true },
        );
      await parts.declare("owner");
    }
    activity?.progress();
    onUse?.("put", pool, items.length);
    return items.map(({ id }) => id);
  };

  const itemId = (id: unknown): string =>
    typeof id === "string" && id !== "" ? id : refuse(`${name}: id`, "the id of an item", id);

  return {
    ...selection<P, T>(parts, {}, {}),

    put: async (item) => {
      const [id] = await put([await newItem(contract, name, item)]);
      return id as string;
    },

    putMany: async (items) => {
      if (!Array.isArray(items)) return refuse(`${name}: putMany`, "called with an array of items", items);
      const given = items as readonly unknown[];
      if (given.length > MAX_LIST) throw tooMany(name, `${MAX_LIST} items, got ${given.length}`);
      const made: NewItem[] = [];
      for (const [at, item] of given.entries())
        made.push(await newItem(contract, `${name}: item ${at}`, item));
      let bytes = 0;
      for (const { payload } of made) bytes += payload.length;
      if (bytes > MAX_LIST_BYTES) throw tooMany(name, `${MAX_LIST_BYTES} bytes of payloads, got ${bytes}`);
      return made.length === 0 ? [] : put(made);
    },

    where: (tags) => selection(parts, whereTexts(`${name}: where`, tags, names), tags ?? {}),

    async get(id) {
      const record = await store.get({ pool, id: itemId(id) });
      return record === undefined ? undefined : itemView<P, T>(record);
    },

    async remove(id) {
      fence?.();
      return store.remove({ pool, id: itemId(id) });
    },

    async retire(id, reason) {
      const note = reason === undefined ? "" : retireNote(reason, `${name}: retire: reason`);
      fence?.();
      return store.retire({ pool, id: itemId(id), note });
    },

    stats: () => store.stats({ pool }),
  };
}

function selection<P extends Schema, T extends Schema>(
  parts: PoolHandleParts,
  where: ItemTags,
  given: object,
): PoolSelection<P, T> {
  const { contract, store, claims, refill, activity, keeper, log, books } = parts;
  const pool = contract.name;
  const name = `pool "${pool}"`;

  /** As many leases as asked for, or none. Items that are no use are retired, and others claimed instead. */
  const claim = async (n: number, options: ClaimOptions | undefined): Promise<Lease<P, T>[] | null> => {
    const {
      holdSeconds: hold = 30,
      waitSeconds = 0,
      autoExtend = false,
    } = checkOptions<Required<ClaimOptions>>(`${name}: claim`, options, CLAIM);
    const holdMs = toMs(hold);
    const until = monotonicMs() + waitSeconds * 1000;
    if (waitSeconds > 0) activity?.waiting(true);
    try {
      parts.fence?.();
      parts.onUse?.("claim", pool, 0);
      keeper.uses("pool", pool);
      await refill.wish(where, given);
      for (;;) {
        const waitMs = Math.max(0, until - monotonicMs());
        const { by, signal, fence } = parts;
        const granted = await claims.claim({ where, n, holdMs, waitMs, autoExtend, by, signal, fence });
        if (granted === null) return null;
        const leases = await leasesOf(
          { contract, store, log, books, keeper: autoExtend ? keeper : undefined, holdMs },
          granted,
        );
        activity?.progress();
        parts.onUse?.("claim", pool, leases.length);
        if (leases.length === n) return leases as Lease<P, T>[];
        await Promise.all(leases.map((lease) => lease[Symbol.asyncDispose]()));
      }
    } finally {
      if (waitSeconds > 0) activity?.waiting(false);
    }
  };

  return {
    claim: async (options) => (await claim(1, options))?.[0] ?? null,
    claimMany: async (n, options) => claim(count(n, `${name}: claimMany: n`), options),

    async count(of) {
      const counts = await store.count({ pool, where });
      if (of !== undefined) return counts[state(of, `${name}: count: state`)];
      return counts.free + counts.held + counts.cooling;
    },

    async peek(options) {
      const { n = 1, state: of = "free" } = checkOptions<Required<PeekItems>>(`${name}: peek`, options, PEEK);
      const { items } = await store.page({ pool, state: of, where, n });
      return items.map((record) => itemView<P, T>(record));
    },
  };
}

function tooMany(name: string, what: string): FleetError {
  return new FleetError(
    "FLEET_OPTION_INVALID",
    `${name}: putMany takes at most ${what}; each call is all or nothing, so send several`,
  );
}
