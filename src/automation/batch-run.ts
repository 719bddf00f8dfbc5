import { checkSize, encodePayload } from "../contracts/json.ts";
import { check, payloadError } from "../contracts/validate.ts";
import { machineMs } from "../internal/timers.ts";
import type { SlotTask } from "../protocol/host.ts";
import type { ClaimedTask } from "../protocol/task.ts";
import { activeTask, type ActiveTask } from "./active-task.ts";
import type { Activity } from "./activity.ts";
import { collect } from "./batch-collect.ts";
import type { StopReason } from "./context.ts";
import type { AnyBatch } from "./definition-batch.ts";
import { TaskContext, type TaskScope } from "./task-context.ts";
import type { DeskSlot, TaskDesk } from "./task-desk.ts";
import {
  CANCELLED,
  COMPLETED_WITH_NOTHING,
  invalid,
  type Outcome,
  outcomeOf,
  RETURNED,
} from "./task-outcome.ts";
import { TaskRun } from "./task-run.ts";

/** Why a slot that is to end does not let its task come to an end first. */
const AT_ONCE: ReadonlySet<StopReason> = new Set(["stuck", "lease-lost"]);
const REMEDY = "return a reference to the data instead, or raise maxPayloadBytes in the contract";

export interface BatchRunParts {
  automation: AnyBatch;
  slotId: number;
  desk: TaskDesk;
  activity: Activity;
  scope: TaskScope;
  /** Notes what begins to run, where the supervisor finds it after a crash; null: nothing does. */
  mark: (task: SlotTask | null, all: readonly ClaimedTask[]) => void;
}

/** Tasks that begin together, and those of them that somebody has cancelled or that are lost. */
interface Begun {
  run: TaskRun;
  tasks: readonly ClaimedTask[];
  told: Map<string, StopReason> | undefined;
}

/**
 * One run of a slot of a batch automation: takes tasks, runs them, says how they ended, until it is told to stop; then it takes nothing
 * new and finishes what it has.
 *
 * This is the hot path of a queue: per task no timer, no message, and no signal unless it is looked at.
 */
export class BatchRun implements DeskSlot {
  readonly slotId: number;
  readonly #parts: BatchRunParts;
  readonly #where: string;
  #stopping = false;
  #taken: readonly ClaimedTask[] = [];
  #begun: Begun | undefined;
  /** Tasks that were cancelled or lost between their claim and their start. */
  readonly #early = new Map<string, StopReason>();
  #marked = false;

  constructor(parts: BatchRunParts) {
    this.#parts = parts;
    this.slotId = parts.slotId;
    this.#where = `queue "${parts.automation.name}"`;
  }

  async run(): Promise<void> {
    const { desk } = this.#parts;
    desk.join(this);
    try {
      while (!this.#stopping) {
        const taking = this.#take();
        const tasks = taking instanceof Promise ? await taking : taking;
        if (tasks.length > 0) await this.#work(this.#still(tasks));
      }
    } finally {
      // Nothing that has ended stays marked.
      this.tick();
      desk.leave(this);
    }
  }

  /** `now`: without waiting for its task to end. */
  stop(reason: StopReason, now: boolean): void {
    this.#stopping = true;
    this.#parts.desk.dismiss(this);
    if (now || AT_ONCE.has(reason)) this.#begun?.run.abort(reason);
  }

  /** What it runs at present. */
  get task(): SlotTask | null {
    return this.#begun === undefined ? null : slotTask(this.#begun);
  }

  tasks(): readonly ClaimedTask[] {
    return this.#taken;
  }

