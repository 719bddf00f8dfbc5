import { checkName } from "./name.ts";
import { checkOptions, integer, number, oneOf, refuse, type OptionRules } from "./options.ts";
import { checkTagsSchema, type Where } from "./pool-tags.ts";
import { isQueueContract, maxAttempts, timeoutSeconds, type QueueContract } from "./queue.ts";
import { inputJsonSchema } from "./schema/json-schema.ts";
import type { InferInput, InferOutput, JsonSchema, Schema } from "./schema/standard.ts";

export interface PoolOptions {
  /** Which free item is given out: `"lru"` (default) the one not used for longest, `"fifo"` the one put first, `"random"` any. */
  strategy?: "lru" | "fifo" | "random";
  /** An item is retired with its release once it was claimed so often. 0 (default): no limit. */
  maxUses?: number;
  /** An item is retired so long after it was put, in seconds. 0 (default): never. */
  maxAgeSeconds?: number;
  /** An item rests so long after each release, in seconds. 0 (default): not at all. */
  cooldownSeconds?: number;
  /** An item is retired when its score (reports of `"ok"` minus reports of `"bad"`) falls to this: below 0; null (default): never. */
  retireAtScore?: number | null;
  /** Largest payload as JSON, in bytes. 1 to 16 MiB, default 262 144. */
  maxPayloadBytes?: number;
  /** How long retired items are kept, in seconds: 60 to ten years, default 7 days; and at most how many: default 10 000. */
  keepRetiredSeconds?: number;
  keepRetiredCount?: number;
}

/** Keeps a pool filled: where there are fewer items than `below` that match what somebody claims, one task is submitted for each that is missing. */
export interface RefillOptions<Tags = unknown, P extends Schema = Schema, R extends Schema = Schema> {
  /** 1 to 1000. */
  below: number;
  /** The queue of whoever makes items. */
  submit: QueueContract<P, R>;
  /** Payload of such a task; `where` is what is claimed. */
  payload: (where: Where<Tags>) => InferInput<P>;
  /** Default: those of the queue. */
  maxAttempts?: number;
  timeoutSeconds?: number;
}

/** A typed reference to a pool: no I/O, no state. */
export interface PoolContract<P extends Schema = Schema, T extends Schema = Schema> {
  readonly kind: "pool";
  readonly name: string;
  readonly payload: P;
  /** Undefined where items bear no tags. */
  readonly tags: T | undefined;
  /** JSON Schema (2020-12) of the payload's input form, which is what travels. */
  readonly jsonSchema: JsonSchema;
  readonly tagsJsonSchema: JsonSchema | null;
  readonly options: Required<PoolOptions>;
  readonly refill: Readonly<PoolRefill> | undefined;
}

/** As it stands in a contract: its types are checked where it is defined. */
export interface PoolRefill {
  below: number;
  submit: QueueContract;
  payload: (where: never) => unknown;
  maxAttempts: number;
  timeoutSeconds: number;
}

export type PoolDefinition<
  P extends Schema,
  T extends Schema,
  QP extends Schema,
  QR extends Schema,
> = PoolOptions & {
  /** Schema of what an item holds. */
  payload: P;
  /** Schema of the tags by which items are found: an object of texts, numbers, booleans, or lists of those. Default: no tags. */
  tags?: T;
  refill?: RefillOptions<InferOutput<T>, QP, QR>;
};

const DAY = 86_400;

export const POOL_DEFAULTS: Required<PoolOptions> = {
  strategy: "lru",
  maxUses: 0,
  maxAgeSeconds: 0,
  cooldownSeconds: 0,
  retireAtScore: null,
  maxPayloadBytes: 262_144,
  keepRetiredSeconds: 7 * DAY,
  keepRetiredCount: 10_000,
};

const score = integer({ min: -1_000_000, max: -1 });
const RULES: OptionRules<Required<PoolOptions>> = {
  strategy: oneOf(["lru", "fifo", "random"]),
  maxUses: integer({ min: 0, max: 1_000_000_000 }),
  maxAgeSeconds: number({ min: 0, max: 10 * 365 * DAY }),
  cooldownSeconds: number({ min: 0, max: 365 * DAY }),
  retireAtScore: (value, where) => (value === null ? null : score(value, where)),
  maxPayloadBytes: integer({ min: 1, max: 16 * 1024 * 1024 }),
  keepRetiredSeconds: number({ min: 60, max: 10 * 365 * DAY }),
  keepRetiredCount: integer({ min: 0, max: 10_000_000 }),
};

const REFILL: OptionRules<Required<PoolRefill>> = {
  below: integer({ min: 1, max: 1000 }),
  submit: (value, where) =>
    isQueueContract(value)
      ? value
      : refuse(where, "a queue contract made by defineQueue, or a batch automation's `.tasks`", value),
  payload: (value, where) =>
    typeof value === "function"
      ? (value as PoolRefill["payload"])
      : refuse(where, "a function that makes a task's payload of what is claimed", value),
  maxAttempts,
  timeoutSeconds,
};

/**
 * Defines a pool. Throws `FLEET_NAME_INVALID`, `FLEET_SCHEMA_INVALID` (a payload that cannot travel as JSON, or tags that cannot be
 * matched) or `FLEET_OPTION_INVALID`.
 */
export function definePool<
  P extends Schema,
  T extends Schema = Schema<Record<string, never>>,
  QP extends Schema = Schema,
  QR extends Schema = Schema,
>(name: string, definition: PoolDefinition<P, T, QP, QR>): PoolContract<P, T> {
  checkName("pool", name);
  const where = `pool "${name}"`;
  if (typeof definition !== "object" || definition === null)
    return refuse(where, "an object with `payload`", definition);
  const { payload, tags, refill, ...options } = definition;
  if (payload === undefined) return refuse(`${where}: payload`, "a Standard Schema", payload);
  const tagsJsonSchema = tags === undefined ? null : inputJsonSchema(`${where}: tags`, tags);
  if (tagsJsonSchema !== null) checkTagsSchema(`${where}: tags`, tagsJsonSchema);
  return Object.freeze({
    kind: "pool",
    name,
    payload,
    tags,
    jsonSchema: inputJsonSchema(`${where}: payload`, payload),
    tagsJsonSchema,
    options: Object.freeze({
      ...POOL_DEFAULTS,
      ...checkOptions<Required<PoolOptions>>(where, options, RULES),
    }),
    refill: refill === undefined ? undefined : refillOf(`${where}: refill`, refill),
  });
}

function refillOf(where: string, given: unknown): Readonly<PoolRefill> {
  const checked = checkOptions<Required<PoolRefill>>(where, given, REFILL);
  const { below, submit, payload } = checked;
  if (below === undefined || submit === undefined || payload === undefined)
    return refuse(where, "an object with `below`, `submit` and `payload`", given);
  return Object.freeze({
    below,
    submit,
    payload,
    maxAttempts: checked.maxAttempts ?? submit.options.maxAttempts,
    timeoutSeconds: checked.timeoutSeconds ?? submit.options.timeoutSeconds,
  });
}

export function isPoolContract(value: unknown): value is PoolContract {
  return (
    typeof value === "object" &&
    value !== null &&
    (value as { kind?: unknown }).kind === "pool" &&
    "jsonSchema" in value
  );
}
