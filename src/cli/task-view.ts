// How queues and tasks are shown.
import type { FailureReason, TaskRecord, TaskState } from "../protocol/task.ts";
import type { QueueStats } from "../store/queue-store.ts";
import { escapeControls } from "../internal/redact.ts";
import { type Column, duration, firstLine, renderTable } from "./table.ts";
import { sinceOf } from "./task-filters.ts";

type Paint = (text: string) => string;

/** One line of `fleet task ls --json` without a queue. */
export interface QueueLine {
  name: string;
  waiting: number;
  scheduled: number;
  active: number;
  completed: number;
  failed: number;
  cancelled: number;
  /** Age of the oldest waiting task in seconds; null when none waits. */
  oldest_waiting_seconds: number | null;
  settings: object;
  totals: QueueStats["totals"];
  reasons: QueueStats["reasons"];
}

export function queueLine(name: string, stats: QueueStats, now: number): QueueLine {
  const { settings, counts, oldestWaitingAt, totals, reasons } = stats;
  return {
    name,
    ...counts,
    oldest_waiting_seconds: oldestWaitingAt === null ? null : Math.max(0, now - oldestWaitingAt) / 1000,
    settings: {
      max_length: settings.maxLength,
      max_payload_bytes: settings.maxPayloadBytes,
      concurrency: settings.concurrency,
      key_concurrency: settings.keyConcurrency,
      crash_limit: settings.crashLimit,
      keep_seconds: settings.keepMs / 1000,
      keep_count: settings.keepCount,
      keep_failed_seconds: settings.keepFailedMs / 1000,
      keep_failed_count: settings.keepFailedCount,
    },
    totals,
    reasons,
  };
}

const COUNTS = ["waiting", "scheduled", "active", "completed", "failed", "cancelled"] as const;

const QUEUE_COLUMNS: readonly Column<QueueLine>[] = [
  { title: "QUEUE", text: ({ name }) => name },
  ...COUNTS.map((state): Column<QueueLine> => ({
    title: state.toUpperCase(),
    align: "right",
    text: (line) => String(line[state]),
  })),
  {
    title: "OLDEST",
    align: "right",
    text: ({ oldest_waiting_seconds: oldest }) => (oldest === null ? "-" : duration(oldest * 1000)),
  },
];

export function renderQueues(lines: readonly QueueLine[], paintTitle: Paint): string {
  if (lines.length === 0) return "There are no queues yet.\n";
  return `${renderTable(lines, QUEUE_COLUMNS, paintTitle)}\n`;
}

/** A task in `--json`. Points in time are Unix milliseconds of the store. */
export interface TaskLine {
  id: string;
  queue: string;
  state: TaskState;
  /** Since when it is in that state. */
  since: number;
  reason: FailureReason | null;
  error: string | null;
  payload: unknown;
  result: unknown;
  priority: number;
  key: string | null;
  dedupe_key: string | null;
  attempts: number;
  crashes: number;
  interruptions: number;
  max_attempts: number;
  timeout_seconds: number;
  submitted_at: number;
  due_at: number;
  expires_at: number | null;
  started_at: number | null;
  finished_at: number | null;
  worker: string | null;
  cancelling: boolean;
  tick: { schedule: string; at: number } | null;
}

export function taskLine(task: TaskRecord): TaskLine {
  return {
    id: task.id,
    queue: task.queue,
    state: task.state,
    since: sinceOf(task),
    reason: task.reason,
    error: task.error,
    payload: jsonOr(task.payload),
    result: task.result === null ? null : jsonOr(task.result),
    priority: task.priority,
    key: task.key,
    dedupe_key: task.dedupeKey,
    attempts: task.attempts,
    crashes: task.crashes,
    interruptions: task.interruptions,
    max_attempts: task.maxAttempts,
    timeout_seconds: task.timeoutMs / 1000,
    submitted_at: task.submittedAt,
    due_at: task.dueAt,
    expires_at: task.expiresAt,
    started_at: task.startedAt,
    finished_at: task.finishedAt,
    worker: task.worker,
    cancelling: task.cancelling,
    tick: task.tick,
  };
}

