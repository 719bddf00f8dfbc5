import type { InferInput, InferOutput, Schema } from "../contracts/schema/standard.ts";
import type { FailureReason, TaskState } from "../protocol/task.ts";
import type { SubmitOutcome } from "../store/queue-store.ts";
import type { SubmitOptions } from "./queue-options.ts";
import type { ScheduleOptions } from "./schedule-spec.ts";

export interface WaitOptions {
  /** How long to wait for the task's end, in seconds; `Infinity` waits for ever. 0 only looks. */
  waitSeconds?: number;
}

export type CallOptions = SubmitOptions & WaitOptions;

/** A task that was accepted. */
export interface TaskHandle<R extends Schema = Schema> {
  /** Its id; that of the task that stands in for it, where it was a duplicate. */
  readonly id: string;
  /** What became of the submission: `"submitted"`, or for a duplicate `"ignored"`, `"replaced"` or `"repeated"` (the same id again). */
  readonly outcome: SubmitOutcome;
  /** As `QueueHandle.result`, with its own delay, time to live and timeout as the longest wait. */
  result(options?: WaitOptions): Promise<InferOutput<R>>;
}

/** One task as it stands. Points in time are Unix milliseconds of the store. */
export interface Task<P extends Schema = Schema, R extends Schema = Schema> {
  readonly id: string;
  readonly queue: string;
  readonly state: TaskState;
  /** As it was submitted. */
  readonly payload: InferInput<P>;
  /** What its handler returned; undefined unless it has completed. */
  readonly result: InferOutput<R> | undefined;
  /** Why it is in the dead letter; null unless it has failed. */
  readonly reason: FailureReason | null;
  /** Of the last attempt that failed or crashed: message and stack. */
  readonly error: string | null;
  /** Runs that its handler ended itself. */
  readonly attempts: number;
  /** Runs that ended with the process or worker they were in. */
  readonly crashes: number;
  /** Runs that ended for no fault of theirs: a drain, a neighbour's crash. */
  readonly interruptions: number;
  readonly maxAttempts: number;
  readonly priority: number;
  readonly key: string | null;
  readonly dedupeKey: string | null;
  readonly submittedAt: number;
  /** From when on it may run. */
  readonly dueAt: number;
  /** When its time to live is over, unless it has started; null for never. */
  readonly expiresAt: number | null;
  /** Of its present or last run. */
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  /** Who runs it, or ran it last. */
  readonly worker: string | null;
  /** Asked to be cancelled while it runs. */
  readonly cancelling: boolean;
  /** The tick of a schedule that it stands for; null for a task that was submitted. */
  readonly tick: { readonly schedule: string; readonly at: number } | null;
}

/**
 * A queue, from the side of those who have work for it. Delivery class: **at least once**: a task that was accepted ends as
 * completed, failed with a reason (the dead letter) or cancelled, or is still there.
 */
export interface QueueHandle<P extends Schema = Schema, R extends Schema = Schema> {
  /**
   * Resolves once the store has the task. Throws before anything is written: a `TypeError` (`FLEET_PAYLOAD_INVALID`,
   * `FLEET_PAYLOAD_TOO_LARGE`) for the payload, `FLEET_OPTION_INVALID`, `FLEET_QUEUE_FULL`.
   */
  submit(payload: InferInput<P>, options?: SubmitOptions): Promise<TaskHandle<R>>;
  /**
   * All or nothing, in this order: none is written unless all are accepted. At most 1000 tasks and 16 MiB of payloads in one call.
   * Options are the same for all, or a function gives those of each.
   */
  submitMany(
    payloads: readonly InferInput<P>[],
    options?: SubmitOptions | ((payload: InferInput<P>, index: number) => SubmitOptions | undefined),
  ): Promise<TaskHandle<R>[]>;
  /** Submits and waits for the result: `submit` and `result` in one. */
  call(payload: InferInput<P>, options?: CallOptions): Promise<InferOutput<R>>;
  /**
   * Waits for the end of a task and answers its result. Throws `FLEET_TASK_FAILED` (in the dead letter; the message has reason and last
   * error), `FLEET_TASK_CANCELLED`, `FLEET_TASK_UNKNOWN` (never submitted, or not kept any more), and, retryable, `FLEET_TASK_PENDING`
   * when `waitSeconds` are over and it has not ended: it goes on, and one can wait again. The default is the queue's `ttlSeconds` and
   * `timeoutSeconds` together, for ever where the timeout is 0.
   */
  result(id: string, options?: WaitOptions): Promise<InferOutput<R>>;
  /** One task, or undefined: it was never submitted, or is not kept any more. */
  get(id: string): Promise<Task<P, R> | undefined>;
  /**
   * A task that does not run is cancelled at once; one that does is asked to (`"cancelling"`): its signal aborts, wherever it runs. One
   * that has completed or failed is `"finished"`.
   */
  cancel(id: string): Promise<"cancelled" | "cancelling" | "finished" | "unknown">;
  /** Puts a failed or cancelled task back, with fresh counters, to be run at once. */
  retry(id: string): Promise<"waiting" | "not-finished" | "completed" | "unknown">;
  /** Unfinished tasks that do not run: those that wait, and those that are not due yet. */
  length(): Promise<number>;
  /**
   * Submits a task by itself: by a cron pattern, an interval, or once. `id` names the schedule within this queue: 1 to 64 lower-case letters, digits,
   * '.', '_' or '-'; the same id again changes it, and one that a definition declares belongs to this call from then on. Exactly one
   * task per tick, however many workers live.
   */
  schedule(id: string, options: ScheduleOptions<P>): Promise<void>;
  /** Ends a schedule; tasks that it has submitted stay. */
  unschedule(id: string): Promise<"removed" | "unknown">;
}
