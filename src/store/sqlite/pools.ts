import { canonicalJson } from "../../internal/canonical.ts";
import type { PoolSettings, PoolStore } from "../pool-store.ts";
import type { DamageBook } from "../damage.ts";
import type { Clock } from "./clock.ts";
import type { Database } from "./database.ts";
import type { Notifier } from "./notify.ts";
import { createPoolBook, type OpenPool } from "./pool-book.ts";
import { createPoolClaims } from "./pool-claims.ts";
import { retireAsked } from "./pool-ends.ts";
import { createPoolHolders } from "./pool-holders.ts";
import { type Item, readItem } from "./pool-items.ts";
import { dropItem, putItem } from "./pool-moves.ts";
import { createPoolRecords } from "./pool-records.ts";
import { createPoolRefills, forgetRefills } from "./pool-refills.ts";
import { beginRenewal, isRenewing, renew } from "./pool-renew.ts";
import { AT_ONCE, expireItem, forget, tidy } from "./pool-sweep.ts";
import { createPoolWatch } from "./pool-watch.ts";
import type { Writer } from "./writer.ts";

type Swept = Awaited<ReturnType<PoolStore["sweep"]>>;

const LIST = "SELECT name FROM pools WHERE ns = ? ORDER BY name";

/**
 * Composes the pools of their parts. Each call opens its pool, works on it and writes it back, in one transaction; a claim of
 * some items touches as many rows as they have tags, and no more however many items lie there.
 */
export function createPools(parts: {
  db: Database;
  ns: string;
  clock: Clock;
  writer: Writer;
  notifier: Notifier;
  damage: DamageBook;
}): PoolStore {
  const { db, ns, writer } = parts;
  const { watch, onMoved } = createPoolWatch(parts);
  const book = createPoolBook({ ...parts, onMoved });
  const inner = { db, writer, book };

  function settle(pool: OpenPool, settings: PoolSettings): void {
    const { strategy } = pool.settings;
    pool.settings = { ...settings };
    if (strategy !== settings.strategy) beginRenewal(db, pool);
  }

  /** Puts all items where they belong by settings that have changed, step by step. What is left undone goes on with the next declaration. */
  async function renewAll(name: string): Promise<void> {
    const nothing = () => false;
    const left = (pool: OpenPool) => (isRenewing(db, pool) ? undefined : false);
    const shortcut = () => book.look<boolean | undefined>(name, left, nothing);
    let more = true;
    while (more)
      more = await writer.write(() => book.change(name, (pool) => renew(db, pool), nothing), {
        weight: AT_ONCE,
        shortcut,
      });
  }

  function sweep(pool: OpenPool): Swept {
    const { leasesExpired, expired, retired } = pool.totals;
    const tidied = tidy(db, pool);
    const { forgotten, more } = forget(db, pool);
    const moreWishes = forgetRefills(db, pool);
    const { totals } = pool;
    return {
      released: totals.leasesExpired - leasesExpired,
      expired: totals.expired - expired,
      retired: totals.retired - retired,
      forgotten,
      more: more || tidied.more || moreWishes,
    };
  }

  /** What somebody who does not hold an item does with it; `settled` where that is done already. */
  function byHand<T extends string>(
    name: string,
    id: string,
    done: T,
    work: (pool: OpenPool, item: Item) => void,
    settled: (item: Item) => boolean,
  ): Promise<T | "unknown"> {
    const unknown = () => "unknown" as const;
    const answer = (pool: OpenPool): T | "unknown" => {
      const item = readItem(db, pool.id, id);
      if (item === undefined) return "unknown";
      work(pool, item);
      return done;
    };
    const before = (pool: OpenPool): T | "unknown" | undefined => {
      const item = readItem(db, pool.id, id);
      if (item === undefined) return "unknown";
      return settled(item) ? done : undefined;
    };
    return writer.write(() => book.change<T | "unknown">(name, answer, unknown), {
      shortcut: () => book.look<T | "unknown" | undefined>(name, before, unknown),
    });
  }

  return {
    async declare({ pool: name, settings, as }) {
      const kept = await writer.write<PoolSettings>(
        () => {
          const pool = book.open(name) ?? book.create(name, settings);
          if (as === "guest") return pool.settings;
          settle(pool, settings);
          book.save(pool);
          return pool.settings;
        },
        {
          shortcut() {
            const present = book.open(name)?.settings;
            if (present === undefined) return undefined;
            return as === "guest" || canonicalJson(present) === canonicalJson(settings) ? present : undefined;
          },
        },
      );
      await renewAll(name);
      return kept;
    },

    list() {
      return writer.read(() =>
        db
          .sql(LIST)
          .all<[string]>(ns)
          .map(([name]) => name),
      );
    },

    put({ pool: name, items }) {
      type Put = Awaited<ReturnType<PoolStore["put"]>>;
      const put = (pool: OpenPool): Put => ({
        outcome: "done",
        items: items.map((given) => {
          if (putItem(db, pool, given)) return "put";
          const other = readItem(db, pool.id, given.id);
          if (other === undefined || !expireItem(db, pool, other)) return "exists";
          return putItem(db, pool, given) ? "put" : "exists";
        }),
      });
      return writer.write(() => book.change<Put>(name, put, () => ({ outcome: "undeclared" })), {
        weight: 1 + items.length,
        bytes: items.reduce((sum, { payload, tagsJson }) => sum + payload.length + tagsJson.length, 0),
      });
    },

    retire({ pool, id, note }) {
      const retire = (open: OpenPool, item: Item) => retireAsked(db, open, item, note);
      return byHand(pool, id, "retired", retire, ({ state }) => state === "retired");
    },

    remove({ pool, id }) {
      const remove = (open: OpenPool, item: Item) => dropItem(db, open, item, "removed");
      return byHand(pool, id, "removed", remove, () => false);
    },

    sweep({ pool: name }) {
      const nothing = (): Swept => ({ released: 0, expired: 0, retired: 0, forgotten: 0, more: false });
      return writer.write(() => book.change(name, sweep, nothing), { weight: AT_ONCE });
    },

    ...createPoolClaims(inner),
    ...createPoolHolders(inner),
    ...createPoolRecords(inner),
    ...createPoolRefills({ ...inner, damage: parts.damage }),
    watch,
  };
}
