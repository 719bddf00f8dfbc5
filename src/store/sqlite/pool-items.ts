import type { ItemState, ItemTags, RetireReason } from "../../protocol/pool.ts";
import type { Database } from "./database.ts";
import type { SqlValue } from "./driver.ts";
import { fromColumn, toColumn } from "./stream-state.ts";

/** A row of the table `pool_items`. */
export interface Item {
  readonly seq: number;
  readonly id: string;
  readonly nr: number;
  state: ItemState;
  /** With `rank`: its place among the items of its state. */
  since: number;
  rank: number;
  tags: ItemTags;
  uses: number;
  score: number;
  readonly putAt: number;
  readonly expiresAt: number | null;
  lastUsedAt: number | null;
  releasedAt: number | null;
  turn: number;
  holder: string | null;
  heldBy: string | null;
  heldSince: number | null;
  leaseUntil: number | null;
  holdMs: number | null;
  autoExtend: boolean;
  token: number | null;
  /** What it was claimed by. */
  request: string | null;
  coolUntil: number | null;
  retired: { reason: RetireReason; note: string; at: number } | null;
}

export interface ItemTexts {
  payload: string;
  tagsJson: string;
}

type Time = number | null;
type Columns = readonly [
  ...[seq: number, id: unknown, nr: number, state: ItemState, since: number, rank: number, tags: string],
  ...[uses: number, score: number, putAt: number, expiresAt: Time, lastUsedAt: Time, releasedAt: Time],
  ...[turn: number, holder: string | null, heldBy: string | null, heldSince: Time, leaseUntil: Time],
  ...[holdMs: Time, autoExtend: number, token: number | null, request: string | null, coolUntil: Time],
  ...[retiredReason: RetireReason | null, retiredNote: unknown, retiredAt: Time],
];

const SELECT = `SELECT seq, id, nr, state, since, rank, tags, uses, score, put_at, expires_at, last_used_at, released_at, turn,
  holder, held_by, held_since, lease_until, hold_ms, auto_extend, token, request, cool_until,
  retired_reason, retired_note, retired_at FROM pool_items`;
const BY_ID = itemsWhere("id = ?");
const BY_SEQ = `${SELECT} WHERE seq = ?`;
const INSERT = `INSERT INTO pool_items (pool_id, id, nr, state, since, rank, tags, put_at, expires_at, turn)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (pool_id, id) DO NOTHING RETURNING seq`;
const INSERT_TEXTS = "INSERT INTO pool_payloads (seq, payload, tags_json) VALUES (?, ?, ?)";
const WRITE = `UPDATE pool_items SET state = ?, since = ?, rank = ?, tags = ?, uses = ?, score = ?, last_used_at = ?,
  released_at = ?, turn = ?, holder = ?, held_by = ?, held_since = ?, lease_until = ?, hold_ms = ?, auto_extend = ?,
  token = ?, request = ?, cool_until = ?, retired_reason = ?, retired_note = ?, retired_at = ? WHERE seq = ?`;
const WRITE_TEXTS = "UPDATE pool_payloads SET payload = ?, tags_json = ? WHERE seq = ?";
const TEXTS = "SELECT payload, tags_json FROM pool_payloads WHERE seq = ?";
const DELETE = "DELETE FROM pool_items WHERE seq = ?";
const DELETE_TEXTS = "DELETE FROM pool_payloads WHERE seq = ?";

/** A limit given as a bare parameter is read by the planner, which prepares the statement anew with each call. */
export const UP_TO = "LIMIT 0 + ?";

/** The query for items of one pool that fulfil `rest`: conditions, order and limit. */
export function itemsWhere(rest: string): string {
  return `${SELECT} WHERE pool_id = ? AND ${rest}`;
}

/** `sql` is of {@link itemsWhere}. */
export function selectItems(db: Database, sql: string, poolId: number, ...values: SqlValue[]): Item[] {
  return db
    .sql(sql)
    .all<Columns>(poolId, ...values)
    .map(toItem);
}

export function readItem(db: Database, poolId: number, id: string): Item | undefined {
  return selectItems(db, BY_ID, poolId, toColumn(id))[0];
}

export function itemAt(db: Database, seq: number): Item | undefined {
  const row = db.sql(BY_SEQ).get<Columns>(seq);
  return row === undefined ? undefined : toItem(row);
}

export function textsOf(db: Database, seq: number): ItemTexts {
  const [payload, tagsJson] = db.sql(TEXTS).get<[unknown, unknown]>(seq) ?? ["null", "{}"];
  return { payload: fromColumn(payload), tagsJson: fromColumn(tagsJson) };
}

/** Writes a new item. Returns its number in the table; undefined where the id is known. */
export function insertItem(
  db: Database,
  poolId: number,
  item: Omit<Item, "seq">,
  texts: ItemTexts,
): number | undefined {
  const { nr, state, since, rank, putAt, expiresAt, turn } = item;
  const tags = JSON.stringify(item.tags);
  const id = toColumn(item.id);
  const row = db.sql(INSERT).get<[number]>(poolId, id, nr, state, since, rank, tags, putAt, expiresAt, turn);
  if (row === undefined) return undefined;
  db.sql(INSERT_TEXTS).run(row[0], toColumn(texts.payload), toColumn(texts.tagsJson));
  return row[0];
}

/** Writes back all that can change. */
export function writeItem(db: Database, item: Item): void {
  db.sql(WRITE).run(
    item.state,
    item.since,
    item.rank,
    JSON.stringify(item.tags),
    item.uses,
    item.score,
    item.lastUsedAt,
    item.releasedAt,
    item.turn,
    item.holder,
    item.heldBy,
    item.heldSince,
    item.leaseUntil,
    item.holdMs,
    Number(item.autoExtend),
    item.token,
    item.request,
    item.coolUntil,
    item.retired?.reason ?? null,
    item.retired === null ? null : toColumn(item.retired.note),
    item.retired?.at ?? null,
    item.seq,
  );
}

export function writeTexts(db: Database, seq: number, texts: ItemTexts): void {
  db.sql(WRITE_TEXTS).run(toColumn(texts.payload), toColumn(texts.tagsJson), seq);
}

export function deleteItem(db: Database, seq: number): void {
  db.sql(DELETE).run(seq);
  db.sql(DELETE_TEXTS).run(seq);
}

function toItem(row: Columns): Item {
  const [reason, note, at] = [row[23], row[24], row[25]];
  return {
    seq: row[0],
    id: fromColumn(row[1]),
    nr: row[2],
    state: row[3],
    since: row[4],
    rank: row[5],
    tags: JSON.parse(row[6]) as ItemTags,
    uses: row[7],
    score: row[8],
    putAt: row[9],
    expiresAt: row[10],
    lastUsedAt: row[11],
    releasedAt: row[12],
    turn: row[13],
    holder: row[14],
    heldBy: row[15],
    heldSince: row[16],
    leaseUntil: row[17],
    holdMs: row[18],
    autoExtend: row[19] === 1,
    token: row[20],
    request: row[21],
    coolUntil: row[22],
    retired: reason === null ? null : { reason, note: fromColumn(note), at: at ?? 0 },
  };
}
