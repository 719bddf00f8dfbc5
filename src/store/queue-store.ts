import type {
  ClaimedTask,
  FailureReason,
  NewTask,
  ScheduleRecord,
  ScheduleSpec,
  Settlement,
  TaskRecord,
  TaskState,
} from "../protocol/task.ts";
import type { Watch } from "./watch.ts";

/** What holds for a whole queue. Kept in the store by its owner, so that every process goes by the same. */
export interface QueueSettings {
  /** Most unfinished tasks that are not active; more are refused. 0: no limit. */
  maxLength: number;
  maxPayloadBytes: number;
  /** Most active tasks over all workers; 0: no limit. */
  concurrency: number;
  /** Most active tasks of one key over all workers; 0: no limit. Tasks without a key are not meant. */
  keyConcurrency: number;
  /** A task whose holder was lost so often goes to the dead letter, `poison`. At least 1. */
  crashLimit: number;
  /** Completed and cancelled tasks are kept for so long, and at most so many of them. */
  keepMs: number;
  keepCount: number;
  /** The same for the dead letter. */
  keepFailedMs: number;
  keepFailedCount: number;
}

/**
 * Delivery class of a queue: **at least once**. A task that was accepted is `completed`, `failed` with a reason, `cancelled` by
 * somebody, or still there. Guarantees of every back end:
 *
 * - Each call is one atomic step, and each change of a task's state is part of one.
 * - **Exclusive claims.** Between two claims of one task the first has been settled or its lease has expired. Every claim has a token of its
 *   own, greater than all tokens of this queue before (also over a loss of all data, as it is the store's microseconds at least); what bears
 *   another token than the present claim's changes nothing and is answered `"lease-lost"`.
 * - **Order.** Higher priority first. Within one priority keys take turns: a key that was just served goes to the end of the row, and a
 *   key that comes anew enters at its end; all tasks without a key share one place in that row. Within a key, or without one, in order of
 *   submission: a task that is retried, interrupted or was delayed keeps the place of its submission.
 *   In the row stand the keys of which something could be claimed: one that runs out of waiting tasks or reaches its limit leaves it, and
 *   enters again at the end with the next task, or with room. Keys that enter by one step do so in any order, except that those of a
 *   submission enter in its order. A key has one place, whatever priority its first task has; that changes with its first task.
 * - **Limits are exact**: never more than `concurrency` claims of a queue nor `keyConcurrency` of a key, whoever claims how fast. The
 *   claims themselves are what is counted. A key at its limit delays no other key.
 * - A task is never claimed before it is due, nor after its time to live. Whoever claims takes back what has expired first, so recovery
 *   needs no process but one that claims; `sweep` does the same where nobody claims, and `keep` takes back claims. So does a submission,
 *   before it finds a duplicate or the queue full: what time has ended bears no key and fills no queue. All other calls see tasks as
 *   they stand: nothing is taken back, made waiting or ended by them. So a claim whose lease is over can still be settled and is renewed
 *   by `keep`, until it is taken back. A time is reached when the clock shows it: due at `dueAt`, past its time to live at `expiresAt`,
 *   expired at `leaseUntil`.
 * - **Duplicates.** A `dedupe.key` belongs to the task that was submitted with it last, as long as that is unfinished. While it does, `ignore`
 *   and `throttle` write nothing (`throttle` also not within `windowMs` after a submission that was one, finished or not);
 *   `replace` and `debounce` give that task the new payload and options if it is not active (id, submission time and place stay, its counters
 *   are 0 again, its time to live begins anew), and submit a further one if it is; `supersede` cancels it (asks it to, if it is active) and
 *   submits. `debounce` makes what it writes due `windowMs` from now, whatever delay it came with.
 *   A window of `throttle` begins with a `throttle` that was submitted, and is that one's `windowMs`. Somebody who waits for the end of a
 *   task that is replaced still does. A task that is retried by hand bears its key again unless another unfinished task does.
 *   What is checked first counts: the same id (`repeated`), the tick (`fired`), its schedule (`outdated`), the duplicate, the length.
 * - A time to live begins when the task is due and ends with its first start; a claim that is `returned` never was one. Retried by hand, it
 *   begins anew. A task is due `delayMs` after its submission, or at `runAt`, but never before its submission.
 * - An expired claim counts as a crash of its task; at `crashLimit` it goes to the dead letter, `poison`. One that was asked to be
 *   cancelled is cancelled instead: whatever ends its claim, be it a settlement, `lose` or its lease, only `completed` still completes it,
 *   all else cancels it. The counters count the end as they would have otherwise.
 * - The last error of a task, be it of a failed attempt or of a crash, is its `error`.
 * - Conservation: submitted = scheduled + waiting + active + finished (kept or forgotten). No counter stands in for the tasks themselves
 *   except those in `QueueStats.totals`, which only grow. Only `sweep` forgets, the oldest ends first.
 * - A queue that was never declared has no tasks: every call answers as if it were empty.
 * - Payloads, results and errors are opaque texts, kept whole: whoever reports them keeps to their lengths.
 */
