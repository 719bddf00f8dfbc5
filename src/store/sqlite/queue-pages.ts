import { FleetError } from "../../errors.ts";
import type { TaskRecord, TaskState } from "../../protocol/task.ts";
import type { Database } from "./database.ts";
import type { OpenQueue } from "./queue-book.ts";
import { recordsWhere, selectRecords } from "./queue-task-records.ts";
import { type Task, UP_TO } from "./queue-tasks.ts";

/** How the tasks of one state are walked: after a pair of numbers that grows or falls along the index. */
interface Walk {
  sql: string;
  start: readonly [number, number];
  at: (task: Task) => readonly [number, number];
}

const ENDED: Omit<Walk, "sql"> = {
  start: [Number.MAX_SAFE_INTEGER, 0],
  at: (task) => [task.finishedAt ?? 0, task.seq],
};
const ended = (state: TaskState): Walk => ({
  ...ENDED,
  sql: recordsWhere(`t.state = '${state}' AND t.finished_at IS NOT NULL AND (t.finished_at, t.seq) < (?, ?)
    ORDER BY t.finished_at DESC, t.seq DESC ${UP_TO}`),
});
const START = [Number.MIN_SAFE_INTEGER, 0] as const;

const WALKS: Record<TaskState, Walk> = {
  scheduled: {
    sql: recordsWhere(
      `t.state = 'scheduled' AND (t.due_at, t.seq) > (?, ?) ORDER BY t.due_at, t.seq ${UP_TO}`,
    ),
    start: START,
    at: (task) => [task.dueAt, task.seq],
  },
  waiting: {
    sql: recordsWhere(`t.state = 'waiting' AND t.seq > ? AND t.seq > ? ORDER BY t.seq ${UP_TO}`),
    start: START,
    at: (task) => [task.seq, 0],
  },
  // Tokens grow with each claim. These are as many as there are claims at once, so they are sorted, not indexed.
  active: {
    sql: recordsWhere(`t.state = 'active' AND (t.token, t.seq) > (?, ?) ORDER BY t.token, t.seq ${UP_TO}`),
    start: START,
    at: (task) => [task.token ?? 0, task.seq],
  },
  completed: ended("completed"),
  failed: ended("failed"),
  cancelled: ended("cancelled"),
};

export function pageOf(
  db: Database,
  queue: OpenQueue,
  { state, n, cursor }: { state: TaskState; n: number; cursor?: string },
): { tasks: TaskRecord[]; next?: string } {
  const { sql, start, at } = WALKS[state];
  const [first, second] = cursor === undefined ? start : parseCursor(cursor);
  const rows = selectRecords(db, sql, queue, first, second, n + 1);
  const tasks = rows.slice(0, n).map(({ record }) => record);
  const last = rows.length > n ? rows[n - 1]?.task : undefined;
  return last === undefined ? { tasks } : { tasks, next: at(last).join("-") };
}

function parseCursor(cursor: string): readonly [number, number] {
  const [, first, second] = /^(\d{1,16})-(\d{1,16})$/.exec(cursor) ?? [];
  if (first === undefined || second === undefined) {
    const what = `page: cursor ${JSON.stringify(cursor)} is none of this queue; take \`next\` of the page before`;
    throw new FleetError("FLEET_OPTION_INVALID", what);
  }
  return [Number(first), Number(second)];
}
