import type { Database } from "./database.ts";

/** Tables whose rows bear the namespace. */
const TABLES = [
  "streams",
  "events",
  "topics",
  "workers",
  "worker_generations",
  "manifests",
  "desired",
  "assignments",
  "leases",
  "turns",
  "slot_state",
  "slot_health",
  "fleets",
];
/** Tables whose rows belong to a stream. */
const STREAM_TABLES = ["stream_entries", "stream_ops", "stream_quarantine"];

/** Deletes all rows of one namespace, inside a write transaction. Returns how many. */
export function wipeNamespace(db: Database, ns: string): number {
  let deleted = 0;
  for (const [id] of db.sql("SELECT id FROM streams WHERE ns = ?").all<[number]>(ns)) {
    for (const table of STREAM_TABLES) {
      deleted += db.sql(`DELETE FROM ${table} WHERE stream_id = ?`).run(id).changes;
    }
  }
  for (const table of TABLES) deleted += db.sql(`DELETE FROM ${table} WHERE ns = ?`).run(ns).changes;
  return deleted;
}
