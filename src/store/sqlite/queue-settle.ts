import type { Settlement } from "../../protocol/task.ts";
import type { Database } from "./database.ts";
import type { OpenQueue } from "./queue-book.ts";
import { change, type Change, stateUntil } from "./queue-moves.ts";
import { readTask, type Task } from "./queue-tasks.ts";

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

/** How a claim ended, whoever says so. */
export type Outcome = DistributiveOmit<Settlement, "id" | "token">;

/**
 * Ends a claim on behalf of its holder. A repeat of what this token has settled is answered as the first time; a claim that was
 * taken back has lost its token.
 */
export function settle(db: Database, queue: OpenQueue, settlement: Settlement): "settled" | "lease-lost" {
  const task = readTask(db, queue.id, settlement.id);
  if (task === undefined) return "lease-lost";
  const { token } = settlement;
  if (task.state === "active" && String(task.token) === token) {
    endClaim(db, queue, task, settlement, { settledToken: task.token });
    return "settled";
  }
  return String(task.settledToken) === token ? "settled" : "lease-lost";
}

/** Ends the claim of an active task: counts how, and moves the task to where that leads. */
export function endClaim(
  db: Database,
  queue: OpenQueue,
  task: Task,
  outcome: Outcome,
  changes: Pick<Change, "settledToken"> = {},
): void {
  const { totals } = queue;
  const next = { ...changes, ...afterClaim(task, outcome, queue) };
  if (outcome.outcome === "crashed") totals.crashed++;
  if (outcome.outcome === "interrupted") totals.interrupted++;
  if (outcome.outcome === "failed" && next.state !== "failed" && next.state !== "cancelled") totals.retried++;
  const texts = {
    result: outcome.outcome === "completed" ? outcome.result : null,
    error: "error" in outcome ? outcome.error : undefined,
  };
  change(db, queue, task, next, texts);
}

/** What becomes of a claimed task. Asked to be cancelled, all but completing it cancels it. */
function afterClaim(
  task: Task,
  outcome: Outcome,
  { now, settings }: Pick<OpenQueue, "now" | "settings">,
): Change & Required<Pick<Change, "state">> {
  const { next, counted } = byOutcome(task, outcome, now, settings.crashLimit);
  if (!task.cancelling || next.state === "completed") return { ...counted, ...next };
  return { ...counted, state: "cancelled", reason: null };
}

interface Effect {
  /** Counters, and what else holds whatever becomes of the task. */
  counted: Change;
  next: Required<Pick<Change, "state">> & Pick<Change, "reason" | "dueAt">;
}

function byOutcome(task: Task, outcome: Outcome, now: number, crashLimit: number): Effect {
  const waiting = { state: "waiting" } as const;
  // The time to live ends with the first start, and `returned` alone says that there was none.
  const started = { expiresAt: null };
  const attempts = task.attempts + 1;
  switch (outcome.outcome) {
    case "completed":
      return { counted: { ...started, attempts }, next: { state: "completed" } };
    case "failed": {
      if (outcome.final || attempts >= task.maxAttempts)
        return { counted: { ...started, attempts }, next: { state: "failed", reason: outcome.reason } };
      const dueAt = now + Math.max(0, Math.ceil(outcome.retryInMs));
      return { counted: { ...started, attempts }, next: { state: stateUntil(dueAt, now), dueAt } };
    }
    case "cancelled":
      return { counted: started, next: { state: "cancelled" } };
    case "interrupted":
      return { counted: { ...started, interruptions: task.interruptions + 1 }, next: waiting };
    case "crashed": {
      const crashes = task.crashes + 1;
      const poison = { state: "failed", reason: "poison" } as const;
      return { counted: { ...started, crashes }, next: crashes >= crashLimit ? poison : waiting };
    }
    case "returned":
      return { counted: { startedAt: null }, next: waiting };
    default:
      return outcome satisfies never;
  }
}
