import { FleetError } from "../errors.ts";
import { nearest } from "../internal/suggest.ts";
import { describe, refuse } from "./options.ts";
import type { JsonSchema } from "./schema/standard.ts";

export type TagValue = string | number | boolean;

type One<V> = V extends readonly (infer E)[] ? E : V;
/** Which items: for each tag named, one of these values. A tag that is not named means any. */
export type Where<Tags> = {
  readonly [K in keyof Tags]?: One<NonNullable<Tags[K]>> | readonly One<NonNullable<Tags[K]>>[];
};

/** Most values over all tags of one item. */
const MAX_VALUES = 64;
const MAX_LENGTH = 256;

/** Refuses a schema of tags whose values could not be matched; `json` is its JSON Schema. */
export function checkTagsSchema(where: string, json: JsonSchema): void {
  const { properties = {}, additionalProperties } = json as {
    properties?: Record<string, unknown>;
    additionalProperties?: unknown;
  };
  if (json["type"] !== "object")
    return badSchema(where, "it must be an object of tags, for example z.object({ site: z.string() })");
  for (const [tag, schema] of Object.entries(properties)) {
    if (!isMatchable(schema))
      badSchema(where, `tag "${tag}" must be a text, a number, a boolean, or a list of those`);
  }
  if (typeof additionalProperties === "object" && !isMatchable(additionalProperties))
    badSchema(where, "its values must be texts, numbers, booleans, or lists of those");
}

function badSchema(where: string, why: string): never {
  throw new FleetError("FLEET_SCHEMA_INVALID", `${where}: this schema's values cannot be matched: ${why}`);
}

const SCALARS = new Set(["string", "number", "integer", "boolean"]);

function isMatchable(schema: unknown, inList = false): boolean {
  if (typeof schema !== "object" || schema === null) return false;
  const { type, anyOf, oneOf, items, const: only } = schema as Record<string, unknown>;
  const values = (schema as { enum?: unknown }).enum;
  const choices = anyOf ?? oneOf;
  if (Array.isArray(choices)) return choices.every((one) => isMatchable(one, inList));
  if (Array.isArray(values)) return values.every(isTagValue);
  if (only !== undefined) return isTagValue(only);
  if (Array.isArray(type)) return type.every((one) => SCALARS.has(String(one)));
  if (type === "array") return !inList && isMatchable(items, true);
  return SCALARS.has(String(type));
}

function isTagValue(value: unknown): value is TagValue {
  return (
    typeof value === "string" ||
    typeof value === "boolean" ||
    (typeof value === "number" && Number.isFinite(value))
  );
}

/** Names that a `where` may use; undefined where the schema leaves that open. */
export function tagNames(json: JsonSchema | null): readonly string[] | undefined {
  if (json === null) return [];
  const { properties = {}, additionalProperties } = json as {
    properties?: object;
    additionalProperties?: unknown;
  };
  const open = additionalProperties === true || typeof additionalProperties === "object";
  return open ? undefined : Object.keys(properties);
}

/** Tags as they are matched: name → values as text, both sorted. A tag without a value is as if it were not there. */
export function tagTexts(where: string, tags: object): Record<string, string[]> {
  const texts: [string, string[]][] = [];
  let count = 0;
  for (const [tag, given] of Object.entries(tags)) {
    if (given === undefined) continue;
    const values = valuesOf(`${where}: tag "${tag}"`, given);
    count += values.length;
    if (values.length > 0) texts.push([tag, values]);
  }
  if (count > MAX_VALUES)
    throw new FleetError(
      "FLEET_OPTION_INVALID",
      `${where}: at most ${MAX_VALUES} values over all tags, got ${count}`,
    );
  return Object.fromEntries(texts.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function valuesOf(where: string, given: unknown): string[] {
  const list: readonly unknown[] = Array.isArray(given) ? given : [given];
  const texts = list.map((value) => {
    if (!isTagValue(value)) return refuse(where, "a text, a number, a boolean, or a list of those", value);
    const text = String(value);
    return text.length <= MAX_LENGTH ? text : refuse(where, `at most ${MAX_LENGTH} characters long`, value);
  });
  return [...new Set(texts)].toSorted();
}

/** Checks a `where`: tags that the schema does not know, or an empty list, would match nothing without a word. */
export function whereTexts(
  where: string,
  given: unknown,
  names: readonly string[] | undefined,
): Record<string, string[]> {
  if (given === undefined) return {};
  if (typeof given !== "object" || given === null || Array.isArray(given))
    return refuse(where, 'an object of tags, for example { site: "a" }', given);
  for (const [tag, value] of Object.entries(given)) {
    if (value === undefined) continue;
    if (names !== undefined && !names.includes(tag)) {
      const near = nearest(tag, names);
      const known = names.length === 0 ? "this pool has no tags" : `known: ${names.join(", ")}`;
      throw new FleetError(
        "FLEET_OPTION_INVALID",
        `${where}: unknown tag "${tag}"; ${near === undefined ? known : `did you mean "${near}"?`}`,
      );
    }
    if (Array.isArray(value) && value.length === 0)
      throw new FleetError(
        "FLEET_OPTION_INVALID",
        `${where}: tag "${tag}" is ${describe(value)}, which matches nothing; leave it out to mean any`,
      );
  }
  return tagTexts(where, given);
}
