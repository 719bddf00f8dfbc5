import { checkName } from "../contracts/name.ts";
import { checkOptions, integer, number, refuse, type OptionRules } from "../contracts/options.ts";
import {
  defineQueue,
  isQueueContract,
  type QueueContract,
  type QueueDefinition,
} from "../contracts/queue.ts";
import type { InferInput, InferOutput, Schema } from "../contracts/schema/standard.ts";
import type { StreamContract } from "../contracts/stream.ts";
import { FleetError } from "../errors.ts";
import { declaredSpecs, type ScheduleOptions } from "../primitives/schedule-spec.ts";
import type { ActiveTask } from "./active-task.ts";
import type { ContextOf, OutputOf } from "./context.ts";
import { fn, seal, type SharedOptions, sharedRules, stuckSeconds } from "./definition-options.ts";

/** How a batch automation's queue may be given: its contract, the payload's schema alone, or what `defineQueue` takes. */
// `any` as in "whatever it is": the schema of a result that is left out is not known.
export type TasksOption = QueueContract | Schema | QueueDefinition<Schema, Schema>;

export type PayloadSchema<T> =
  T extends QueueContract<infer P, infer _R>
    ? P
    : T extends { payload: infer P extends Schema }
      ? P
      : T extends Schema
        ? T
        : never;
export type ResultSchema<T> =
  T extends QueueContract<infer _P, infer R> ? R : T extends { result: infer R extends Schema } ? R : Schema;

type Result<T> = InferInput<ResultSchema<T>>;

export interface BatchOptions<
  T extends TasksOption,
  C extends Schema,
  O extends Schema | StreamContract,
  St extends Schema,
> extends SharedOptions<C, O, St> {
  /** Its queue: a contract that bears the automation's name, the payload's schema alone, or what `defineQueue` takes beside the name. */
  tasks: T;
  /** A task without progress for so long is ended and its slot healed. Default: only the task's own timeout ends it. 1 to 86 400. */
  stuckSeconds?: number;
  /**
   * Runs one task and returns its result. What it throws is a failed attempt, tried again after the queue's `backoff`; `FatalError` is
   * not tried again, `RetryAfter` names the pause.
   */
  runOne?(
    task: ActiveTask<InferOutput<PayloadSchema<T>>>,
    ctx: ContextOf<C, O, St>,
  ): Result<T> | Promise<Result<T>>;
  /**
   * Instead of `runOne`: runs several tasks and returns one result for each, in their order; an `Error` in a task's place fails that one
   * alone, what it throws fails all.
   */
  runMany?(
    tasks: readonly ActiveTask<InferOutput<PayloadSchema<T>>>[],
    ctx: ContextOf<C, O, St>,
  ): readonly (Result<T> | Error)[] | Promise<readonly (Result<T> | Error)[]>;
  /** Most tasks of one `runMany`; 1 to 1000, default 100. */
  size?: number;
  /** How long `runMany` waits for `size` tasks, once it has one, in seconds; 0 to 3600, default 0: it takes what is there. */
  waitSeconds?: number;
  /** What submits tasks to its queue by itself, by name. Changed or removed with this definition, when a worker with it starts. */
  schedules?: Readonly<Record<string, ScheduleOptions<PayloadSchema<T>>>>;
  /** Takes a new config live; without it the slot finishes its task and starts again with the new one. */
  onConfig?(config: InferOutput<C>, ctx: ContextOf<C, O, St>): void | Promise<void>;
}

export interface BatchAutomation<
  T extends TasksOption = TasksOption,
  C extends Schema = Schema,
  O extends Schema | StreamContract = Schema,
  St extends Schema = Schema,
> {
  readonly kind: "batch";
  readonly name: string;
  /** Its queue contract: what others submit to. */
  readonly tasks: QueueContract<PayloadSchema<T>, ResultSchema<T>>;
  /** Its stream contract; undefined for an automation that emits nothing. */
  readonly output: OutputOf<O>;
  readonly options: Omit<BatchOptions<T, C, O, St>, "output" | "tasks">;
}

/** A definition as the worker sees it, whatever its types were. Has `runOne` or `runMany`. */
export type AnyBatch = {
  readonly kind: "batch";
  readonly name: string;
  readonly tasks: QueueContract;
  readonly output: StreamContract | undefined;
  readonly options: Omit<BatchOptions<Schema, Schema, Schema, Schema>, "output" | "tasks">;
};

type Options = AnyBatch["options"] & { output: StreamContract; tasks: QueueContract };

/**
 * Defines an automation that runs the tasks of a queue, one at a time per slot. Throws `FLEET_NAME_INVALID`, `FLEET_OPTION_INVALID`,
 * `FLEET_SCHEMA_INVALID`, or `FLEET_DEFINITION_INVALID` when a contract bears another name, or when not exactly one of `runOne` and
 * `runMany` is given.
 */
export function defineBatch<
  T extends TasksOption,
  C extends Schema = Schema,
  O extends Schema | StreamContract = Schema<never>,
  St extends Schema = Schema,
>(name: string, definition: BatchOptions<T, C, O, St>): BatchAutomation<T, C, O, St> {
  checkName("automation", name);
  const where = `automation "${name}"`;
  const { output, tasks, ...options } = checkOptions<Options>(where, definition, rules(name));
  if (tasks === undefined)
    throw new FleetError(
      "FLEET_OPTION_INVALID",
      `${where}: tasks is missing; give the schema of its tasks' payload, or a contract: tasks: defineQueue("${name}", …)`,
    );
  checkHandler(where, options);
  declaredSpecs(tasks, options.schedules);
  return seal({ kind: "batch", name, tasks, output, options }) as unknown as BatchAutomation<T, C, O, St>;
}

function checkHandler(where: string, { runOne, runMany, ...options }: Partial<Options>): void {
  if ((runOne === undefined) === (runMany === undefined))
    throw new FleetError(
      "FLEET_DEFINITION_INVALID",
      `${where}: give ${runOne === undefined ? "runOne(task, ctx), or runMany(tasks, ctx)" : "either runOne or runMany, not both"}`,
    );
  if (runMany !== undefined) return;
  const lone = (["size", "waitSeconds"] as const).find((key) => options[key] !== undefined);
  if (lone !== undefined)
    throw new FleetError(
      "FLEET_DEFINITION_INVALID",
      `${where}: ${lone} is for runMany; runOne runs one task at a time`,
    );
}

function rules(name: string): OptionRules<Required<Options>> {
  return {
    ...sharedRules(name),
    tasks: (value) => queueContract(name, value),
    runOne: (value, where) => fn(value, where) as NonNullable<Options["runOne"]>,
    runMany: (value, where) => fn(value, where) as NonNullable<Options["runMany"]>,
    onConfig: (value, where) => fn(value, where) as NonNullable<Options["onConfig"]>,
    size: integer({ min: 1, max: 1000 }),
    waitSeconds: number({ min: 0, max: 3600 }),
    stuckSeconds,
    schedules: (value, where) =>
      typeof value === "object" && value !== null && !Array.isArray(value)
        ? (value as NonNullable<Options["schedules"]>)
        : refuse(where, 'schedules by name, as { nightly: { cron: "0 3 * * *", payload: … } }', value),
  };
}

function queueContract(name: string, tasks: unknown): QueueContract {
  if (!isQueueContract(tasks)) return defineQueue(name, tasks as Schema);
  if (tasks.name === name) return tasks;
  throw new FleetError(
    "FLEET_DEFINITION_INVALID",
    `automation "${name}": its queue contract is named "${tasks.name}"; a batch automation runs exactly the queue of its own name: use defineQueue("${name}", …)`,
  );
}
