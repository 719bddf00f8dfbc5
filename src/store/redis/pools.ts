import { FleetError } from "../../errors.ts";
import type { ItemRecord } from "../../protocol/pool.ts";
import { type ClaimResult, FORGET_REFILL_MS, type PoolStore } from "../pool-store.ts";
import { refill as refillOf } from "../records.ts";
import { enterName } from "./name-index.ts";
import type { RedisParts } from "./parts.ts";
import { hashPlace } from "./places.ts";
import { longId, shortId } from "./pool-compact.ts";
import {
  claimedOf,
  type ClaimedReply,
  countsOf,
  itemOf,
  type ItemReply,
  settingsOf,
  statsOf,
  type StatsReply,
  wireOfChange,
  wireOfItems,
  wireOfSettings,
  wireOfWhere,
} from "./pool-wire.ts";

/**
 * Pools on Redis. Each call is one script, so one atomic step; what it costs is bounded. All sets of a pool are marked with the time from
 * which each item is available (`lua/pool.lua`), so a claim reads the first of one set, whether all items are free or all are held.
 */
export function redisPools({ link, run, keys, identity, subscriber, book }: RedisParts): PoolStore {
  /** No settings where there were some: the store may have come back empty, and then the fleet's id is gone as well. */
  const undeclared = () => {
    void identity.reseed();
    return { outcome: "undeclared" } as const;
  };
  const call = <T>(
    script: Parameters<typeof run>[0],
    pool: string,
    args: Record<string, string> = {},
    rest: readonly string[] = [],
    repeatable = true,
  ) =>
    run<T>(script, {
      keys: { base: keys.pool(pool).base },
      args: { fleet: identity.id, ...args },
      rest,
      repeatable,
    });

  return {
    async declare({ pool, settings, as }) {
      // The index lies on another node of a cluster, so this takes two steps. First the index: it may name too much, never too little.
      await enterName(run, keys.fleet.pools, pool);
      const [kept, renewing] = await call<[string[], number]>(
        "pool-declare",
        pool,
        { role: as },
        wireOfSettings(settings),
      );
      // Items are put where they belong by the new settings step by step. What is left undone goes on with the next declaration.
      let more = renewing;
      while (more === 1) more = await call<number>("pool-renew", pool);
      return settingsOf(kept);
    },

    async list() {
      const key = keys.fleet.pools;
      const names = (await link.call(["SMEMBERS", key], { repeatable: true, key })) as string[];
      return names.toSorted();
    },

    async put({ pool, items }) {
      const reply = await call<("put" | "exists")[] | "undeclared">("pool-put", pool, {}, wireOfItems(items));
      return reply === "undeclared" ? undeclared() : { outcome: "done", items: reply };
    },

    async claim({ pool, where, n, holdMs, autoExtend, request, holder, by, waitFor }): Promise<ClaimResult> {
      const reply = await call<ClaimReply>("pool-claim", pool, {
        where: wireOfWhere(where),
        n: String(n),
        holdMs: String(Math.round(holdMs)),
        auto: autoExtend ? "1" : "0",
        request,
        holder,
        by,
        patienceMs: waitFor === undefined ? "" : String(Math.round(waitFor.patienceMs)),
        seed: String(Math.floor(Math.random() * 2 ** 31)),
      });
      if (reply[0] === "undeclared") return undeclared();
      const now = Number(reply[1]);
      if (reply[0] === "claimed") return { outcome: "claimed", items: reply[2].map(claimedOf), now };
      const [, , position, nextFreeAt] = reply;
      return {
        outcome: "none",
        position: position === "" ? null : position,
        nextFreeAt: nextFreeAt === "" ? null : Number(nextFreeAt),
        now,
      };
    },

    async leave({ pool, request }) {
      await call("pool-leave", pool, { request });
    },

    async change({ pool, id, token, change }) {
      // Repeated, what ended the claim would find it ended, and a report would count twice.
      const again = change.do === "extend" || change.do === "update";
      const reply = await call<["lease-lost"] | ["done", number | "", number]>(
        "pool-change",
        pool,
        { id: shortId(id), token, ...wireOfChange(change) },
        [],
        again,
      );
      if (reply[0] === "lease-lost") return { outcome: "lease-lost" };
      return { outcome: "done", until: reply[1] === "" ? null : reply[1], score: reply[2] };
    },

    retire: ({ pool, id, note }) => call("pool-retire", pool, { id: shortId(id), how: "retired", note }),
    // Repeated, it would not find what it has removed.
    remove: ({ pool, id }) =>
      call("pool-retire", pool, { id: shortId(id), how: "removed", note: "" }, [], false),

    async keep({ pool, holders }) {
      const [at, held] = await call<[string, (string | number)[][]]>("pool-keep", pool, {}, holders);
      return { held: held.map(heldOf), at };
    },

    async lose({ pool, holders }) {
      return { released: await call<number>("pool-lose", pool, {}, holders) };
    },

    async get({ pool, id }) {
      const reply = await call<ItemReply | null>("pool-get", pool, { id: shortId(id) });
      return reply === null ? undefined : itemOf(reply);
    },

    async page({ pool, state, where, n, cursor }) {
      const items: ItemRecord[] = [];
      let after = cursor ?? "0";
      if (!/^\d{1,15}$/.test(after)) {
        throw new FleetError(
          "FLEET_OPTION_INVALID",
          `cursor: ${JSON.stringify(cursor)} is none of this store; take \`next\` of the page before`,
        );
      }
      if (n <= 0) return { items };
      for (;;) {
        const args = { state, where: wireOfWhere(where), n: String(n - items.length), after };
        const [found, next] = await call<[ItemReply[], string]>("pool-page", pool, args);
        items.push(...found.map(itemOf));
        if (next === "") return { items };
        if (items.length >= n) return { items, next };
        after = next;
      }
    },

    async count({ pool, where }) {
      return countsOf(await call<number[]>("pool-count", pool, { where: wireOfWhere(where) }));
    },

    async stats({ pool }) {
      const reply = await call<StatsReply>("pool-stats", pool);
      return reply.length === 0 ? undefined : statsOf(reply);
    },

    async sweep({ pool }) {
      const [released, expired, retired, forgotten, more] = await call<
        [number, number, number, number, number]
      >("pool-sweep", pool, { refillMs: String(FORGET_REFILL_MS) });
      return { released, expired, retired, forgotten, more: more === 1 };
    },

    async putRefill({ pool, refill }) {
      await run("pool-put-refill", {
        keys: { base: keys.pool(pool).base },
        args: { where: wireOfWhere(refill.where), refill: JSON.stringify(refill) },
        repeatable: true,
      });
    },

    async refills({ pool }) {
      const key = keys.pool(pool).refills;
      const kept = (await link.call(["HGETALL", key], { repeatable: true, key })) as Record<string, string>;
      const sorted = Object.entries(kept).toSorted(([a], [b]) => (a < b ? -1 : 1));
      return book.look(hashPlace("refill", key, pool), sorted, refillOf).good.map(([, one]) => one);
    },

    watch({ pool }, onHint) {
      return subscriber.listen("channel", keys.pool(pool).hint, {
        onMessage: (fleet) => {
          if (fleet === identity.id) onHint();
        },
        onRestored: onHint,
      });
    },
  };
}

type ClaimReply =
  | ["undeclared"]
  | ["claimed", now: string, items: ClaimedReply[]]
  | ["none", now: string, position: number | "", nextFreeAt: string];

/** `id, token, until, …` */
function heldOf(flat: readonly (string | number)[]) {
  const held: { id: string; token: string; until: number }[] = [];
  for (let i = 0; i + 2 < flat.length; i += 3)
    held.push({ id: longId(String(flat[i])), token: String(flat[i + 1]), until: Number(flat[i + 2]) });
  return held.toSorted((a, b) => Number(a.token) - Number(b.token));
}
