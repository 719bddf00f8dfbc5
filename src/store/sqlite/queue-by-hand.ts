import { isFinished } from "../../protocol/task.ts";
import type { QueueStore } from "../queue-store.ts";
import type { Database } from "./database.ts";
import type { OpenQueue } from "./queue-book.ts";
import { change } from "./queue-moves.ts";
import type { QueueSteps } from "./queue-steps.ts";
import { bearerOf } from "./queue-submit.ts";
import { readTask } from "./queue-tasks.ts";
import type { Writer } from "./writer.ts";

const CLEAN = "UPDATE tasks SET error = NULL WHERE seq = ?";

type ByHand = Pick<QueueStore, "cancel" | "retry">;
type Answer<K extends keyof ByHand> = Awaited<ReturnType<ByHand[K]>>[number];

/** What people do with tasks that no holder asks about. */
export function createByHand(parts: { db: Database; writer: Writer; steps: QueueSteps }): ByHand {
  const { db, writer, steps } = parts;

  function cancel(queue: OpenQueue, id: string): Answer<"cancel"> {
    const task = readTask(db, queue.id, id);
    if (task === undefined) return "unknown";
    if (task.state === "cancelled") return "cancelled";
    if (isFinished(task.state)) return "finished";
    const active = task.state === "active";
    change(db, queue, task, active ? { cancelling: true } : { state: "cancelled" });
    return active ? "cancelling" : "cancelled";
  }

  function retry(queue: OpenQueue, id: string): Answer<"retry"> {
    const task = readTask(db, queue.id, id);
    if (task === undefined) return "unknown";
    if (task.state === "completed") return "completed";
    if (!isFinished(task.state)) return "not-finished";
    const { dedupeKey, ttlMs } = task;
    change(db, queue, task, {
      state: "waiting",
      attempts: 0,
      crashes: 0,
      interruptions: 0,
      dueAt: queue.now,
      expiresAt: ttlMs === 0 ? null : queue.now + ttlMs,
      startedAt: null,
      worker: null,
      bearsKey: dedupeKey !== null && bearerOf(db, queue, dedupeKey) === undefined,
    });
    db.sql(CLEAN).run(task.seq);
    return "waiting";
  }

  function each<T>(
    name: string,
    ids: readonly string[],
    one: (queue: OpenQueue, id: string) => T,
  ): Promise<T[]> {
    const all = (queue: OpenQueue) => ids.map((id) => one(queue, id));
    const unknown = () => ids.map(() => "unknown" as T);
    return writer.write(() => steps.change(name, all, unknown), { weight: Math.max(1, ids.length) });
  }

  return {
    cancel: ({ queue, ids }) => each<Answer<"cancel">>(queue, ids, cancel),
    retry: ({ queue, ids }) => each<Answer<"retry">>(queue, ids, retry),
  };
}
