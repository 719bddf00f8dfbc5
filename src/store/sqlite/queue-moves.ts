import { isFinished } from "../../protocol/task.ts";
import type { Database } from "./database.ts";
import type { OpenQueue } from "./queue-book.ts";
import { type Task, type TaskTexts, writeTask } from "./queue-tasks.ts";

/** What a step sets; all else follows from the state. */
export type Change = Partial<Omit<Task, "seq" | "id" | "finishedAt" | "asked"> & { asked: true }>;

/**
 * The one way in which a stored task changes. Counts and lanes follow, so they cannot part from the tasks: what is not active
 * has no claim, what has ended bears no key, and whoever waited for its end is told.
 */
export function change(
  db: Database,
  queue: OpenQueue,
  task: Task,
  changes: Change,
  texts: TaskTexts = {},
): void {
  const { state, lane, priority } = task;
  Object.assign(task, changes);
  if (task.state !== "active") {
    Object.assign(task, {
      holder: null,
      leaseUntil: null,
      token: null,
      cancelling: false,
    } satisfies Partial<Task>);
  }
  if (isFinished(task.state)) end(queue, task);
  else Object.assign(task, { finishedAt: null, reason: null } satisfies Partial<Task>);
  if (state !== task.state || lane !== task.lane || priority !== task.priority) {
    // First in, then out: a lane whose only task is changed keeps its turn.
    enter(queue, task);
    if (state === "waiting") queue.lanes.leave(lane, priority);
    else if (state === "active") queue.lanes.release(lane);
    queue.counts[state]--;
  }
  writeTask(db, task, texts);
}

/** Counts a task in its state. */
export function enter(
  { counts, lanes }: OpenQueue,
  { state, lane, priority }: Pick<Task, "state" | "lane" | "priority">,
): void {
  counts[state]++;
  if (state === "waiting") lanes.join(lane, priority);
  else if (state === "active") lanes.occupy(lane);
}

function end(queue: OpenQueue, task: Task): void {
  task.finishedAt = queue.now;
  task.bearsKey = false;
  const state = task.state as "completed" | "failed" | "cancelled";
  queue.totals[state]++;
  if (task.reason !== null) queue.reasons[task.reason] = (queue.reasons[task.reason] ?? 0) + 1;
  if (task.asked) queue.ended.push(task.id);
  task.asked = false;
}

/** The state of an unfinished task that is not claimed. */
export function stateUntil(dueAt: number, now: number): "scheduled" | "waiting" {
  return dueAt > now ? "scheduled" : "waiting";
}
