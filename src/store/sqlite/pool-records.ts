import { FleetError } from "../../errors.ts";
import { ITEM_STATES, type ItemRecord, type ItemState, type ItemTags } from "../../protocol/pool.ts";
import type { PoolStats, PoolStore } from "../pool-store.ts";
import type { Database } from "./database.ts";
import type { OpenPool, PoolBook } from "./pool-book.ts";
import { searchFor } from "./pool-find.ts";
import { type Item, itemAt, itemsWhere, readItem, selectItems, textsOf, UP_TO } from "./pool-items.ts";
import { waitingIn } from "./pool-line.ts";
import { allCounts, bears, countsOf, wantsOf } from "./pool-tags.ts";
import type { Writer } from "./writer.ts";

const PAGE = itemsWhere(`state = ? AND nr > ? ORDER BY nr ${UP_TO}`);
const BEARERS = `SELECT DISTINCT a.seq FROM json_each(?) v CROSS JOIN pool_item_tags a
  WHERE a.pool_id = ? AND a.tag = ? AND a.value = v.value AND a.state = ?`;
const NO_COUNTS: Record<ItemState, number> = { free: 0, held: 0, cooling: 0, retired: 0 };

/** What can be seen of a pool and its items. */
export function createPoolRecords(parts: {
  db: Database;
  writer: Writer;
  book: PoolBook;
}): Pick<PoolStore, "get" | "page" | "count" | "stats"> {
  const { db, writer, book } = parts;

  function matching(pool: OpenPool, where: ItemTags, state: ItemState): Item[] {
    const { lead, others, most } = searchFor(db, pool, wantsOf(where), state);
    if (most === 0) return [];
    return db
      .sql(BEARERS)
      .all<[number]>(JSON.stringify(lead.values), pool.id, lead.tag, state)
      .flatMap(([seq]) => itemAt(db, seq) ?? [])
      .filter(({ tags }) => others.every((want) => bears(tags, want) > 0));
  }

  function pageOf(
    pool: OpenPool,
    { state, where, n, cursor }: Omit<Parameters<PoolStore["page"]>[0], "pool">,
  ): { items: ItemRecord[]; next?: string } {
    const after = cursor === undefined ? 0 : parseCursor(cursor);
    const found =
      Object.keys(where).length === 0
        ? selectItems(db, PAGE, pool.id, state, after, n + 1)
        : matching(pool, where, state)
            .filter(({ nr }) => nr > after)
            .toSorted((a, b) => a.nr - b.nr);
    const page = found.slice(0, n);
    const items = page.map((item) => toRecord(db, item));
    const last = found.length > n ? page.at(-1) : undefined;
    return last === undefined ? { items } : { items, next: String(last.nr) };
  }

  /** Kept for the whole pool and for each value; what asks for more is searched for. */
  function countOf(pool: OpenPool, where: ItemTags): Record<ItemState, number> {
    const [want, ...more] = wantsOf(where);
    if (want !== undefined && more.length === 0 && want.values.length === 1)
      return countsOf(db, pool, want.tag, want.values[0] ?? "");
    const counts = { ...NO_COUNTS };
    for (const state of ITEM_STATES) counts[state] = matching(pool, where, state).length;
    return counts;
  }

  function statsOf(pool: OpenPool): PoolStats {
    const { settings, totals } = pool;
    return { settings, counts: allCounts(db, pool), waiting: waitingIn(db, pool), totals };
  }

  const none = () => undefined;

  return {
    get({ pool: name, id }) {
      const record = (pool: OpenPool) => {
        const item = readItem(db, pool.id, id);
        return item === undefined ? undefined : toRecord(db, item);
      };
      return writer.read(() => book.look<ItemRecord | undefined>(name, record, none));
    },
    page({ pool: name, ...args }) {
      const empty = (): { items: ItemRecord[]; next?: string } => ({ items: [] });
      return writer.read(() => book.look(name, (pool) => pageOf(pool, args), empty));
    },
    count({ pool: name, where }) {
      return writer.read(() =>
        book.look(
          name,
          (pool) => countOf(pool, where),
          () => ({ ...NO_COUNTS }),
        ),
      );
    },
    stats({ pool: name }) {
      return writer.read(() => book.look<PoolStats | undefined>(name, statsOf, none));
    },
  };
}

function toRecord(db: Database, item: Item): ItemRecord {
  const { id, state, uses, score, putAt, expiresAt, lastUsedAt, coolUntil, retired } = item;
  const { payload, tagsJson } = textsOf(db, item.seq);
  const holder =
    state === "held"
      ? { by: item.heldBy ?? "", since: item.heldSince ?? 0, until: item.leaseUntil ?? 0 }
      : null;
  const used = { uses, score, putAt, expiresAt, lastUsedAt };
  return { id, state, payload, tagsJson, ...used, holder, coolUntil, retired };
}

function parseCursor(cursor: string): number {
  if (/^\d{1,16}$/.test(cursor)) return Number(cursor);
  const what = `page: cursor ${JSON.stringify(cursor)} is none of this pool; take \`next\` of the page before`;
  throw new FleetError("FLEET_OPTION_INVALID", what);
}
