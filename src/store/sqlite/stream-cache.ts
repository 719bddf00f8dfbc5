import type { EntryTemplate } from "../../protocol/envelope.ts";
import type { Database } from "./database.ts";
import type { SqlValue } from "./driver.ts";
import { firstAlive, readStream, storedAt, streamTime, type StreamRow, toColumn } from "./stream-state.ts";
import type { Participant } from "./writer.ts";

/** A stream during one transaction: changed in memory, written back once, however many pushes the transaction carries. */
export interface OpenStream extends StreamRow {
  name: string;
  /** Went from empty to filled in this transaction. */
  filled: boolean;
}

interface Held extends OpenStream {
  dirty: boolean;
  /** Entries from this one on are not in the table yet but in `fresh`. */
  storedNext: number;
  /** Entries popped or trimmed before this transaction. */
  leftBefore: number;
  fresh: { at: number; text: string }[];
  /** No entry that lies there is older than this: saves looking at the head for every push. */
  noneBefore: number;
  ops: Map<string, { seq: number; at: number; dirty: boolean }>;
}

export interface StreamCache extends Participant {
  open(name: string): OpenStream | undefined;
  /** The last call of a producer that was applied; 0 for none. */
  lastOp(stream: OpenStream, producer: string): number;
  noteOp(stream: OpenStream, producer: string, seq: number, now: number): void;
  /** Drops what has expired. Returns how many entries. */
  expire(stream: OpenStream, now: number): number;
  /** Whether rows before the head are still to be deleted. */
  hasLeftovers(stream: OpenStream): boolean;
  /** Appends and cuts to the stream's length. Returns how many entries were cut. */
  append(stream: OpenStream, entries: readonly EntryTemplate[], now: number): number;
  /** Moves the head forward over entries that were taken. */
  take(stream: OpenStream, count: number): void;
  /** Counts entries as invalid. */
  noteInvalid(stream: OpenStream, count: number): void;
  /** Writes back, so that statements see what the transaction did so far; with a name, the stream is also forgotten. */
  flush(forget?: string): void;
}

/** Expired rows that one transaction deletes. */
export const DROP_AT_ONCE = 2000;
/** Rows per insert statement: fewer calls into SQLite, without binding hundreds of values. */
const ROWS = 16;
const INSERT_ONE = insert(1);
const INSERT_MANY = insert(ROWS);
const UPDATE = `UPDATE streams SET head_seq = ?, next_seq = ?, last_at = ?, skew = ?,
  pushed = ?, popped = ?, trimmed = ?, expired = ?, invalid = ? WHERE id = ?`;
const OLDEST = "SELECT min(seq) FROM stream_entries WHERE stream_id = ?";
const DROP = "DELETE FROM stream_entries WHERE stream_id = ? AND seq < ?";
const GET_OP = "SELECT seq FROM stream_ops WHERE stream_id = ? AND producer = ?";
const PUT_OP = "INSERT OR REPLACE INTO stream_ops (stream_id, producer, seq, at) VALUES (?, ?, ?, ?)";

