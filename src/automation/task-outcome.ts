/** What follows for a task from how its run ended. Pure, but for the pause's jitter. */
import type { Backoff } from "../contracts/queue.ts";
import { backoffMs } from "../internal/backoff.ts";
import type { ClaimedTask, Settlement } from "../protocol/task.ts";
import type { StopReason } from "./context.ts";
import { isFatal, pauseOf } from "./task-errors.ts";
import { shownText, traceOf } from "./trace.ts";

/** How a claim ended, without saying whose. */
export type Outcome = Settlement extends infer S
  ? S extends unknown
    ? Omit<S, "id" | "token">
    : never
  : never;
type Numbered = Pick<ClaimedTask, "attempts" | "timeoutMs">;

export const COMPLETED_WITH_NOTHING: Outcome = { outcome: "completed", result: null };
export const RETURNED: Outcome = { outcome: "returned" };
export const CANCELLED: Outcome = { outcome: "cancelled" };
const INTERRUPTED: Outcome = { outcome: "interrupted" };

/** The end of this claim, as the store takes it. */
export function settlementOf({ id, token }: Pick<ClaimedTask, "id" | "token">, outcome: Outcome): Settlement {
  // By far the most frequent; written out, because to copy an object costs several times as much.
  if (outcome.outcome === "completed") return { id, token, outcome: "completed", result: outcome.result };
  return { ...outcome, id, token };
}

/** The handler threw, or its signal was aborted (`aborted`) and it returned nothing (`error` undefined). */
export function outcomeOf(
  task: Numbered,
  error: unknown,
  aborted: StopReason | null,
  backoff: Required<Backoff>,
  random: () => number = Math.random,
): Outcome {
  if (aborted === "cancelled") return CANCELLED;
  // Whatever it was told meanwhile: it has found out for good.
  if (isFatal(error))
    return { outcome: "failed", reason: "fatal", error: traceOf(error), retryInMs: 0, final: true };
  const retryInMs = pauseOf(error) ?? pauseAfter(task.attempts, backoff, random);
  switch (aborted) {
    case null:
      return { outcome: "failed", reason: "error", error: traceOf(error), retryInMs, final: false };
    case "timeout":
      return timedOut(
        task.timeoutMs,
        retryInMs,
        error === undefined ? "" : `it ended with: ${traceOf(error)}`,
      );
    case "stuck":
      return gotStuck(retryInMs, "");
    default:
      return INTERRUPTED;
  }
}

export function gotStuck(retryInMs: number, more: string): Outcome {
  const error = `no progress for longer than stuckSeconds${more === "" ? "" : `; ${more}`}`;
  return { outcome: "failed", reason: "timeout", error, retryInMs, final: false };
}

export function timedOut(timeoutMs: number, retryInMs: number, more: string): Outcome {
  const text = `ran for longer than its timeout of ${timeoutMs / 1000} s${more === "" ? "" : `; ${more}`}`;
  return { outcome: "failed", reason: "timeout", error: text.slice(0, 4000), retryInMs, final: false };
}

/** The payload does not fit its schema any more, or the result does not: no attempt with this code will do better. */
export function invalid(error: unknown): Outcome {
  const text = error instanceof Error ? shownText(error.message) : traceOf(error);
  return { outcome: "failed", reason: "invalid", error: text, retryInMs: 0, final: true };
}

/** Pause after a failed attempt; `attempts` is the number of those before it. */
export function pauseAfter(
  attempts: number,
  backoff: Required<Backoff>,
  random: () => number = Math.random,
): number {
  const { baseSeconds, capSeconds, jitter } = backoff;
  return Math.round(
    backoffMs(attempts + 1, { baseMs: baseSeconds * 1000, capMs: capSeconds * 1000, jitter }, random),
  );
}
