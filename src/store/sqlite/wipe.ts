import type { Database } from "./database.ts";

/** Tables whose rows bear the namespace. */
const TABLES = [
  "streams",
  "queues",
  "queue_schedules",
  "queue_ends",
  "pools",
  "events",
  "topics",
  "workers",
  "worker_generations",
  "worker_wishes",
  "manifests",
  "desired",
  "configs",
  "assignments",
  "leases",
  "turns",
  "slot_state",
  "slot_health",
  "lock_grants",
  "lock_waiters",
  "lock_news",
  "counters",
  "counter_ops",
  "limits",
  "limit_requests",
  "edges",
  "fleets",
];
/** Tables whose rows belong to a stream. */
const STREAM_TABLES = ["stream_entries", "stream_ops", "stream_quarantine"];
/** Tables whose rows belong to a queue. */
const QUEUE_TABLES = ["tasks", "queue_lanes", "queue_throttles"];
const DELETE_PAYLOADS = "DELETE FROM task_payloads WHERE seq IN (SELECT seq FROM tasks WHERE queue_id = ?)";
/** Tables whose rows belong to a pool. */
const POOL_TABLES = ["pool_items", "pool_item_tags", "pool_tag_counts", "pool_waiters", "pool_refills"];
const DELETE_POOL_PAYLOADS =
  "DELETE FROM pool_payloads WHERE seq IN (SELECT seq FROM pool_items WHERE pool_id = ?)";

/** Deletes all rows of one namespace, inside a write transaction. Returns how many. */
export function wipeNamespace(db: Database, ns: string): number {
  let deleted = 0;
  for (const [id] of db.sql("SELECT id FROM streams WHERE ns = ?").all<[number]>(ns)) {
    for (const table of STREAM_TABLES) {
      deleted += db.sql(`DELETE FROM ${table} WHERE stream_id = ?`).run(id).changes;
    }
  }
  for (const [id] of db.sql("SELECT id FROM queues WHERE ns = ?").all<[number]>(ns)) {
    deleted += db.sql(DELETE_PAYLOADS).run(id).changes;
    for (const table of QUEUE_TABLES) {
      deleted += db.sql(`DELETE FROM ${table} WHERE queue_id = ?`).run(id).changes;
    }
  }
  for (const [id] of db.sql("SELECT id FROM pools WHERE ns = ?").all<[number]>(ns)) {
    deleted += db.sql(DELETE_POOL_PAYLOADS).run(id).changes;
    for (const table of POOL_TABLES) {
      deleted += db.sql(`DELETE FROM ${table} WHERE pool_id = ?`).run(id).changes;
    }
  }
  for (const table of TABLES) deleted += db.sql(`DELETE FROM ${table} WHERE ns = ?`).run(ns).changes;
  return deleted;
}
