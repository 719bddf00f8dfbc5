import { FleetError } from "../../errors.ts";
import type { StreamBounds, StreamStore } from "../store.ts";
import type { Clock } from "./clock.ts";
import type { Database } from "./database.ts";
import type { Notifier } from "./notify.ts";
import { createStreamCache } from "./stream-cache.ts";
import { createStreamWatch } from "./stream-watch.ts";
import {
  firstAlive,
  fromColumn,
  readStream,
  storedAt,
  streamTime,
  type StreamRow,
  toColumn,
} from "./stream-state.ts";
import type { Writer } from "./writer.ts";

/** How many quarantined entries of a stream are kept. */
const QUARANTINE_LENGTH = 1000;
/** After this time without a push, a producer's operation id is forgotten. */
const FORGET_PRODUCER_MS = 3_600_000;

const DECLARE = `INSERT INTO streams (ns, name, max_length, ttl_ms, max_payload_bytes) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (ns, name) DO UPDATE SET max_length = excluded.max_length, ttl_ms = excluded.ttl_ms,
  max_payload_bytes = excluded.max_payload_bytes`;
const ENTRIES = "SELECT seq, entry FROM stream_entries WHERE stream_id = ? AND seq >= ? ORDER BY seq LIMIT ?";
const LIST = "SELECT name FROM streams WHERE ns = ? ORDER BY name";
const OLDEST = "SELECT min(seq) FROM stream_entries WHERE stream_id = ?";
const OLD_OPS = "SELECT 1 FROM stream_ops WHERE stream_id = ? AND at < ? LIMIT 1";
const DROP_OPS = "DELETE FROM stream_ops WHERE stream_id = ? AND at < ?";
const LAST_QUARANTINED = "SELECT max(seq) FROM stream_quarantine WHERE stream_id = ?";
const QUARANTINE = "INSERT INTO stream_quarantine (stream_id, seq, raw, reason) VALUES (?, ?, ?, ?)";
const CUT_QUARANTINE = "DELETE FROM stream_quarantine WHERE stream_id = ? AND seq <= ?";
const QUARANTINED = "SELECT raw, reason FROM stream_quarantine WHERE stream_id = ? ORDER BY seq DESC LIMIT ?";