/** What another program has written may be no JSON at all: then it is shown as a text. */
function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

export function renderTasks(tasks: readonly TaskRecord[], now: number, paintTitle: Paint): string {
  if (tasks.length === 0) return "No task is like that.\n";
  const columns: Column<TaskRecord>[] = [
    { title: "TASK", text: ({ id }) => id },
    { title: "STATE", text: stateText },
    { title: "SINCE", align: "right", text: (task) => duration(now - sinceOf(task)) },
    { title: "ATTEMPTS", align: "right", text: ({ attempts, maxAttempts }) => `${attempts}/${maxAttempts}` },
    ...(tasks.some(({ priority }) => priority !== 0)
      ? [
          {
            title: "PRIORITY",
            align: "right",
            text: ({ priority }) => String(priority),
          } as Column<TaskRecord>,
        ]
      : []),
    ...(tasks.some(({ key }) => key !== null)
      ? [{ title: "KEY", text: ({ key }) => short(key ?? "-", 24) } as Column<TaskRecord>]
      : []),
    { title: "NOTE", text: (task) => noteOf(task, now) },
  ];
  return `${renderTable(tasks, columns, paintTitle)}\n`;
}

function stateText({ state, reason, cancelling }: TaskRecord): string {
  if (cancelling && state === "active") return "active, cancelling";
  return reason === null ? state : `${state}, ${reason}`;
}

function noteOf(task: TaskRecord, now: number): string {
  const parts = [
    ...(task.state === "scheduled" ? [`due in ${duration(task.dueAt - now)}`] : []),
    ...(task.state === "active" && task.worker !== null ? [`on ${task.worker}`] : []),
    ...(task.error === null ? [] : [firstLine(task.error)]),
  ];
  return parts.length === 0 ? short(task.payload, 60) : short(parts.join("; "), 80);
}

/** `fleet task show`: all that is known about one task. */
export function renderTask(task: TaskRecord, now: number, bold: Paint): string {
  const at = (time: number | null) =>
    time === null ? "-" : `${new Date(time).toISOString()} (${relative(time, now)})`;
  const rows: [string, string][] = [
    ["queue", task.queue],
    ["state", stateText(task)],
    ["submitted", at(task.submittedAt)],
    ["due", at(task.dueAt)],
    ...(task.expiresAt === null ? [] : ([["expires", at(task.expiresAt)]] as [string, string][])),
    ["started", at(task.startedAt)],
    ["finished", at(task.finishedAt)],
    ["worker", task.worker ?? "-"],
    [
      "attempts",
      `${task.attempts} of ${task.maxAttempts} (crashes: ${task.crashes}, interruptions: ${task.interruptions})`,
    ],
    ["timeout", task.timeoutMs === 0 ? "none" : duration(task.timeoutMs)],
    ["priority", String(task.priority)],
    ["key", task.key ?? "-"],
    ["dedupe key", task.dedupeKey ?? "-"],
    ...(task.tick === null
      ? []
      : ([["schedule", `${task.tick.schedule}, tick ${new Date(task.tick.at).toISOString()}`]] as [
          string,
          string,
        ][])),
    ["payload", task.payload],
    ...(task.result === null ? [] : ([["result", task.result]] as [string, string][])),
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  const lines = rows.map(([name, value]) => `  ${name.padEnd(width)}  ${escapeControls(value)}`);
  const error =
    task.error === null
      ? []
      : ["", "  last error:", ...task.error.split("\n").map((line) => `    ${escapeControls(line)}`)];
  return `${[bold(escapeControls(task.id)), ...lines, ...error].join("\n")}\n`;
}

export function relative(time: number, now: number): string {
  return time > now ? `in ${duration(time - now)}` : `${duration(now - time)} ago`;
}

function short(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max - 1)}…`;
}