  abort(token: string, reason: "cancelled" | "lease-lost"): void {
    if (this.#begun === undefined) {
      if (this.#taken.some((task) => task.token === token)) this.#early.set(token, reason);
      return;
    }
    const { run, tasks } = this.#begun;
    const told = (this.#begun.told ??= new Map<string, StopReason>());
    if (!told.has(token)) told.set(token, reason);
    // Where it shares its run with others, those go on.
    if (tasks.every((task) => told.has(task.token))) run.abort(reason);
  }

  tick(): boolean {
    const run = this.#begun?.run;
    if (run === undefined) {
      if (this.#marked) this.#mark(null, []);
      return false;
    }
    if (run.isOverdue(machineMs())) run.abort("timeout");
    return true;
  }

  #take(): readonly ClaimedTask[] | Promise<readonly ClaimedTask[]> {
    const { desk, automation } = this.#parts;
    const { runMany, size = 100, waitSeconds = 0 } = automation.options;
    const taking = desk.take(this, runMany === undefined ? 1 : size);
    if (runMany === undefined) return this.#takeOne(taking);
    return this.#wait(async () => {
      const first = await taking;
      this.#taken = first;
      const more = (most: number, ms: number) => desk.take(this, most, ms);
      const all = await collect(first, {
        size,
        waitMs: waitSeconds * 1000,
        more,
        taken: (now) => (this.#taken = now),
      });
      if (all.back.length > 0) desk.putBack(all.back);
      if (!this.#stopping) return all.tasks;
      desk.putBack(all.tasks);
      return (this.#taken = []);
    });
  }

  /** Once per task: with no more promises than there must be. */
  async #takeOne(taking: Promise<readonly ClaimedTask[]> | readonly ClaimedTask[]) {
    const { activity } = this.#parts;
    activity.waiting(true);
    this.#taken = await taking;
    activity.waiting(false);
    return this.#taken;
  }

  async #wait<T>(work: () => Promise<T>): Promise<T> {
    const { activity } = this.#parts;
    activity.waiting(true);
    try {
      return await work();
    } finally {
      activity.waiting(false);
    }
  }

  /** Those that may still be started: the others end here. */
  #still(tasks: readonly ClaimedTask[]): readonly ClaimedTask[] {
    if (this.#early.size === 0) return tasks;
    const told = (task: ClaimedTask) => this.#early.get(task.token);
    for (const task of tasks) {
      const reason = told(task);
      if (reason !== undefined) this.#finish(task, reason === "cancelled" ? CANCELLED : RETURNED);
    }
    const left = tasks.filter((task) => told(task) === undefined);
    this.#early.clear();
    this.#taken = left;
    return left;
  }

  async #work(all: readonly ClaimedTask[]): Promise<void> {
    const { automation, desk, activity, scope } = this.#parts;
    const { runOne, runMany } = automation.options;
    const opening = this.#open(all);
    const opened = opening instanceof Promise ? await opening : opening;
    const tasks = opened.length === all.length ? all : opened.map(({ task }) => task);
    this.#taken = tasks;
    const [first] = opened;
    if (first === undefined) return;
    const run = new TaskRun(machineMs(), shortest(tasks), runMany === undefined ? first.task.id : null);
    const begun: Begun = { run, tasks, told: undefined };
    this.#begun = begun;
    this.#mark(slotTask(begun), tasks);
    // Looks at the slot's lease, too: it may have ended while this process stood still.
    activity.progress();
    if (run.aborted !== null) {
      for (const task of tasks) this.#finish(task, RETURNED);
    } else {
      desk.arm();
      let outcomes: readonly Outcome[];
      const context = new TaskContext(scope, run);
      try {
        if (runOne === undefined) {
          const values = await runMany?.(
            opened.map(({ active }) => active),
            context,
          );
          outcomes = await this.#outcomesOf(begun, values);
        } else {
          const value = await runOne(first.active, context);
          const outcome = this.#outcomeOf(begun, first.task, value);
          outcomes = [outcome instanceof Promise ? await outcome : outcome];
        }
      } catch (error) {
        outcomes = tasks.map((task) => this.#thrown(begun, task, error));
      }
      // Before the end is told, so that whoever waits for it finds free what it held.
      if (context.held !== undefined) await context.held.releaseAll();
      const ranMs = (machineMs() - run.startedAt) / tasks.length;
      for (let i = 0; i < tasks.length; i++)
        this.#finish(tasks[i] as ClaimedTask, outcomes[i] as Outcome, ranMs);
    }
    this.#begun = undefined;
    this.#taken = [];
    run.end();
  }

  /** The tasks whose payloads fit; the others end here. */
  #open(tasks: readonly ClaimedTask[]): Opened[] | Promise<Opened[]> {
    const opened: Opened[] = [];
    for (const [at, task] of tasks.entries()) {
      const one = this.#openOne(task);
      if (one instanceof Promise) return this.#openSlowly(opened, one, tasks.slice(at + 1));
      if (one !== undefined) opened.push(one);
    }
    return opened;
  }