export function createStreams(parts: {
  db: Database;
  ns: string;
  clock: Clock;
  writer: Writer;
  notifier: Notifier;
}): StreamStore {
  const { db, ns, clock, writer, notifier } = parts;
  const watches = createStreamWatch({ db, ns, writer, notifier });
  const cache = createStreamCache(db, ns, (stream) => watches.changed(stream));
  writer.join(cache);

  /** The stream as statements see it, with what this transaction did so far. */
  function read(name: string): StreamRow | undefined {
    cache.flush();
    return readStream(db, ns, name);
  }

  function alive(row: StreamRow): number {
    return firstAlive(row, streamTime(row, clock()).at, (seq) => storedAt(db, row.id, seq));
  }

  /** Deletes some of what has expired; `more` when there is more to delete. */
  function sweepStep(name: string): { expired: number; more: boolean } {
    const stream = cache.open(name);
    if (stream === undefined) return { expired: 0, more: false };
    const now = clock();
    db.sql(DROP_OPS).run(stream.id, now - FORGET_PRODUCER_MS);
    const expired = cache.expire(stream, now);
    return { expired, more: cache.hasLeftovers(stream) };
  }

  function nothingToSweep(name: string): { expired: number; more: boolean } | undefined {
    const row = readStream(db, ns, name);
    if (row === undefined) return { expired: 0, more: false };
    const oldest = db.sql(OLDEST).get<[number | null]>(row.id)?.[0] ?? row.head;
    const oldOps = db.sql(OLD_OPS).get(row.id, clock() - FORGET_PRODUCER_MS);
    const clean = oldest >= row.head && alive(row) === row.head && oldOps === undefined;
    return clean ? { expired: 0, more: false } : undefined;
  }

  return {
    declare({ stream: name, bounds, as }) {
      return writer.write(
        () => {
          cache.flush(name);
          const present = readStream(db, ns, name)?.bounds;
          if (present !== undefined && as === "guest") return present;
          db.sql(DECLARE).run(ns, name, bounds.maxLength, bounds.ttlMs, bounds.maxPayloadBytes);
          return { ...bounds };
        },
        {
          shortcut() {
            const present = readStream(db, ns, name)?.bounds;
            if (present === undefined) return undefined;
            return as === "guest" || sameBounds(present, bounds) ? present : undefined;
          },
        },
      );
    },

    push({ stream: name, entries, op }) {
      let bytes = 0;
      for (const { head, tail } of entries) bytes += head.length + tail.length;
      return writer.write(
        () => {
          const stream = cache.open(name);
          if (stream === undefined) return { outcome: "undeclared" };
          if (op.seq <= cache.lastOp(stream, op.producer)) return { outcome: "duplicate" };
          const now = clock();
          const expired = cache.expire(stream, now);
          const trimmed = cache.append(stream, entries, now);
          cache.noteOp(stream, op.producer, op.seq, now);
          return { outcome: "pushed", length: stream.next - stream.head, trimmed, expired };
        },
        { weight: Math.max(1, entries.length), bytes },
      );
    },

    pop({ stream: name, n }) {
      return writer.write<string[]>(
        () => {
          const stream = cache.open(name);
          if (stream === undefined) return [];
          cache.expire(stream, clock());
          cache.flush();
          const rows = db.sql(ENTRIES).all<[number, unknown]>(stream.id, stream.head, n);
          if (rows.length > 0) cache.take(stream, rows.length);
          return rows.map(([, entry]) => fromColumn(entry));
        },
        {
          weight: Math.max(1, n),
          shortcut() {
            const row = readStream(db, ns, name);
            return row === undefined || n <= 0 || alive(row) === row.next ? [] : undefined;
          },
        },
      );
    },

    peek({ stream: name, n, after, newest = false }) {
      return writer.read(() => {
        if (n > 0 && after !== undefined && !/^\d{16}$/.test(after))
          throw new FleetError(
            "FLEET_OPTION_INVALID",
            `after: ${JSON.stringify(after)} is no cursor of this store`,
          );
        const row = read(name);
        if (row === undefined || n <= 0) return [];
        const first = Math.max(alive(row), after === undefined ? 0 : Number(after) + 1);
        // Numbers are without gaps: those taken and trimmed are at the beginning.
        const from = newest ? Math.max(first, row.next - n) : first;
        return db
          .sql(ENTRIES)
          .all<[number, unknown]>(row.id, from, n)
          .map(([seq, entry]) => ({ cursor: String(seq).padStart(16, "0"), raw: fromColumn(entry) }));
      });
    },

    length({ stream: name }) {
      return writer.read(() => {
        const row = read(name);
        return row === undefined ? 0 : row.next - alive(row);
      });
    },

    stats({ stream: name }) {
      return writer.read(() => {
        const row = read(name);
        if (row === undefined) return undefined;
        const first = alive(row);
        const { bounds, pushed, popped, trimmed, invalid } = row;
        const length = row.next - first;
        const oldestTs = length === 0 ? null : storedAt(db, row.id, first) - row.skew;
        const expired = row.expired + first - row.head;
        return { length, bounds, oldestTs, pushed, popped, trimmed, expired, invalid };
      });
    },

    list() {
      return writer.read(() =>
        db
          .sql(LIST)
          .all<[string]>(ns)
          .map(([name]) => name),
      );
    },

    quarantine({ stream: name, entries }) {
      return writer.write(
        () => {
          const stream = cache.open(name);
          if (stream === undefined || entries.length === 0) return;
          let seq = db.sql(LAST_QUARANTINED).get<[number | null]>(stream.id)?.[0] ?? 0;
          for (const { raw, reason } of entries) {
            db.sql(QUARANTINE).run(stream.id, ++seq, toColumn(raw), reason.replaceAll("\0", ""));
          }
          db.sql(CUT_QUARANTINE).run(stream.id, seq - QUARANTINE_LENGTH);
          cache.noteInvalid(stream, entries.length);
        },
        { weight: Math.max(1, entries.length) },
      );
    },

    quarantined({ stream: name, n }) {
      return writer.read(() => {
        const row = readStream(db, ns, name);
        if (row === undefined || n <= 0) return [];
        return db
          .sql(QUARANTINED)
          .all<[unknown, string]>(row.id, n)
          .map(([raw, reason]) => ({ raw: fromColumn(raw), reason }));
      });
    },

    async sweep({ stream: name }) {
      let expired = 0;
      for (;;) {
        const step = await writer.write(() => sweepStep(name), { shortcut: () => nothingToSweep(name) });
        expired += step.expired;
        if (!step.more) return { expired };
      }
    },

    watch: ({ stream }, onHint) => watches.watch(stream, onHint),
  };
}

function sameBounds(a: StreamBounds, b: StreamBounds): boolean {
  return a.maxLength === b.maxLength && a.ttlMs === b.ttlMs && a.maxPayloadBytes === b.maxPayloadBytes;
}
