import { checkName } from "./name.ts";
import { checkOptions, integer, notAvailable, number, oneOf, type OptionRules } from "./options.ts";
import { inputJsonSchema } from "./schema/json-schema.ts";
import type { JsonSchema, Schema } from "./schema/standard.ts";

export interface StreamOptions {
  /** Most entries kept; a push beyond it trims the oldest. 1 to 10 000 000, default 50 000. */
  maxLength?: number;
  /** Oldest age kept, in seconds. Above 0 to ten years, default 3600. */
  ttlSeconds?: number;
  /** Largest payload as JSON, in bytes. 1 to 16 MiB, default 262 144. */
  maxPayloadBytes?: number;
  /** What a push does when the stream is full. Only `"evict"` (trim the oldest) in this version. */
  whenFull?: "evict";
}

/** A typed reference to a stream: no I/O, no state. Two automations share it and need not know each other's code. */
export interface StreamContract<S extends Schema = Schema> {
  readonly kind: "stream";
  /** The stream's name, which is its producer's name. */
  readonly name: string;
  readonly schema: S;
  /** JSON Schema (2020-12) of the input form, which is what travels. */
  readonly jsonSchema: JsonSchema;
  readonly options: Required<StreamOptions>;
}

export const STREAM_DEFAULTS: Required<StreamOptions> = {
  maxLength: 50_000,
  ttlSeconds: 3600,
  maxPayloadBytes: 262_144,
  whenFull: "evict",
};

const RULES: OptionRules<Required<StreamOptions>> = {
  maxLength: integer({ min: 1, max: 10_000_000 }),
  ttlSeconds: number({ above: 0, max: 10 * 365 * 86_400 }),
  maxPayloadBytes: integer({ min: 1, max: 16 * 1024 * 1024 }),
  whenFull: (value, where) =>
    value === "wait" || value === "reject" ? notAvailable(value, where) : oneOf(["evict"])(value, where),
};

/**
 * Defines a stream. Throws `FLEET_NAME_INVALID`, `FLEET_SCHEMA_INVALID` (a schema whose input cannot travel as JSON) or
 * `FLEET_OPTION_INVALID`.
 */
export function defineStream<S extends Schema>(
  name: string,
  schema: S,
  options?: StreamOptions,
): StreamContract<S> {
  checkName("stream", name);
  const where = `stream "${name}"`;
  const jsonSchema = inputJsonSchema(where, schema);
  const checked = checkOptions<Required<StreamOptions>>(where, options, RULES);
  return Object.freeze({
    kind: "stream",
    name,
    schema,
    jsonSchema,
    options: Object.freeze({ ...STREAM_DEFAULTS, ...checked }),
  });
}

export function isStreamContract(value: unknown): value is StreamContract {
  return (
    typeof value === "object" &&
    value !== null &&
    (value as { kind?: unknown }).kind === "stream" &&
    "jsonSchema" in value
  );
}
