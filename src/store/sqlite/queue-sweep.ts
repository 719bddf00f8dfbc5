import type { Database } from "./database.ts";
import type { OpenQueue } from "./queue-book.ts";
import { change } from "./queue-moves.ts";
import { endClaim } from "./queue-settle.ts";
import { selectTasks, type Task, tasksWhere } from "./queue-tasks.ts";

/** Tasks of each kind that one step moves at most: the lock is held for some milliseconds only. */
export const AT_ONCE = 500;
/** After this time, nobody submits a tick of a removed schedule any more. */
const FORGET_SCHEDULE_MS = 30 * 86_400_000;

const EXPIRED = tasksWhere(
  `t.state = 'active' AND t.lease_until <= ? ORDER BY t.lease_until LIMIT ${AT_ONCE}`,
);
const DUE = tasksWhere(`t.state = 'scheduled' AND t.due_at <= ? ORDER BY t.due_at, t.seq LIMIT ${AT_ONCE}`);
const OVER = tasksWhere(
  `t.state = 'waiting' AND t.expires_at IS NOT NULL AND t.expires_at <= ? ORDER BY t.expires_at LIMIT ${AT_ONCE}`,
);
const NEXT_DUE = "SELECT min(due_at) FROM tasks WHERE queue_id = ? AND state = 'scheduled'";
const FIRST_EXPIRED =
  "SELECT 1 FROM tasks WHERE queue_id = ? AND state = 'active' AND lease_until <= ? LIMIT 1";
const FIRST_OVER =
  "SELECT 1 FROM tasks WHERE queue_id = ? AND state = 'waiting' AND expires_at IS NOT NULL AND expires_at <= ? LIMIT 1";
const ENDED = `SELECT seq, finished_at FROM tasks WHERE queue_id = ? AND state = ? AND finished_at <= ?
  ORDER BY finished_at, seq LIMIT ${AT_ONCE}`;
const DROP_TASK = "DELETE FROM tasks WHERE seq = ?";
const DROP_PAYLOAD = "DELETE FROM task_payloads WHERE seq = ?";
const OPEN_THROTTLES = `SELECT dedupe_key FROM queue_throttles WHERE queue_id = ? AND until <= ? LIMIT ${AT_ONCE}`;
const DROP_THROTTLE = "DELETE FROM queue_throttles WHERE queue_id = ? AND dedupe_key = ?";
const REMOVED = `SELECT id FROM queue_schedules WHERE ns = ? AND queue = ? AND removed_at <= ? LIMIT ${AT_ONCE}`;
const DROP_SCHEDULE = "DELETE FROM queue_schedules WHERE ns = ? AND queue = ? AND id = ?";

const EXPIRED_ERROR = "its lease expired: the worker or the process that ran it was lost";

type Step = (db: Database, queue: OpenQueue, task: Task) => void;

const reclaim: Step = (db, queue, task) =>
  endClaim(db, queue, task, { outcome: "crashed", error: EXPIRED_ERROR });
const makeWaiting: Step = (db, queue, task) => change(db, queue, task, { state: "waiting" });
const expire: Step = (db, queue, task) => change(db, queue, task, { state: "failed", reason: "expired" });

/** Takes back what has expired, makes due tasks waiting, ends those past their time to live. Each up to {@link AT_ONCE}. */
export function tidy(db: Database, queue: OpenQueue): { reclaimed: number; due: number; expired: number } {
  const each = (sql: string, step: Step) => {
    const tasks = selectTasks(db, sql, queue.id, queue.now);
    for (const task of tasks) step(db, queue, task);
    return tasks.length;
  };
  return { reclaimed: each(EXPIRED, reclaim), due: each(DUE, makeWaiting), expired: each(OVER, expire) };
}

/** Takes back claims that have expired, up to {@link AT_ONCE}. */
export function reclaimExpired(db: Database, queue: OpenQueue): void {
  for (const task of selectTasks(db, EXPIRED, queue.id, queue.now)) reclaim(db, queue, task);
}

export function hasExpired(db: Database, queue: OpenQueue): boolean {
  return db.sql(FIRST_EXPIRED).get(queue.id, queue.now) !== undefined;
}

/** The same for one task. */
export function tidyTask(db: Database, queue: OpenQueue, task: Task): void {
  const past = (time: number | null) => time !== null && time <= queue.now;
  if (task.state === "active" && past(task.leaseUntil)) reclaim(db, queue, task);
  if (task.state === "scheduled" && past(task.dueAt)) makeWaiting(db, queue, task);
  if (task.state === "waiting" && past(task.expiresAt)) expire(db, queue, task);
}

/** Whether {@link tidy} would change anything. */
export function isTidy(db: Database, queue: OpenQueue): boolean {
  const dueAt = nextDueAt(db, queue);
  return (
    (dueAt === null || dueAt > queue.now) &&
    !hasExpired(db, queue) &&
    db.sql(FIRST_OVER).get(queue.id, queue.now) === undefined
  );
}

export function nextDueAt(db: Database, queue: OpenQueue): number | null {
  return db.sql(NEXT_DUE).get<[number | null]>(queue.id)?.[0] ?? null;
}

/** Forgets finished tasks beyond what is kept, up to {@link AT_ONCE} of each kind, the oldest ends first. */
export function forget(db: Database, queue: OpenQueue): { forgotten: number; more: boolean } {
  const { keepMs, keepCount, keepFailedMs, keepFailedCount } = queue.settings;
  const done = forgetOf(db, queue, ["completed", "cancelled"], keepMs, keepCount);
  const failed = forgetOf(db, queue, ["failed"], keepFailedMs, keepFailedCount);
  return { forgotten: done + failed, more: done === AT_ONCE || failed === AT_ONCE };
}

type Ended = "completed" | "cancelled" | "failed";

function forgetOf(
  db: Database,
  queue: OpenQueue,
  states: Ended[],
  keepMs: number,
  keepCount: number,
): number {
  const { id, counts, now } = queue;
  const old = now - keepMs;
  const surplus = states.reduce((sum, state) => sum + counts[state], 0) - keepCount;
  const until = surplus > 0 ? Number.MAX_SAFE_INTEGER : old;
  const goes = states
    .flatMap((state) =>
      db
        .sql(ENDED)
        .all<[number, number]>(id, state, until)
        .map(([seq, at]) => ({ seq, at, state })),
    )
    .toSorted((a, b) => a.at - b.at || a.seq - b.seq)
    .slice(0, AT_ONCE)
    .filter(({ at }, index) => at <= old || index < surplus);
  for (const { seq, state } of goes) {
    db.sql(DROP_TASK).run(seq);
    db.sql(DROP_PAYLOAD).run(seq);
    counts[state]--;
  }
  return goes.length;
}

/** Drops what only repeats of old submissions could still ask for. */
export function forgetTraces(db: Database, ns: string, queue: OpenQueue): void {
  for (const [key] of db.sql(OPEN_THROTTLES).all<[string | Uint8Array]>(queue.id, queue.now))
    db.sql(DROP_THROTTLE).run(queue.id, key);
  const before = queue.now - FORGET_SCHEDULE_MS;
  for (const [id] of db.sql(REMOVED).all<[string]>(ns, queue.name, before))
    db.sql(DROP_SCHEDULE).run(ns, queue.name, id);
}
