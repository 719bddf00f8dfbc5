import { MAX_EVENT_BYTES } from "../protocol/event.ts";
import { checkTopic } from "./name.ts";
import { checkOptions, integer, type OptionRules } from "./options.ts";
import { inputJsonSchema } from "./schema/json-schema.ts";
import type { JsonSchema, Schema } from "./schema/standard.ts";

export interface TopicOptions {
  /** Largest payload as JSON, in bytes: 1 to 65 536, which is the default. */
  maxBytes?: number;
}

/** A typed reference to a topic of the event bus: no I/O, no state. */
export interface TopicContract<S extends Schema = Schema> {
  readonly kind: "topic";
  readonly name: string;
  readonly schema: S;
  /** JSON Schema (2020-12) of the input form, which is what travels. */
  readonly jsonSchema: JsonSchema;
  readonly options: Required<TopicOptions>;
}

const RULES: OptionRules<Required<TopicOptions>> = {
  maxBytes: integer({ min: 1, max: MAX_EVENT_BYTES }),
};

/**
 * Defines a topic. Throws `FLEET_NAME_INVALID` (also for names under `fleet.`, which are the framework's), `FLEET_SCHEMA_INVALID` (a
 * schema whose input cannot travel as JSON) or `FLEET_OPTION_INVALID`.
 */
export function defineTopic<S extends Schema>(
  name: string,
  schema: S,
  options?: TopicOptions,
): TopicContract<S> {
  checkTopic(name);
  const where = `topic "${name}"`;
  const jsonSchema = inputJsonSchema(where, schema);
  return topicContract(name, schema, jsonSchema, checkOptions(where, options, RULES));
}

/** Puts a contract together of what has been checked; also for the framework's own topics. */
export function topicContract<S extends Schema>(
  name: string,
  schema: S,
  jsonSchema: JsonSchema,
  options: TopicOptions,
): TopicContract<S> {
  return Object.freeze({
    kind: "topic",
    name,
    schema,
    jsonSchema,
    options: Object.freeze({ maxBytes: MAX_EVENT_BYTES, ...options }),
  });
}

export function isTopicContract(value: unknown): value is TopicContract {
  return (
    typeof value === "object" &&
    value !== null &&
    (value as { kind?: unknown }).kind === "topic" &&
    "jsonSchema" in value
  );
}
