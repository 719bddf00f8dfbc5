import { checkName } from "./name.ts";
import { checkOptions, integer, number, refuse, type OptionRules } from "./options.ts";
import { type CheckedRateLimit, checkQueueRateLimit, type QueueRateLimit } from "./rate-limit.ts";
import { inputJsonSchema, isSchema } from "./schema/json-schema.ts";
import type { JsonSchema, Schema } from "./schema/standard.ts";

/** Pauses between the attempts of a task: `baseSeconds`, doubling, at most `capSeconds`, each varied by up to `jitter` of itself. */
export interface Backoff {
  /** Above 0 to 86 400, default 1. */
  baseSeconds?: number;
  /** Above 0 to 30 days, default 3600. */
  capSeconds?: number;
  /** 0 to 1, default 0.2. */
  jitter?: number;
}

export interface QueueOptions {
  /** Attempts that a task may fail before it goes to the dead letter. 1 to 1000, default 5. */
  maxAttempts?: number;
  /** Pauses between attempts. */
  backoff?: Backoff;
  /** Longest time that one attempt may run, in seconds: its signal aborts, then its process is ended. 0 for no limit, default 3600. */
  timeoutSeconds?: number;
  /** Longest time between a task's due time and its first start, in seconds; then it goes to the dead letter as `expired`. 0 (default): no limit. */
  ttlSeconds?: number;
  /** Most unfinished tasks that are not active; further ones are refused with `FLEET_QUEUE_FULL`. 0 (default): no limit. */
  maxLength?: number;
  /** Largest payload, and largest result, as JSON, in bytes. 1 to 16 MiB, default 262 144. */
  maxPayloadBytes?: number;
  /** Most tasks that run at once over all workers. 0 (default): no limit but the number of slots. */
  concurrency?: number;
  /** Most tasks of one `key` that run at once over all workers. 0: no limit, default 1. */
  keyConcurrency?: number;
  /** Tasks begin no faster than this rate limit grants permits, over all workers and with all others who use it. Default: as fast as they can. */
  rateLimit?: QueueRateLimit;
  /** A task whose process or worker was lost so often goes to the dead letter as `poison`. 1 to 100, default 3. */
  crashLimit?: number;
  /** How long completed and cancelled tasks are kept, with their results, in seconds: 60 to a year, default 3600; and at most how many: 1 to 10 000 000, default 10 000. */
  keepSeconds?: number;
  keepCount?: number;
  /** The same for the dead letter: default 30 days, and 100 000. */
  keepFailedSeconds?: number;
  keepFailedCount?: number;
}

/** A typed reference to a queue: no I/O, no state. Bears the name of the batch automation that runs its tasks. */
export interface QueueContract<P extends Schema = Schema, R extends Schema = Schema> {
  readonly kind: "queue";
  readonly name: string;
  readonly payload: P;
  /** Undefined where results are not checked. */
  readonly result: R | undefined;
  /** JSON Schema (2020-12) of the payload's input form, which is what travels. */
  readonly jsonSchema: JsonSchema;
  readonly resultJsonSchema: JsonSchema | null;
  readonly options: Required<Omit<QueueOptions, "backoff" | "rateLimit">> & {
    readonly backoff: Required<Backoff>;
    readonly rateLimit: CheckedRateLimit | null;
  };
}

const DAY = 86_400;

export const QUEUE_DEFAULTS: QueueContract["options"] = {
  maxAttempts: 5,
  backoff: { baseSeconds: 1, capSeconds: 3600, jitter: 0.2 },
  timeoutSeconds: 3600,
  ttlSeconds: 0,
  maxLength: 0,
  maxPayloadBytes: 262_144,
  concurrency: 0,
  keyConcurrency: 1,
  rateLimit: null,
  crashLimit: 3,
  keepSeconds: 3600,
  keepCount: 10_000,
  keepFailedSeconds: 30 * DAY,
  keepFailedCount: 100_000,
};

const BACKOFF: OptionRules<Required<Backoff>> = {
  baseSeconds: number({ above: 0, max: DAY }),
  capSeconds: number({ above: 0, max: 30 * DAY }),
  jitter: number({ min: 0, max: 1 }),
};

/** Rules that a queue's options share with those of a single submission. */
export const maxAttempts = integer({ min: 1, max: 1000 });
export const timeoutSeconds = number({ min: 0, max: 365 * DAY });
export const ttlSeconds = number({ min: 0, max: 10 * 365 * DAY });

const KEPT = { min: 1, max: 10_000_000 };
const RULES: OptionRules<Omit<QueueContract["options"], "rateLimit">> = {
  maxAttempts,
  backoff: (value, where) => ({
    ...QUEUE_DEFAULTS.backoff,
    ...checkOptions<Required<Backoff>>(where, value, BACKOFF),
  }),
  timeoutSeconds,
  ttlSeconds,
  maxLength: integer({ min: 0, max: 100_000_000 }),
  maxPayloadBytes: integer({ min: 1, max: 16 * 1024 * 1024 }),
  concurrency: integer({ min: 0, max: 1_000_000 }),
  keyConcurrency: integer({ min: 0, max: 1_000_000 }),
  crashLimit: integer({ min: 1, max: 100 }),
  // A repeat of a submission whose answer was lost finds the task by its id: it must not be forgotten at once.
  keepSeconds: number({ min: 60, max: 365 * DAY }),
  keepCount: integer(KEPT),
  keepFailedSeconds: number({ min: 60, max: 10 * 365 * DAY }),
  keepFailedCount: integer(KEPT),
};

export type QueueDefinition<P extends Schema, R extends Schema> = QueueOptions & {
  /** Schema of a task's payload. */
  payload: P;
  /** Schema of what the handler returns; default any JSON value. */
  result?: R;
};

/**
 * Defines a queue, by a payload schema alone or with more. Throws `FLEET_NAME_INVALID`, `FLEET_SCHEMA_INVALID` (a schema whose input cannot
 * travel as JSON) or `FLEET_OPTION_INVALID`.
 */
export function defineQueue<P extends Schema, R extends Schema = Schema>(
  name: string,
  definition: P | QueueDefinition<P, R>,
): QueueContract<P, R> {
  checkName("queue", name);
  const where = `queue "${name}"`;
  const given = isSchema(definition) ? { payload: definition } : definition;
  if (typeof given !== "object" || given === null)
    return refuse(where, "a Standard Schema, or an object with `payload`", given);
  const { payload, result, ...options } = given;
  if (payload === undefined) return refuse(`${where}: payload`, "a Standard Schema", payload);
  const checked = checkOptions<QueueContract["options"]>(where, options, {
    ...RULES,
    rateLimit: (limit, at) => checkQueueRateLimit(at, name, limit),
  });
  return Object.freeze({
    kind: "queue",
    name,
    payload,
    result,
    jsonSchema: inputJsonSchema(`${where}: payload`, payload),
    resultJsonSchema: result === undefined ? null : inputJsonSchema(`${where}: result`, result),
    options: Object.freeze({ ...QUEUE_DEFAULTS, ...checked }),
  });
}

export function isQueueContract(value: unknown): value is QueueContract {
  return (
    typeof value === "object" &&
    value !== null &&
    (value as { kind?: unknown }).kind === "queue" &&
    "jsonSchema" in value
  );
}