export interface QueueStore {
  /**
   * Writes a queue's settings: as `"owner"` always, as `"guest"` only where there are none. Also enters it in the index. Returns those that
   * hold now; they count for the next claim on: claims above a lowered limit stay, a raised one makes room at once.
   */
  declare(args: { queue: string; settings: QueueSettings; as: "owner" | "guest" }): Promise<QueueSettings>;

  /** Names of all declared queues, sorted. */
  list(): Promise<string[]>;

  /**
   * Submits lists of tasks; each list as a whole or not at all, in order, so that calls of one tick can travel together. A repeat with the
   * same ids is harmless while those tasks are kept (also twice in one list). `"undeclared"`: nothing was written, declare the queue and
   * submit again.
   */
  submit(args: {
    queue: string;
    lists: readonly (readonly NewTask[])[];
  }): Promise<{ outcome: "done"; lists: SubmitResult[] } | { outcome: "undeclared" }>;

  /**
   * Ends claims and takes new ones, in one step. Of the claims, `settle` is applied first; then up to `claim` tasks are taken for `holder`,
   * leased for `leaseMs`. A repeat of `settle` is harmless: what this very token has settled before is answered `"settled"` again (the
   * token of a task's last settlement is remembered with it, also when it is claimed anew). A lost answer loses no task: `keep` tells the
   * holder of claims that it does not know.
   *
   * `idle`: where no task was left for the holder, it may be handed tasks by `onTasks` of its watch, as soon as they come: as long as
   * that watch is open, and for `leaseMs` after this call or the last `keep` that named it `idle`, unless it is lost before. Its next turn
   * and its next `keep` end that where they do not say so again. Limits and order hold as ever.
   */
  turn(args: {
    queue: string;
    /** Who claims: one process (one incarnation of one host of slots), unique for ever. */
    holder: string;
    worker: string;
    leaseMs: number;
    settle: readonly Settlement[];
    claim: number;
    idle?: boolean;
  }): Promise<TurnResult>;

  /**
   * Renews all claims of these holders, and tells what each holds. Called by a supervisor for its children on its beat, so code that
   * keeps a child's event loop busy does not cost it its claims. Then takes back claims of others that have expired (as many as one step
   * should), so what a lost worker held is found within a beat of any worker, also where nobody looks for tasks.
   *
   * `idle`: which of them may still be handed tasks if they said so in their last turn; left out, all.
   */
  keep(args: {
    queue: string;
    holders: readonly string[];
    leaseMs: number;
    idle?: readonly string[];
  }): Promise<KeepResult>;

  /**
   * These holders are gone: tasks in `crashed` count a crash (with `error`), all others of theirs an interruption; each is available again at
   * once, or goes to the dead letter at its crash limit. A task asked to be cancelled is cancelled.
   */
  lose(args: {
    queue: string;
    holders: readonly string[];
    crashed: readonly string[];
    error: string;
  }): Promise<{ crashed: number; interrupted: number }>;

  /**
   * Cancels: what is not active at once; what is active is marked, and its holder told by `keep`. A task that is cancelled already is
   * answered `"cancelled"` again, one that has completed or failed `"finished"`.
   */
  cancel(args: {
    queue: string;
    ids: readonly string[];
  }): Promise<("cancelled" | "cancelling" | "finished" | "unknown")[]>;

  /** Puts failed or cancelled tasks back as waiting, due now, with all three counters at 0, whatever the length of the queue. */
  retry(args: {
    queue: string;
    ids: readonly string[];
  }): Promise<("waiting" | "not-finished" | "completed" | "unknown")[]>;

  get(args: { queue: string; id: string }): Promise<TaskRecord | undefined>;

  /** As `get`, and marks an unfinished task, so that its end is told to `onFinished` of every watch. */
  ask(args: { queue: string; id: string }): Promise<TaskRecord | undefined>;

  /** Which of these tasks have ended, or are not there: one look for many who wait. */
  ended(args: { queue: string; ids: readonly string[] }): Promise<string[]>;

  /**
   * Tasks of one state: `completed`, `failed` and `cancelled` newest end first, `scheduled` by due time, `active` by start, `waiting` in no
   * promised order. `next` is a cursor for the following page, undefined at the end. What changes meanwhile may be missed or seen twice;
   * what does not change is on exactly one page.
   */
  page(args: {
    queue: string;
    state: TaskState;
    n: number;
    cursor?: string;
  }): Promise<{ tasks: TaskRecord[]; next?: string }>;

  /** Undefined for a queue that was never declared. */
  stats(args: { queue: string }): Promise<QueueStats | undefined>;