/** `onCommitted` is told of every stream that was changed, once the change is durable. */
export function createStreamCache(
  db: Database,
  ns: string,
  onCommitted: (stream: OpenStream) => void,
): StreamCache {
  const held = new Map<string, Held>();

  function atOf(stream: Held, seq: number): number {
    if (seq >= stream.storedNext) return stream.fresh[seq - stream.storedNext]?.at ?? 0;
    return storedAt(db, stream.id, seq);
  }

  function writeBack(stream: Held): void {
    if (!stream.dirty) return;
    dropRows(stream);
    const from = Math.max(stream.head, stream.storedNext);
    insertRows(stream, from, stream.fresh.slice(from - stream.storedNext));
    db.sql(UPDATE).run(
      stream.head,
      stream.next,
      stream.lastAt,
      stream.skew,
      stream.pushed,
      stream.popped,
      stream.trimmed,
      stream.expired,
      stream.invalid,
      stream.id,
    );
    for (const [producer, op] of stream.ops) {
      if (op.dirty) db.sql(PUT_OP).run(stream.id, producer, op.seq, op.at);
      op.dirty = false;
    }
    const leftBefore = stream.popped + stream.trimmed;
    Object.assign(stream, { dirty: false, storedNext: stream.next, leftBefore, fresh: [] });
  }

  /**
   * Deletes rows before the head: as many as this transaction took or cut, and some of those that expired. What is left of a
   * great many that expired at once goes with later transactions, because deleting them all would hold the lock for long.
   */
  function dropRows(stream: Held): void {
    const oldest = db.sql(OLDEST).get<[number | null]>(stream.id)?.[0] ?? stream.head;
    if (oldest >= stream.head) return;
    const left = stream.popped + stream.trimmed - stream.leftBefore;
    db.sql(DROP).run(stream.id, Math.min(stream.head, oldest + left + DROP_AT_ONCE));
  }

  function insertRows(stream: Held, from: number, rows: Held["fresh"]): void {
    let done = 0;
    for (; done + ROWS <= rows.length; done += ROWS) {
      const values: SqlValue[] = [];
      for (let i = done; i < done + ROWS; i++) {
        const { at, text } = rows[i] as Held["fresh"][number];
        values.push(stream.id, from + i, at, toColumn(text));
      }
      db.sql(INSERT_MANY).run(...values);
    }
    for (const { at, text } of rows.slice(done)) {
      db.sql(INSERT_ONE).run(stream.id, from + done++, at, toColumn(text));
    }
  }

  return {
    open(name) {
      let stream = held.get(name);
      if (stream === undefined) {
        const row = readStream(db, ns, name);
        if (row === undefined) return undefined;
        const stored = { storedNext: row.next, leftBefore: row.popped + row.trimmed };
        stream = {
          ...row,
          ...stored,
          name,
          filled: false,
          dirty: false,
          fresh: [],
          ops: new Map(),
          noneBefore: 0,
        };
        held.set(name, stream);
      }
      return stream;
    },

    lastOp(stream, producer) {
      const { ops, id } = stream as Held;
      let op = ops.get(producer);
      if (op === undefined) {
        op = { seq: db.sql(GET_OP).get<[number]>(id, producer)?.[0] ?? 0, at: 0, dirty: false };
        ops.set(producer, op);
      }
      return op.seq;
    },

    noteOp(stream, producer, seq, now) {
      const { ops } = stream as Held;
      ops.set(producer, { seq, at: now, dirty: true });
    },

    expire(open, now) {
      const stream = open as Held;
      const { at } = streamTime(stream, now);
      const cutoff = at - stream.bounds.ttlMs;
      if (stream.noneBefore > cutoff) return 0;
      const head = firstAlive(stream, at, (seq) => atOf(stream, seq));
      stream.noneBefore = head === stream.next ? cutoff + 1 : atOf(stream, head);
      const expired = head - stream.head;
      if (expired === 0) return 0;
      stream.head = head;
      stream.expired += expired;
      stream.dirty = true;
      return expired;
    },

    append(open, entries, now) {
      const stream = open as Held;
      const { at, skew } = streamTime(stream, now);
      if (stream.head === stream.next && entries.length > 0) stream.filled = true;
      for (const { head, tail } of entries) stream.fresh.push({ at, text: `${head}${at - skew}${tail}` });
      stream.next += entries.length;
      stream.pushed += entries.length;
      if (entries.length > 0) Object.assign(stream, { lastAt: at, skew });
      const trimmed = Math.max(0, stream.next - stream.head - stream.bounds.maxLength);
      stream.head += trimmed;
      stream.trimmed += trimmed;
      stream.dirty = true;
      return trimmed;
    },

    hasLeftovers(open) {
      const stream = open as Held;
      writeBack(stream);
      const oldest = db.sql(OLDEST).get<[number | null]>(stream.id)?.[0] ?? stream.head;
      if (oldest >= stream.head) return false;
      stream.dirty = true; // the next write-back deletes some more
      return true;
    },

    take(open, count) {
      const stream = open as Held;
      stream.head += count;
      stream.popped += count;
      stream.dirty = true;
    },

    noteInvalid(open, count) {
      const stream = open as Held;
      stream.invalid += count;
      stream.dirty = true;
    },

    flush(forget) {
      for (const stream of held.values()) writeBack(stream);
      if (forget !== undefined) held.delete(forget);
    },

    committed() {
      const done = [...held.values()];
      held.clear();
      for (const stream of done) onCommitted(stream);
    },

    rolledBack() {
      held.clear();
    },
  };
}

function insert(rows: number): string {
  const values = Array.from({ length: rows }, () => "(?, ?, ?, ?)").join(", ");
  return `INSERT INTO stream_entries (stream_id, seq, at, entry) VALUES ${values}`;
}
