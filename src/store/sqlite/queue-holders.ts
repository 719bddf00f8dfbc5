import type { KeepResult } from "../queue-store.ts";
import type { Database } from "./database.ts";
import type { OpenQueue } from "./queue-book.ts";
import { endClaim } from "./queue-settle.ts";
import { selectTasks, tasksWhere } from "./queue-tasks.ts";
import { fromColumn } from "./stream-state.ts";

const HELD = `SELECT id, token, cancelling FROM tasks WHERE queue_id = ? AND holder = ? AND state = 'active'
  ORDER BY token`;
const HELD_TASKS = tasksWhere("t.holder = ? AND t.state = 'active' ORDER BY t.token");
const RENEW = "UPDATE tasks SET lease_until = ? WHERE queue_id = ? AND holder = ? AND state = 'active'";

/** What each of these holders holds. */
export function heldBy(db: Database, queueId: number, holders: readonly string[]): KeepResult["held"] {
  return holders.map((holder) =>
    db
      .sql(HELD)
      .all<[unknown, number, number]>(queueId, holder)
      .map(([id, token, cancelling]) => {
        return { id: fromColumn(id), token: String(token), cancelling: cancelling === 1 };
      }),
  );
}

export function renew(db: Database, queue: OpenQueue, holders: readonly string[], leaseMs: number): void {
  for (const holder of holders) db.sql(RENEW).run(queue.now + leaseMs, queue.id, holder);
}

/** Ends all claims of holders that are gone. */
export function lose(
  db: Database,
  queue: OpenQueue,
  args: { holders: readonly string[]; crashed: readonly string[]; error: string },
): { crashed: number; interrupted: number } {
  const crashed = new Set(args.crashed);
  const count = { crashed: 0, interrupted: 0 };
  for (const holder of args.holders) {
    for (const task of selectTasks(db, HELD_TASKS, queue.id, holder)) {
      const outcome = crashed.has(task.id) ? "crashed" : "interrupted";
      endClaim(db, queue, task, outcome === "crashed" ? { outcome, error: args.error } : { outcome });
      count[outcome]++;
    }
  }
  return count;
}
