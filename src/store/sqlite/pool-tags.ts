import { ITEM_STATES, type ItemState, type ItemTags } from "../../protocol/pool.ts";
import { canonicalJson } from "../../internal/canonical.ts";
import type { Database } from "./database.ts";
import type { Item } from "./pool-items.ts";

/**
 * The index by tags. Names and values are kept as JSON texts: so none has a NUL or half a character, and the empty text, under which every
 * item stands, is nobody's tag.
 */
const INSERT = `INSERT INTO pool_item_tags (pool_id, tag, value, state, since, rank, seq) VALUES (?, ?, ?, ?, ?, ?, ?)`;
const DELETE = `DELETE FROM pool_item_tags WHERE pool_id = ? AND tag = ? AND value = ? AND state = ? AND since = ?
  AND rank = ? AND seq = ?`;
const ADD_COUNTS = `INSERT INTO pool_tag_counts (pool_id, tag, value, free, held, cooling, retired) VALUES (?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (pool_id, tag, value) DO UPDATE SET free = free + excluded.free, held = held + excluded.held,
  cooling = cooling + excluded.cooling, retired = retired + excluded.retired`;
const DROP_COUNTS = `DELETE FROM pool_tag_counts WHERE pool_id = ? AND tag = ? AND value = ? AND free = 0 AND held = 0
  AND cooling = 0 AND retired = 0`;
const COUNTS =
  "SELECT free, held, cooling, retired FROM pool_tag_counts WHERE pool_id = ? AND tag = ? AND value = ?";

/** Where an item stands in the index. */
export type Shelf = Pick<Item, "state" | "since" | "rank" | "tags">;

/** One tag of a wish with the values of which an item must bear one; as the index has them. */
export interface Want {
  tag: string;
  values: readonly string[];
}

const EVERY: Want = { tag: "", values: [""] };

/** A wish in parts; without any tag, all items are wanted. */
export function wantsOf(where: ItemTags): Want[] {
  const wants = Object.entries(where).map(([tag, values]) => {
    return { tag: JSON.stringify(tag), values: [...new Set(values)].map((value) => JSON.stringify(value)) };
  });
  return wants.length === 0 ? [EVERY] : wants;
}

/** Equal wishes have equal texts: those who have them stand in one line. */
export function lineOf(where: ItemTags): string {
  return canonicalJson(
    Object.fromEntries(Object.entries(where).map(([tag, values]) => [tag, values.toSorted()])),
  );
}

/** How many of a want's values an item bears. */
export function bears(tags: ItemTags, { tag, values }: Want): number {
  if (tag === "") return 1;
  const name = JSON.parse(tag) as string;
  const borne = Object.hasOwn(tags, name) ? (tags[name] ?? []) : [];
  return new Set(borne.filter((value) => values.includes(JSON.stringify(value)))).size;
}

/** What a call has changed in the counts of one pool: kept in memory, written once. */
export interface Tallies {
  readonly id: number;
  readonly pending: Map<string, Pending>;
}

interface Pending {
  row: Row;
  deltas: Record<ItemState, number>;
}

/** Moves an item from one place in the index to another; undefined for not there. Counts follow. */
export function reshelve(
  db: Database,
  pool: Tallies,
  seq: number,
  from: Shelf | undefined,
  to: Shelf | undefined,
): void {
  const before = from === undefined ? new Map<string, Row>() : rowsOf(from.tags);
  const after = to === undefined ? new Map<string, Row>() : rowsOf(to.tags);
  const stays = from?.state === to?.state && from?.since === to?.since && from?.rank === to?.rank;
  for (const [key, row] of before) {
    if (from === undefined || (stays && after.has(key))) continue;
    db.sql(DELETE).run(pool.id, ...row, from.state, from.since, from.rank, seq);
    tally(pool, key, row).deltas[from.state]--;
  }
  for (const [key, row] of after) {
    if (to === undefined || (stays && before.has(key))) continue;
    db.sql(INSERT).run(pool.id, ...row, to.state, to.since, to.rank, seq);
    tally(pool, key, row).deltas[to.state]++;
  }
}

function tally({ pending }: Tallies, key: string, row: Row): Pending {
  let one = pending.get(key);
  if (one === undefined)
    pending.set(key, (one = { row, deltas: { free: 0, held: 0, cooling: 0, retired: 0 } }));
  return one;
}

/** Writes back what the call has changed in the counts. */
export function writeCounts(db: Database, pool: Tallies): void {
  for (const { row, deltas } of pool.pending.values()) {
    const changes = ITEM_STATES.map((state) => deltas[state]);
    if (changes.every((change) => change === 0)) continue;
    db.sql(ADD_COUNTS).run(pool.id, ...row, ...changes);
    if (changes.reduce((sum, change) => sum + change) < 0) db.sql(DROP_COUNTS).run(pool.id, ...row);
  }
  pool.pending.clear();
}

/** How many items of each state bear a value. */
export function countsOf(db: Database, pool: Tallies, tag: string, value: string): Record<ItemState, number> {
  const stored = db.sql(COUNTS).get<[number, number, number, number]>(pool.id, tag, value) ?? [0, 0, 0, 0];
  const deltas = pool.pending.get(keyOf([tag, value]))?.deltas;
  const counts = { free: 0, held: 0, cooling: 0, retired: 0 };
  for (const [i, state] of ITEM_STATES.entries()) counts[state] = (stored[i] ?? 0) + (deltas?.[state] ?? 0);
  return counts;
}

/** How many items there are in each state. */
export function allCounts(db: Database, pool: Tallies): Record<ItemState, number> {
  return countsOf(db, pool, ...EVERY_ROW);
}

type Row = readonly [tag: string, value: string];

const EVERY_ROW: Row = ["", ""];

function keyOf([tag, value]: Row): string {
  return `${tag}:${value}`;
}

function rowsOf(tags: ItemTags): Map<string, Row> {
  const rows = new Map<string, Row>([[keyOf(EVERY_ROW), EVERY_ROW]]);
  for (const [name, values] of Object.entries(tags)) {
    for (const value of values) {
      const row = [JSON.stringify(name), JSON.stringify(value)] as const;
      rows.set(keyOf(row), row);
    }
  }
  return rows;
}
