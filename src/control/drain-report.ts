// What a worker that drains, or is asked to, still has to end. Pure.
import type { SlotState, WorkerRecord } from "../protocol/status.ts";
import { workerState } from "../protocol/status.ts";

/** Durations in seconds. */
export interface DrainLine {
  /** Who asked; null for a signal. */
  by: string | null;
  /** False while it was asked and has not begun. */
  begun: boolean;
  /** Since it began; since it was asked while it has not. */
  seconds: number;
  /** Until what still runs is interrupted and killed; below 0 once that has begun. Null where the worker does not say. */
  left_seconds: number | null;
  forced: boolean;
  /** What it waits for. */
  waits_for: DrainedSlot[];
}

export interface DrainedSlot {
  automation: string;
  slot_id: number;
  state: SlotState;
  /** In that state. */
  seconds: number;
  task: { id: string; seconds: number } | null;
}

/** Null for one that neither drains nor is asked to, and for one that is gone. */
export function drainLine(worker: WorkerRecord, now: number): DrainLine | null {
  const wish = worker.wish?.drain;
  if (workerState(worker, now) === "offline" || (!worker.draining && wish === undefined)) return null;
  const since = (at: number) => Math.max(0, now - at) / 1000;
  const { drain } = worker;
  return {
    by: worker.draining ? (drain?.by ?? null) : (wish?.by ?? null),
    begun: worker.draining,
    seconds: since(drain?.since ?? wish?.at ?? worker.lastSeenAt),
    left_seconds: drain === undefined ? null : (drain.until - now) / 1000,
    forced: drain?.forced ?? false,
    waits_for: worker.slots
      .filter(({ state }) => state === "running" || state === "starting" || state === "stopping")
      .map(({ automation, slotId, state, since: at, task }) => ({
        automation,
        slot_id: slotId,
        state,
        seconds: since(at),
        task: task ? { id: task.id, seconds: since(task.since) } : null,
      })),
  };
}