  /**
   * Takes back expired claims, makes due tasks waiting, ends those past their time to live, forgets finished ones beyond what is kept. Any
   * process may call it at any time. `more`: there was more than one step should do; call again. `reclaimed` counts claims taken back,
   * whatever became of their tasks.
   */
  sweep(args: {
    queue: string;
  }): Promise<{ reclaimed: number; expired: number; forgotten: number; more: boolean }>;

  /**
   * Stores a schedule. Its ticks count from the store's now, and anew where `timing` changed (`since` is now and `lastTick` null). Other
   * changes leave both, and none touches `paused`. Unchanged specs change nothing.
   */
  putSchedule(args: { queue: string; spec: ScheduleSpec }): Promise<ScheduleRecord>;
  /** With `revision` only the schedule of that revision: one that was changed since is left alone, and answered `"unknown"`. */
  removeSchedule(args: { queue: string; id: string; revision?: number }): Promise<"removed" | "unknown">;
  /** One that is resumed counts its ticks from now on. */
  pauseSchedule(args: { queue: string; id: string; paused: boolean }): Promise<"done" | "unknown">;
  schedules(args: { queue: string }): Promise<{ now: number; schedules: ScheduleRecord[] }>;
  /**
   * Notes that ticks up to `tick` are decided; never goes back. Ignored where the schedule was changed since `revision`. It is no change
   * itself: `revision` stays. Revisions are not used again after a removal.
   */
  ticked(args: { queue: string; id: string; tick: number; revision: number }): Promise<void>;

  /**
   * Hints, as with streams: late, doubled or lost. `onReady`: there may be something to claim where there was nothing (submitted, retried,
   * given back, taken back, or found due by a step), or there is room again under a limit.
   * `onFinished`: a task that was asked for has ended. `onTasks`: tasks that `taker` (a holder that said `idle`) now holds.
   */
  watch(
    args: { queue: string; taker?: string },
    on: {
      onReady?: () => void;
      onFinished?: (id: string) => void;
      onTasks?: (tasks: readonly ClaimedTask[]) => void;
    },
  ): Watch;
}

export type SubmitResult =
  /** Per task: its id, or that of the task that stands in for it. Where it was `asked`, that one's end is told too. */
  | { outcome: "accepted"; tasks: { id: string; outcome: SubmitOutcome }[] }
  /**
   * The list would have made the queue longer than `maxLength`: nothing of it was written. What it adds in all is what counts: repeats and
   * duplicates add nothing, and what it supersedes makes room. A list that adds nothing is never refused. `length` is that before the list.
   */
  | { outcome: "full"; length: number; maxLength: number };

export type SubmitOutcome =
  | "submitted"
  /** The same id was submitted before. */
  | "repeated"
  /** Another task bears this `dedupeKey`; nothing was written. */
  | "ignored"
  /** Another task bore it, was not active, and has this payload and these options now; its id and place stay. */
  | "replaced"
  /** This tick of its schedule, or a later one, was submitted before; nothing was written. Its own id is answered. */
  | "fired"
  /** Its schedule has another revision than its tick was told by, or is gone; nothing was written. Its own id is answered. */
  | "outdated";

export interface TurnResult {
  settled: ("settled" | "lease-lost")[];
  tasks: ClaimedTask[];
  now: number;
  /** How many more could be claimed at once by somebody, at least (limits considered); 0 when none. */
  ready: number;
  /**
   * Store time at which the next scheduled task is due; null when there is none. Not in the future where some are due that were not made
   * waiting yet (there were more than one step should do): whoever sees that claims.
   */
  nextDueAt: number | null;
}

export interface KeepResult {
  /** Per holder, in order: what it holds. */
  held: { id: string; token: string; cancelling: boolean }[][];
  /**
   * A token greater than those of all claims before this call, and than none after it: a holder that runs a task whose token is
   * smaller, and which is not listed, has lost it; one that does not know a task that is listed gives it back.
   */
  at: string;
  /** As in `TurnResult`; what is due by now and not waiting yet shows in `nextDueAt` alone. */
  ready: number;
  nextDueAt: number | null;
}

export interface QueueStats {
  settings: QueueSettings;
  counts: Record<TaskState, number>;
  /** Store time of the oldest submission among the waiting; null when none waits. */
  oldestWaitingAt: number | null;
  totals: {
    submitted: number;
    completed: number;
    failed: number;
    cancelled: number;
    /** Attempts that failed and were put back. */
    retried: number;
    crashed: number;
    interrupted: number;
    /** Tasks refused because the queue was full. */
    refused: number;
    /** Ignored or replaced as duplicates; neither repeats nor what was superseded. */
    duplicates: number;
  };
  /** Failures by reason, of all time. */
  reasons: Partial<Record<FailureReason, number>>;
  /** Keys at their limit that have tasks waiting, at most 100, with how many of theirs are active and wait. */
  busyKeys: { key: string; active: number; waiting: number }[];
}
