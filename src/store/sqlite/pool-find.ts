import { randomInt } from "node:crypto";
import type { ItemState } from "../../protocol/pool.ts";
import type { Database } from "./database.ts";
import type { SqlValue } from "./driver.ts";
import type { OpenPool } from "./pool-book.ts";
import { type Item, itemAt, UP_TO } from "./pool-items.ts";
import { LUCK, NEVER } from "./pool-moves.ts";
import { bears, countsOf, type Want } from "./pool-tags.ts";

type Found = readonly [seq: number, since: number, rank: number];

/** Up to so many, all that match are looked at, and some of them are drawn. */
const FEW = 64;
/** Bounds of the buckets from which is drawn where there are more: how many lie in one on average, and at most. */
const BUCKET = 8;
const FULL_BUCKET = 48;
/** So many draws may miss for each item; then all that match are looked at. */
const MISSES = 64;

/**
 * Walks the index of one value from its front. All rows of an item stand at one place of their state, so whether it bears the other tags is
 * one probe for each.
 */
function walk(others: number, rest: string): string {
  const probe = `AND EXISTS (SELECT 1 FROM json_each(?) w CROSS JOIN pool_item_tags b WHERE b.pool_id = a.pool_id
    AND b.tag = ? AND b.value = w.value AND b.state = a.state AND b.since = a.since AND b.rank = a.rank
    AND b.seq = a.seq) `;
  return `SELECT a.seq, a.since, a.rank FROM pool_item_tags a WHERE a.pool_id = ? AND a.tag = ? AND a.value = ?
    AND a.state = ? ${rest} ${probe.repeat(others)}ORDER BY a.since, a.rank, a.seq ${UP_TO}`;
}

/** How to come by the items of a state that fulfil a wish: the tag with the fewest leads. */
export interface Search {
  lead: Want;
  others: readonly Want[];
  /** How many there are at most. */
  most: number;
}

export function searchFor(db: Database, pool: OpenPool, wants: readonly Want[], state: ItemState): Search {
  const ranked = wants
    .map((want) => {
      const counts = want.values.map((value) => countsOf(db, pool, want.tag, value)[state]);
      return { want, most: counts.reduce((sum, count) => sum + count, 0) };
    })
    .toSorted((a, b) => a.most - b.most);
  const [first, ...rest] = ranked;
  if (first === undefined) throw new Error("a wish has no tag");
  return { lead: first.want, others: rest.map(({ want }) => want), most: first.most };
}

function select(
  db: Database,
  pool: OpenPool,
  search: Search,
  args: { value: string; state: ItemState; rest?: string; bounds?: readonly number[]; limit: number },
): Found[] {
  const { value, state, rest = "", bounds = [], limit } = args;
  const probes = search.others.flatMap(({ tag, values }): SqlValue[] => [JSON.stringify(values), tag]);
  const sql = walk(search.others.length, rest);
  return db.sql(sql).all<Found>(pool.id, search.lead.tag, value, state, ...bounds, ...probes, limit);
}

/** The first `n` that match, in the order of their state. */
export function findFirst(
  db: Database,
  pool: OpenPool,
  wants: readonly Want[],
  state: ItemState,
  n: number,
): Found[] {
  const search = searchFor(db, pool, wants, state);
  return search.most === 0 ? [] : firstOf(db, pool, search, state, n);
}

function firstOf(db: Database, pool: OpenPool, search: Search, state: ItemState, n: number): Found[] {
  const { values } = search.lead;
  const found = values.flatMap((value) => select(db, pool, search, { value, state, limit: n }));
  if (values.length === 1) return found;
  const distinct = [...new Map(found.map((one) => [one[0], one])).values()];
  return distinct.toSorted((a, b) => a[1] - b[1] || a[2] - b[2] || a[0] - b[0]).slice(0, n);
}

/** The free items to give out next, as the strategy says: `n` of them, or fewer where there are no more. */
export function findFree(db: Database, pool: OpenPool, wants: readonly Want[], n: number): number[] {
  const search = searchFor(db, pool, wants, "free");
  if (search.most < n) return [];
  if (pool.settings.strategy !== "random") {
    return firstOf(db, pool, search, "free", n).map(([seq]) => seq);
  }
  if (search.most > Math.max(FEW, 2 * n)) {
    const drawn = drawFromBuckets(db, pool, search, n);
    if (drawn !== undefined) return drawn;
  }
  const all = firstOf(db, pool, search, "free", search.most).map(([seq]) => seq);
  return draw(all, n);
}

/**
 * Draws with equal chance, without a look at all. The ranks are cut into buckets of some items each, and one of them is drawn; the fuller it
 * is, the likelier it counts, so what is drawn from it then had the same chance as every other item. Undefined after too many misses.
 */
function drawFromBuckets(db: Database, pool: OpenPool, search: Search, n: number): number[] | undefined {
  const { values } = search.lead;
  const buckets = Math.ceil(search.most / values.length / BUCKET);
  const width = LUCK / buckets;
  const drawn = new Set<number>();
  for (let misses = 0; misses < MISSES * n; misses++) {
    const value = values[randomInt(values.length)] ?? "";
    const start = Math.floor(randomInt(buckets) * width);
    const found = select(db, pool, search, {
      value,
      state: "free",
      rest: "AND a.since = 0 AND a.rank >= ? AND a.rank < ?",
      bounds: [start, Math.floor(start + width)],
      limit: FULL_BUCKET,
    });
    const [seq] = found[randomInt(FULL_BUCKET)] ?? [];
    if (seq === undefined || drawn.has(seq)) continue;
    // Who bears several of the values asked for is met that much more often.
    const twice = values.length > 1 ? bears(itemAt(db, seq)?.tags ?? {}, search.lead) : 1;
    if (twice > 1 && randomInt(twice) > 0) continue;
    drawn.add(seq);
    if (drawn.size === n) return [...drawn];
  }
  return undefined;
}

/** `n` of these, each with equal chance, in any order. */
function draw(all: number[], n: number): number[] {
  for (let i = 0; i < Math.min(n, all.length); i++) {
    const j = i + randomInt(all.length - i);
    [all[i], all[j]] = [all[j] as number, all[i] as number];
  }
  return all.slice(0, n);
}

/** When one more that matches is free at the latest; null where none is held or rests that will be. */
export function nextFreeAt(db: Database, pool: OpenPool, wants: readonly Want[]): number | null {
  const times = (["held", "cooling"] as const).flatMap((state) =>
    findFirst(db, pool, wants, state, 1).map(([, since]) => since),
  );
  const first = Math.min(...times, NEVER);
  return first === NEVER ? null : first;
}

/** Held or cooling items that match and whose time is over: what a tidy-up has left for a further one. */
export function findOverdue(db: Database, pool: OpenPool, wants: readonly Want[], n: number): Item[] {
  return (["held", "cooling"] as const)
    .flatMap((state) => findFirst(db, pool, wants, state, n))
    .filter(([, since]) => since <= pool.now)
    .flatMap(([seq]) => itemAt(db, seq) ?? []);
}
