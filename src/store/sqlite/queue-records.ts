import { isFinished, type TaskRecord, type TaskState } from "../../protocol/task.ts";
import type { QueueStats, QueueStore } from "../queue-store.ts";
import type { Database } from "./database.ts";
import type { OpenQueue } from "./queue-book.ts";
import { pageOf } from "./queue-pages.ts";
import type { QueueSteps } from "./queue-steps.ts";
import { ask } from "./queue-submit.ts";
import { recordsWhere, selectRecords } from "./queue-task-records.ts";
import { keyOf, readTask } from "./queue-tasks.ts";
import { fromColumn, toColumn } from "./stream-state.ts";
import type { Writer } from "./writer.ts";

const BY_ID = recordsWhere("t.id = ?");
const STATE = "SELECT state FROM tasks WHERE queue_id = ? AND id = ?";
const OLDEST = "SELECT submitted_at FROM tasks WHERE queue_id = ? AND state = 'waiting' ORDER BY seq LIMIT 1";
const BLOCKED = `SELECT lane, active, waiting FROM queue_lanes WHERE queue_id = ? AND turn IS NULL AND waiting > 0
  LIMIT 100`;

/** What can be seen of a queue and its tasks. */
export function createQueueRecords(parts: {
  db: Database;
  writer: Writer;
  steps: QueueSteps;
}): Pick<QueueStore, "get" | "ask" | "ended" | "page" | "stats"> {
  const { db, writer, steps } = parts;

  function recordOf(queue: OpenQueue, id: string): TaskRecord | undefined {
    return selectRecords(db, BY_ID, queue, toColumn(id))[0]?.record;
  }

  function statsOf(queue: OpenQueue): QueueStats {
    const { id, settings, counts, totals, reasons } = queue;
    const oldestWaitingAt = db.sql(OLDEST).get<[number]>(id)?.[0] ?? null;
    const busyKeys = db
      .sql(BLOCKED)
      .all<[unknown, number, number]>(id)
      .map(([lane, active, waiting]) => ({ key: keyOf(fromColumn(lane)) ?? "", active, waiting }));
    return { settings, counts, oldestWaitingAt, totals, reasons, busyKeys };
  }

  const none = () => undefined;

  return {
    get({ queue: name, id }) {
      return writer.read(() =>
        steps.look<TaskRecord | undefined>(name, (queue) => recordOf(queue, id), none),
      );
    },

    ask({ queue: name, id }) {
      return writer.write(() =>
        steps.look<TaskRecord | undefined>(
          name,
          (queue) => {
            ask(db, readTask(db, queue.id, id));
            return recordOf(queue, id);
          },
          none,
        ),
      );
    },

    ended({ queue: name, ids }) {
      const isOver = (queue: OpenQueue, id: string) => {
        const state = db.sql(STATE).get<[TaskState]>(queue.id, toColumn(id))?.[0];
        return state === undefined || isFinished(state);
      };
      const some = (queue: OpenQueue) => ids.filter((id) => isOver(queue, id));
      return writer.read(() => steps.look<string[]>(name, some, () => [...ids]));
    },

    page({ queue: name, ...args }) {
      const empty = (): { tasks: TaskRecord[]; next?: string } => ({ tasks: [] });
      return writer.read(() => steps.look(name, (queue) => pageOf(db, queue, args), empty));
    },

    stats({ queue: name }) {
      return writer.read(() => steps.look<QueueStats | undefined>(name, statsOf, none));
    },
  };
}
