import type { Direction, User } from "../../protocol/topology.ts";
import { counted, type EdgeMinutes, perMinute } from "../edge-minutes.ts";
import type { DamageBook } from "../damage.ts";
import { type EdgeRecord, type EdgeStore, MOST_EDGES } from "../edge-store.ts";
import { storedNumber } from "../records.ts";
import type { Clock } from "./clock.ts";
import type { Database } from "./database.ts";
import { tablePlace } from "./places.ts";
import type { Writer } from "./writer.ts";

const EDGE = "ns = ? AND direction = ? AND name = ? AND from_kind = ? AND from_name = ?";
const MINUTES = "count, first_seen, last_seen, minute, current, before";
const GET = `SELECT ${MINUTES} FROM edges WHERE ${EDGE}`;
const PUT = `INSERT OR REPLACE INTO edges (ns, direction, name, from_kind, from_name, ${MINUTES})
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const COUNT = "SELECT count(*) FROM edges WHERE ns = ?";
const DROP_OLDEST = `DELETE FROM edges WHERE (ns, direction, name, from_kind, from_name) IN
  (SELECT ns, direction, name, from_kind, from_name FROM edges WHERE ns = ? ORDER BY last_seen LIMIT ?)`;
const ALL = `SELECT direction, name, from_kind, from_name, ${MINUTES} FROM edges WHERE ns = ?`;
const OLD = "SELECT 1 FROM edges WHERE ns = ? AND last_seen <= ? LIMIT 1";
const DROP_OLD = "DELETE FROM edges WHERE ns = ? AND last_seen <= ?";

type Minutes = [number, number, number, number, number, number];
type Row = [Direction, string, User["kind"], string, ...Minutes];

export function createEdges(parts: {
  db: Database;
  ns: string;
  clock: Clock;
  writer: Writer;
  damage: DamageBook;
}): EdgeStore {
  const { db, ns, clock, writer, damage } = parts;
  return {
    async observe({ from, edges }) {
      if (edges.length === 0) return;
      await writer.write(
        () => {
          const now = clock();
          for (const { direction, name, count } of edges) {
            const key = [ns, direction, name, from.kind, from.name] as const;
            const kept = db.sql(GET).get<Minutes>(...key);
            const next = counted(kept === undefined ? undefined : minutesOf(kept), count, now);
            const { firstSeenAt, lastSeenAt, minute, current, before } = next;
            db.sql(PUT).run(...key, next.count, firstSeenAt, lastSeenAt, minute, current, before);
          }
          const above = (db.sql(COUNT).get<[number]>(ns)?.[0] ?? 0) - MOST_EDGES;
          if (above > 0) db.sql(DROP_OLDEST).run(ns, above);
        },
        { weight: edges.length },
      );
    },

    list() {
      return writer.read(() => {
        const now = clock();
        const { good } = damage.look(
          tablePlace("observed use", { table: "edges", ns, key: ["direction", "name"] }),
          db
            .sql(ALL)
            .all<Row>(ns)
            .map((row) => [`${row[0]}/${row[1]}`, row] as const),
          ([direction, name, kind, fromName, ...row]): EdgeRecord => {
            for (const value of row) storedNumber(value, "a count or a time");
            const kept = minutesOf(row);
            const { count, firstSeenAt, lastSeenAt } = kept;
            const from = { kind, name: fromName };
            return { from, direction, name, count, firstSeenAt, lastSeenAt, perMinute: perMinute(kept, now) };
          },
        );
        return { now, edges: good.map(([, edge]) => edge) };
      });
    },

    sweep({ unseenMs }) {
      return writer.write(() => ({ forgotten: db.sql(DROP_OLD).run(ns, clock() - unseenMs).changes }), {
        shortcut: () =>
          db.sql(OLD).get(ns, clock() - unseenMs) === undefined ? { forgotten: 0 } : undefined,
      });
    },
  };
}

function minutesOf([count, firstSeenAt, lastSeenAt, minute, current, before]: Minutes): EdgeMinutes {
  return { count, firstSeenAt, lastSeenAt, minute, current, before };
}
