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

/** Moves an item from one place in the index to another; undefined for not there. Counts follow. */
export function reshelve(
  db: Database,
  poolId: number,
  seq: number,
  from: Shelf | undefined,
  to: Shelf | undefined,
): void {
  const before = from === undefined ? new Map<string, Row>() : rowsOf(from.tags);
  const after = to === undefined ? new Map<string, Row>() : rowsOf(to.tags);
  const stays =
    from !== undefined &&
    to !== undefined &&
    from.state === to.state &&
    from.since === to.since &&
    from.rank === to.rank;
  for (const [key, [tag, value]] of before) {
    const remains = after.has(key);
    if (from === undefined || (remains && stays)) continue;
    db.sql(DELETE).run(poolId, tag, value, from.state, from.since, from.rank, seq);
    if (remains && to?.state === from.state) continue;
    db.sql(ADD_COUNTS).run(poolId, tag, value, ...deltas(from.state, remains ? to?.state : undefined));
    if (!remains) db.sql(DROP_COUNTS).run(poolId, tag, value);
  }
  for (const [key, [tag, value]] of after) {
    const remained = before.has(key);
    if (to === undefined || (remained && stays)) continue;
    db.sql(INSERT).run(poolId, tag, value, to.state, to.since, to.rank, seq);
    if (!remained) db.sql(ADD_COUNTS).run(poolId, tag, value, ...deltas(undefined, to.state));
  }
}

/** How many items of each state bear a value. */
export function countsOf(
  db: Database,
  poolId: number,
  tag: string,
  value: string,
): Record<ItemState, number> {
  const [free, held, cooling, retired] = db
    .sql(COUNTS)
    .get<[number, number, number, number]>(poolId, tag, value) ?? [0, 0, 0, 0];
  return { free, held, cooling, retired };
}

/** How many items there are in each state. */
export function allCounts(db: Database, poolId: number): Record<ItemState, number> {
  return countsOf(db, poolId, "", "");
}

type Row = readonly [tag: string, value: string];

function rowsOf(tags: ItemTags): Map<string, Row> {
  const rows = new Map<string, Row>([["", ["", ""]]]);
  for (const [name, values] of Object.entries(tags)) {
    for (const value of values) {
      const row = [JSON.stringify(name), JSON.stringify(value)] as const;
      rows.set(row.join(":"), row);
    }
  }
  return rows;
}

function deltas(from: ItemState | undefined, to: ItemState | undefined): number[] {
  return ITEM_STATES.map((state) => Number(state === to) - Number(state === from));
}
