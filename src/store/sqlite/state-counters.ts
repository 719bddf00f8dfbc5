import type { CounterOp, CounterStore, StateRef } from "../state-store.ts";
import type { Clock } from "./clock.ts";
import type { Database } from "./database.ts";
import type { Writer } from "./writer.ts";

/** How long a producer's last change is known: a repeat comes within the deadline of one call. */
const KEEP_OPS_MS = 3_600_000;

const VALUE = "SELECT value FROM counters WHERE ns = ? AND name = ? AND key = ?";
const PUT = "INSERT OR REPLACE INTO counters (ns, name, key, value) VALUES (?, ?, ?, ?)";
const NAMES = "SELECT DISTINCT name FROM counters WHERE ns = ? ORDER BY name";
const FIRST = "SELECT key, value FROM counters WHERE ns = ? AND name = ? ORDER BY key LIMIT ?";
const NEXT = "SELECT key, value FROM counters WHERE ns = ? AND name = ? AND key > ? ORDER BY key LIMIT ?";
const REMOVE = "DELETE FROM counters WHERE ns = ? AND name = ? AND key = ?";
const OP = "SELECT seq, outcome, value, before FROM counter_ops WHERE ns = ? AND name = ? AND producer = ?";
const PUT_OP = `INSERT OR REPLACE INTO counter_ops (ns, name, producer, seq, outcome, value, before, at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;
const FORGET_OPS = `DELETE FROM counter_ops WHERE (ns, name, producer) IN
  (SELECT ns, name, producer FROM counter_ops WHERE ns = ? AND at <= ? LIMIT 5)`;

interface Change {
  outcome: "done" | "overflow" | "set" | "different";
  value: number;
}

export function createCounters(parts: {
  db: Database;
  ns: string;
  clock: Clock;
  writer: Writer;
}): CounterStore {
  const { db, ns, clock, writer } = parts;
  const valueOf = ({ name, key }: StateRef) => db.sql(VALUE).get<[number]>(ns, name, key)?.[0];

  /** Applies one operation, unless it was applied before. */
  function change(
    { op, ...ref }: StateRef & { op: CounterOp },
    decide: (before: number) => Change,
  ): Promise<Change & { before: number }> {
    return writer.write(() => {
      const { name, key } = ref;
      const last = db.sql(OP).get<[number, Change["outcome"], number, number]>(ns, name, op.producer);
      if (last !== undefined && op.seq <= last[0])
        return { outcome: last[1], value: last[2], before: last[3] };
      const kept = valueOf(ref);
      const before = kept ?? 0;
      const { outcome, value } = decide(before);
      const changes = outcome === "done" || outcome === "set";
      if (changes && value !== kept) db.sql(PUT).run(ns, name, key, value);
      const now = clock();
      db.sql(PUT_OP).run(ns, name, op.producer, op.seq, outcome, value, before, now);
      db.sql(FORGET_OPS).run(ns, now - KEEP_OPS_MS);
      return { outcome, value, before };
    });
  }

  return {
    async add({ by, ...args }) {
      const { outcome, value } = await change(args, (before) => {
        const sum = before + by;
        return Number.isSafeInteger(sum)
          ? { outcome: "done", value: sum }
          : { outcome: "overflow", value: before };
      });
      return { outcome: outcome === "overflow" ? outcome : "done", value };
    },

    get: (ref) => writer.read(() => valueOf(ref) ?? 0),

    async set({ value: wanted, ...args }) {
      const { value, before } = await change(args, () => ({ outcome: "set", value: wanted }));
      return { value, before };
    },

    async compareAndSet({ expected, value: wanted, ...args }) {
      const { outcome, value } = await change(args, (before) =>
        before === expected ? { outcome: "set", value: wanted } : { outcome: "different", value: before },
      );
      return { outcome: outcome === "set" ? outcome : "different", value };
    },

    list() {
      return writer.read(() =>
        db
          .sql(NAMES)
          .all<[string]>(ns)
          .map(([name]) => name),
      );
    },

    page({ name, n, after }) {
      return writer.read(() => {
        const rows =
          after === undefined
            ? db.sql(FIRST).all<[string, number]>(ns, name, Math.max(0, n))
            : db.sql(NEXT).all<[string, number]>(ns, name, after, Math.max(0, n));
        return rows.map(([key, value]) => ({ key, value }));
      });
    },

    remove({ name, key }) {
      return writer.write(() => (db.sql(REMOVE).run(ns, name, key).changes > 0 ? "removed" : "unknown"));
    },
  };
}
