/**
 * A task and its life:
 *
 *     submit ──► scheduled ──due──► waiting ──claim──► active ──► completed
 *                    ▲                 ▲  ▲              │ │ └──► failed (the dead letter, with a reason)
 *                    └── retry, later ─┼──┼──────────────┘ └────► cancelled
 *                                      │  └ interrupted, or its holder was lost
 *                                      └ retried by hand
 */
export const TASK_STATES = ["scheduled", "waiting", "active", "completed", "failed", "cancelled"] as const;
export type TaskState = (typeof TASK_STATES)[number];

export function isFinished(state: TaskState): boolean {
  return state === "completed" || state === "failed" || state === "cancelled";
}

/** Why a task is in the dead letter. */
export const FAILURE_REASONS = [
  /** The handler threw in each of its attempts. */
  "error",
  /** The last attempt ran for longer than its timeout. */
  "timeout",
  /** The handler threw a `FatalError`. */
  "fatal",
  /** The payload no longer fits the schema, or the result does not. */
  "invalid",
  /** Its worker or process was lost in each of so many runs. */
  "poison",
  /** It had not been started when its time to live was over. */
  "expired",
] as const;
export type FailureReason = (typeof FAILURE_REASONS)[number];

/** What happens to a submission whose `dedupeKey` belongs to another task. */
export const ON_DUPLICATE = ["ignore", "replace", "throttle", "debounce", "supersede"] as const;
export type OnDuplicate = (typeof ON_DUPLICATE)[number];

/** A task as it is submitted. Times are store time in Unix milliseconds, lengths of time are milliseconds. */
export interface NewTask {
  /** Unique within its queue; a repeated submission of the same id is the same task. */
  id: string;
  /** JSON text: opaque to the store, and comes back byte for byte. */
  payload: string;
  /** Not to be started before so long after the submission; 0 for at once. */
  delayMs: number;
  /** Not to be started before then; takes the place of `delayMs`. */
  runAt?: number;
  /** -1000 to 1000, higher goes first; default 0. */
  priority: number;
  /** Tasks of one key share its concurrency, and keys take turns. */
  key?: string;
  dedupe?: {
    key: string;
    onDuplicate: OnDuplicate;
    /** For `throttle` and `debounce`. */
    windowMs: number;
  };
  /** 1 to 1000. */
  maxAttempts: number;
  /** Longest time one attempt may run; 0: no limit. */
  timeoutMs: number;
  /** Longest time between submission (or due time) and its first start; 0: no limit. */
  ttlMs: number;
  /** Somebody waits for its end already: as `ask`. */
  asked?: boolean;
  /** The tick of a schedule that it stands for: one task per schedule and tick, ever; with `revision` only while the schedule has that. */
  tick?: { schedule: string; at: number; revision?: number };
  /** Whatever its submitter wants to know it again by: kept with the task, whatever becomes of it. */
  print?: string;
}

/** What holders of a claim need to run it. */
export interface ClaimedTask {
  id: string;
  payload: string;
  /** Fencing token of this claim. */
  token: string;
  /** Runs that its handler ended itself, so far. */
  attempts: number;
  crashes: number;
  interruptions: number;
  maxAttempts: number;
  timeoutMs: number;
  key: string | null;
  submittedAt: number;
  /** The tick of a schedule that it stands for. */
  tick: { schedule: string; at: number } | null;
}

export interface TaskRecord {
  id: string;
  queue: string;
  state: TaskState;
  payload: string;
  /** JSON text of what the handler returned; null unless completed, or when it returned nothing. */
  result: string | null;
  reason: FailureReason | null;
  /** Of the last attempt that failed: message and stack, at most 4000 characters. */
  error: string | null;
  priority: number;
  key: string | null;
  dedupeKey: string | null;
  attempts: number;
  crashes: number;
  interruptions: number;
  maxAttempts: number;
  timeoutMs: number;
  submittedAt: number;
  /** Since when, or from when on, it may run. */
  dueAt: number;
  /** When its time to live is over, unless it has started; null for never, and while it is active. */
  expiresAt: number | null;
  /** Of the present or last claim. */
  startedAt: number | null;
  finishedAt: number | null;
  /** Who holds it, or held it last: the worker's id. */
  worker: string | null;
  /** Its lease's end; null unless active. */
  leaseUntil: number | null;
  /** Asked to be cancelled while active. */
  cancelling: boolean;
  tick: { schedule: string; at: number } | null;
  /** As it was submitted with; null for none. */
  print: string | null;
}

/**
 * How a claim ended. `attempts` counts `completed` and `failed`; `crashed` and `interrupted` have counters of their own; `returned`
 * (never started) counts nothing.
 */
export type Settlement = { id: string; token: string } & (
  | { outcome: "completed"; result: string | null }
  /**
   * Tried again after `retryInMs`, unless `final` or the attempts are spent: then it goes to the dead letter with `reason`.
   */
  | {
      outcome: "failed";
      reason: "error" | "timeout" | "fatal" | "invalid";
      error: string;
      retryInMs: number;
      final: boolean;
    }
  | { outcome: "cancelled" }
  | { outcome: "interrupted" }
  | { outcome: "crashed"; error: string }
  | { outcome: "returned" }
);

/** What a schedule submits, and when. The arithmetic is the leader's, the store only keeps it. */
export interface ScheduleSpec {
  /** Unique within its queue. */
  id: string;
  timing:
    | { cron: string; timezone: string }
    | { everyMs: number; /** Ticks lie at this time plus multiples of the interval. */ anchor: number }
    | { at: number };
  /** JSON text. */
  payload: string;
  /** Skip a tick while the task of an earlier one is unfinished. */
  overlap: "allow" | "skip";
  /** What to do about ticks that nobody was there to fire; `all` fires at most `missedCap` of the newest. */
  missed: "skip" | "once" | "all";
  missedCap: number;
  /** Each tick is delayed by up to so much, at random. */
  jitterMs: number;
  /** As in `NewTask`. */
  task: { priority: number; key?: string; maxAttempts: number; timeoutMs: number; ttlMs: number };
  /** Who made it: a batch automation's definition (it is replaced and removed with it), or somebody at run time. */
  origin: "definition" | "runtime";
}

export interface ScheduleRecord {
  spec: ScheduleSpec;
  paused: boolean;
  /** Store time since which ticks count: its creation, the last change of its timing, or its last resumption. */
  since: number;
  /** Nominal time of the last tick that was decided on (fired or skipped); null before the first. */
  lastTick: number | null;
  /** Grows with every change. */
  revision: number;
}
