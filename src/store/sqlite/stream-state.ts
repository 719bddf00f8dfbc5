import type { StreamBounds } from "../store.ts";
import type { Database } from "./database.ts";

/** As it lies in the table `streams`; entries with `head <= seq < next` are the ones that lie there. */
export interface StreamRow {
  id: number;
  bounds: StreamBounds;
  head: number;
  next: number;
  /** The stream's own time at the last push. */
  lastAt: number;
  /** The stream's own time minus store time. */
  skew: number;
  pushed: number;
  popped: number;
  trimmed: number;
  expired: number;
  invalid: number;
}

type Columns = readonly [
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
];

const SELECT = `SELECT id, max_length, ttl_ms, max_payload_bytes, head_seq, next_seq, last_at, skew,
  pushed, popped, trimmed, expired, invalid FROM streams WHERE ns = ? AND name = ?`;
const AT = "SELECT at FROM stream_entries WHERE stream_id = ? AND seq = ?";

/** A clock that was set back by less than this is waited for; by more, the stream goes on counting from where it was. */
const PATIENCE_MS = 60_000;

export function readStream(db: Database, ns: string, name: string): StreamRow | undefined {
  const row = db.sql(SELECT).get<Columns>(ns, name);
  if (row === undefined) return undefined;
  const [id, maxLength, ttlMs, maxPayloadBytes, head, next, lastAt, skew, ...counters] = row;
  const [pushed, popped, trimmed, expired, invalid] = counters;
  const bounds = { maxLength, ttlMs, maxPayloadBytes };
  return { id, bounds, head, next, lastAt, skew, pushed, popped, trimmed, expired, invalid };
}

/**
 * The stream's own time: store time that never goes back, so that a clock that is set back neither reorders entries by age
 * nor keeps them for ever.
 */
export function streamTime(
  row: Pick<StreamRow, "lastAt" | "skew">,
  now: number,
): { at: number; skew: number } {
  const at = now + row.skew;
  if (at >= row.lastAt) return { at, skew: row.skew };
  if (row.lastAt - at < PATIENCE_MS) return { at: row.lastAt, skew: row.skew };
  return { at: row.lastAt, skew: row.lastAt - now };
}

/** The first entry that has not expired at the stream's time `at`; `row.next` when all have. */
export function firstAlive(row: StreamRow, at: number, atOf: (seq: number) => number): number {
  const cutoff = at - row.bounds.ttlMs;
  if (row.head === row.next || row.lastAt <= cutoff) return row.next;
  if (atOf(row.head) > cutoff) return row.head;
  // Ages fall along the stream: halve until the border is found, however many lie before it.
  let dead = row.head;
  let alive = row.next - 1;
  while (alive - dead > 1) {
    const middle = dead + Math.floor((alive - dead) / 2);
    if (atOf(middle) > cutoff) alive = middle;
    else dead = middle;
  }
  return alive;
}

/** The stream's time at which a stored entry was pushed. */
export function storedAt(db: Database, streamId: number, seq: number): number {
  return db.sql(AT).get<[number]>(streamId, seq)?.[0] ?? 0;
}

/** SQLite's text ends at a NUL for some readers; a text with one travels as bytes. */
export function toColumn(text: string): string | Uint8Array {
  return text.includes("\0") ? Buffer.from(text, "utf8") : text;
}

export function fromColumn(value: unknown): string {
  return typeof value === "string" ? value : Buffer.from(value as Uint8Array).toString("utf8");
}
