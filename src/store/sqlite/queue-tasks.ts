import type { FailureReason, TaskRecord, TaskState } from "../../protocol/task.ts";
import type { Database } from "./database.ts";
import type { SqlValue } from "./driver.ts";
import { fromColumn, toColumn } from "./stream-state.ts";

/** A row of the table `tasks`, but for the texts that only its record shows. */
export interface Task {
  readonly seq: number;
  readonly id: string;
  state: TaskState;
  lane: string;
  priority: number;
  attempts: number;
  crashes: number;
  interruptions: number;
  maxAttempts: number;
  timeoutMs: number;
  ttlMs: number;
  readonly submittedAt: number;
  dueAt: number;
  /** End of its time to live, kept while its first claim may yet be returned. */
  expiresAt: number | null;
  startedAt: number | null;
  finishedAt: number | null;
  worker: string | null;
  holder: string | null;
  leaseUntil: number | null;
  token: number | null;
  settledToken: number | null;
  cancelling: boolean;
  asked: boolean;
  readonly dedupeKey: string | null;
  bearsKey: boolean;
  readonly tick: TaskRecord["tick"];
  reason: FailureReason | null;
}

export interface TaskTexts {
  result?: string | null;
  /** Left out: as it was. */
  error?: string;
}

type Time = number | null;
export type TaskColumns = readonly [
  ...[seq: number, id: unknown, state: TaskState, lane: unknown, priority: number],
  ...[attempts: number, crashes: number, interruptions: number],
  ...[maxAttempts: number, timeoutMs: number, ttlMs: number],
  ...[submittedAt: number, dueAt: number, expiresAt: Time, startedAt: Time, finishedAt: Time],
  ...[worker: string | null, holder: string | null, leaseUntil: Time],
  ...[token: number | null, settledToken: number | null, cancelling: number, asked: number],
  ...[
    dedupeKey: unknown,
    bearsKey: number,
    schedule: string | null,
    tickAt: Time,
    reason: FailureReason | null,
  ],
];

export const TASK_COLUMNS = `t.seq, t.id, t.state, t.lane, t.priority, t.attempts, t.crashes, t.interruptions, t.max_attempts,
  t.timeout_ms, t.ttl_ms, t.submitted_at, t.due_at, t.expires_at, t.started_at, t.finished_at, t.worker, t.holder,
  t.lease_until, t.token, t.settled_token, t.cancelling, t.asked, t.dedupe_key, t.bears_key, t.schedule, t.tick_at,
  t.reason`;
const WRITE = `UPDATE tasks SET state = ?, lane = ?, priority = ?, attempts = ?, crashes = ?, interruptions = ?,
  max_attempts = ?, timeout_ms = ?, ttl_ms = ?, due_at = ?, expires_at = ?, started_at = ?, finished_at = ?, worker = ?,
  holder = ?, lease_until = ?, token = ?, settled_token = ?, cancelling = ?, asked = ?, bears_key = ?, reason = ?,
  result = ?, error = coalesce(?, error) WHERE seq = ?`;
const PAYLOAD = "SELECT payload FROM task_payloads WHERE seq = ?";

const BY_ID = tasksWhere("t.id = ?");

/** A limit given as a bare parameter is read by the planner, which prepares the statement anew with each call. */
export const UP_TO = "LIMIT 0 + ?";

/** The query for tasks of one queue that fulfil `rest`: conditions, order and limit on the table `t`. */
export function tasksWhere(rest: string): string {
  return `SELECT ${TASK_COLUMNS} FROM tasks t WHERE t.queue_id = ? AND ${rest}`;
}

/** `sql` is of {@link tasksWhere}. */
export function selectTasks(db: Database, sql: string, queueId: number, ...values: SqlValue[]): Task[] {
  return db
    .sql(sql)
    .all<TaskColumns>(queueId, ...values)
    .map(toTask);
}

export function readTask(db: Database, queueId: number, id: string): Task | undefined {
  const row = db.sql(BY_ID).get<TaskColumns>(queueId, toColumn(id));
  return row === undefined ? undefined : toTask(row);
}

export function payloadOf(db: Database, seq: number): string {
  return fromColumn(db.sql(PAYLOAD).get<[unknown]>(seq)?.[0] ?? "null");
}

/** Writes back all that can change; the result is gone unless given again. */
export function writeTask(db: Database, task: Task, { result, error }: TaskTexts): void {
  db.sql(WRITE).run(
    task.state,
    toColumn(task.lane),
    task.priority,
    task.attempts,
    task.crashes,
    task.interruptions,
    task.maxAttempts,
    task.timeoutMs,
    task.ttlMs,
    task.dueAt,
    task.expiresAt,
    task.startedAt,
    task.finishedAt,
    task.worker,
    task.holder,
    task.leaseUntil,
    task.token,
    task.settledToken,
    Number(task.cancelling),
    Number(task.asked),
    Number(task.bearsKey),
    task.reason,
    toColumnOrNull(result),
    toColumnOrNull(error),
    task.seq,
  );
}

/** Tasks without a key lie in a lane of their own, which no key names. */
export function laneOf(key: string | undefined): string {
  return key === undefined ? "" : `:${key}`;
}

export function keyOf(lane: string): string | null {
  return lane === "" ? null : lane.slice(1);
}

/** `row` begins with {@link TASK_COLUMNS}. */
export function toTask(row: TaskColumns): Task {
  return {
    seq: row[0],
    id: fromColumn(row[1]),
    state: row[2],
    lane: fromColumn(row[3]),
    priority: row[4],
    attempts: row[5],
    crashes: row[6],
    interruptions: row[7],
    maxAttempts: row[8],
    timeoutMs: row[9],
    ttlMs: row[10],
    submittedAt: row[11],
    dueAt: row[12],
    expiresAt: row[13],
    startedAt: row[14],
    finishedAt: row[15],
    worker: row[16],
    holder: row[17],
    leaseUntil: row[18],
    token: row[19],
    settledToken: row[20],
    cancelling: row[21] === 1,
    asked: row[22] === 1,
    dedupeKey: textOrNull(row[23]),
    bearsKey: row[24] === 1,
    tick: row[25] === null ? null : { schedule: row[25], at: row[26] ?? 0 },
    reason: row[27],
  };
}

export function textOrNull(column: unknown): string | null {
  return column === null ? null : fromColumn(column);
}

function toColumnOrNull(text: string | null | undefined): SqlValue {
  return text === null || text === undefined ? null : toColumn(text);
}