  async #openSlowly(
    opened: Opened[],
    next: Promise<Opened | undefined>,
    rest: readonly ClaimedTask[],
  ): Promise<Opened[]> {
    for (const one of await Promise.all([next, ...rest.map((task) => this.#openOne(task))]))
      if (one !== undefined) opened.push(one);
    return opened;
  }

  #openOne(task: ClaimedTask): Opened | undefined | Promise<Opened | undefined> {
    const take = (checked: Awaited<ReturnType<typeof check>>) => {
      if (checked.ok) return { task, active: activeTask(task, checked.value) };
      return this.#refuse(task, payloadError(`${this.#where}: payload`, checked.issues));
    };
    try {
      const checking = check(this.#parts.automation.tasks.payload, JSON.parse(task.payload));
      return checking instanceof Promise
        ? checking.then(take, (error: unknown) => this.#refuse(task, error))
        : take(checking);
    } catch (error) {
      return this.#refuse(task, error);
    }
  }

  #refuse(task: ClaimedTask, error: unknown): undefined {
    this.#finish(task, invalid(error));
  }

  async #outcomesOf(begun: Begun, values: unknown): Promise<Outcome[]> {
    const { tasks } = begun;
    if (begun.run.aborted !== null && values === undefined)
      return tasks.map((task) => this.#thrown(begun, task, undefined));
    if (!Array.isArray(values) || values.length !== tasks.length)
      throw new TypeError(
        `runMany must return an array with one result for each of its ${tasks.length} tasks, got ${Array.isArray(values) ? values.length : typeof values}`,
      );
    return Promise.all(
      tasks.map(async (task, at) => {
        const value: unknown = values[at];
        return value instanceof Error
          ? this.#thrown(begun, task, value)
          : this.#outcomeOf(begun, task, value);
      }),
    );
  }

  /** A value is a result, also when the handler had been told to end; nothing then means that it has obeyed. */
  #outcomeOf(begun: Begun, task: ClaimedTask, value: unknown): Outcome | Promise<Outcome> {
    const { result } = this.#parts.automation.tasks;
    if (value === undefined && this.#toldTo(begun, task) !== null)
      return this.#thrown(begun, task, undefined);
    if (result === undefined) return this.#encode(value);
    const take = (checked: Awaited<ReturnType<typeof check>>) =>
      checked.ok ? this.#encode(value) : invalid(payloadError(`${this.#where}: result`, checked.issues));
    try {
      const checking = check(result, value);
      return checking instanceof Promise ? checking.then(take, invalid) : take(checking);
    } catch (error) {
      return invalid(error);
    }
  }

  #encode(value: unknown): Outcome {
    if (value === undefined) return COMPLETED_WITH_NOTHING;
    const where = `${this.#where}: result`;
    try {
      const result = encodePayload(where, value);
      checkSize(where, result, this.#parts.automation.tasks.options.maxPayloadBytes, REMEDY);
      return { outcome: "completed", result };
    } catch (error) {
      return invalid(error);
    }
  }

  #thrown(begun: Begun, task: ClaimedTask, error: unknown): Outcome {
    const { backoff } = this.#parts.automation.tasks.options;
    const told = this.#toldTo(begun, task);
    return told === "cancelled" ? CANCELLED : outcomeOf(task, error, told, backoff);
  }

  #toldTo({ run, told }: Begun, task: ClaimedTask): StopReason | null {
    return told?.get(task.token) ?? run.aborted;
  }

  #finish(task: ClaimedTask, outcome: Outcome, ranMs?: number): void {
    this.#parts.desk.ended(this, task, outcome, ranMs);
    this.#parts.activity.finished(1);
  }

  #mark(task: SlotTask | null, all: readonly ClaimedTask[]): void {
    this.#marked = task !== null;
    this.#parts.mark(task, all);
  }
}

interface Opened {
  task: ClaimedTask;
  active: ActiveTask;
}

function slotTask({ run, tasks }: Begun): SlotTask {
  const { id, token, attempts } = tasks[0] as ClaimedTask;
  return { id, token, attempts, startedAt: run.startedAt, timeoutMs: run.timeoutMs, count: tasks.length };
}

/** The first timeout of those that have one. */
function shortest(tasks: readonly ClaimedTask[]): number {
  let least = 0;
  for (const { timeoutMs } of tasks)
    if (timeoutMs > 0 && (least === 0 || timeoutMs < least)) least = timeoutMs;
  return least;
}
