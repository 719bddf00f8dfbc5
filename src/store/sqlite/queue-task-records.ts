import type { TaskRecord } from "../../protocol/task.ts";
import type { Database } from "./database.ts";
import type { SqlValue } from "./driver.ts";
import { keyOf, type Task, TASK_COLUMNS, type TaskColumns, textOrNull, toTask } from "./queue-tasks.ts";
import { fromColumn } from "./stream-state.ts";

type Columns = readonly [...TaskColumns, result: unknown, error: unknown, payload: unknown, print: unknown];

/** The query for the records of tasks of one queue that fulfil `rest`: conditions, order and limit on the table `t`. */
export function recordsWhere(rest: string): string {
  return `SELECT ${TASK_COLUMNS}, t.result, t.error, p.payload, t.print FROM tasks t JOIN task_payloads p ON p.seq = t.seq
    WHERE t.queue_id = ? AND ${rest}`;
}

/** `sql` is of {@link recordsWhere}. */
export function selectRecords(
  db: Database,
  sql: string,
  queue: { id: number; name: string },
  ...values: SqlValue[]
): { task: Task; record: TaskRecord }[] {
  const rows = db.sql(sql).all<Columns>(queue.id, ...values);
  return rows.map((row) => {
    const task = toTask(row as unknown as TaskColumns);
    return { task, record: toRecord(queue.name, task, row) };
  });
}

function toRecord(queue: string, task: Task, row: Columns): TaskRecord {
  return {
    id: task.id,
    queue,
    state: task.state,
    payload: fromColumn(row[30]),
    result: textOrNull(row[28]),
    reason: task.reason,
    error: textOrNull(row[29]),
    priority: task.priority,
    key: keyOf(task.lane),
    dedupeKey: task.dedupeKey,
    attempts: task.attempts,
    crashes: task.crashes,
    interruptions: task.interruptions,
    maxAttempts: task.maxAttempts,
    timeoutMs: task.timeoutMs,
    submittedAt: task.submittedAt,
    dueAt: task.dueAt,
    // Kept in the row for as long as a first claim may yet be returned.
    expiresAt: task.state === "active" ? null : task.expiresAt,
    startedAt: task.startedAt,
    finishedAt: task.finishedAt,
    worker: task.worker,
    leaseUntil: task.leaseUntil,
    cancelling: task.cancelling,
    tick: task.tick,
    print: textOrNull(row[31]),
  };
}
