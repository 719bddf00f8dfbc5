import type { ClaimedTask } from "../protocol/task.ts";

/** A task while it runs, as its handler sees it. */
export interface ActiveTask<Payload = unknown> {
  readonly id: string;
  /** 1 for the first attempt. Crashes and interruptions are no attempts. */
  readonly attempt: number;
  /** Attempts that may fail before it goes to the dead letter. */
  readonly maxAttempts: number;
  /** How often a process or worker that ran it was lost. */
  readonly crashes: number;
  /** How often it was interrupted for no fault of its own: by a drain, by a neighbour's crash. */
  readonly interruptions: number;
  /** The key that it was submitted with; null for none. */
  readonly key: string | null;
  /** Unix milliseconds of the store. */
  readonly submittedAt: number;
  /** The tick of a schedule that it stands for, with its nominal time; null when somebody submitted it. */
  readonly tick: { readonly schedule: string; readonly at: number } | null;
  /** Parsed by the queue's schema. */
  readonly payload: Payload;
}

export function activeTask<P>(task: ClaimedTask, payload: P): ActiveTask<P> {
  return {
    id: task.id,
    attempt: task.attempts + 1,
    maxAttempts: task.maxAttempts,
    crashes: task.crashes,
    interruptions: task.interruptions,
    key: task.key,
    submittedAt: task.submittedAt,
    tick: task.tick,
    payload,
  };
}
