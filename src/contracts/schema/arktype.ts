import { NotJson, type JsonSchema, type Schema } from "./standard.ts";

/** What arktype says of a part that JSON Schema cannot express. */
interface Gap {
  code: string;
  /** The schema of the part without what cannot be expressed. */
  base: Record<string, unknown>;
  /** The basic kind of value, for code `"domain"`. */
  domain?: string;
}
interface ArkType {
  in: { toJsonSchema(options: { fallback: Record<string, (gap: Gap) => unknown> }): Record<string, unknown> };
}

/**
 * JSON Schema of an arktype's input. Its own `~standard.jsonSchema` turns what JSON lacks into `{}` silently; here it is
 * refused. A check that only JSON Schema cannot express ("string.url", a `narrow`) stays out of it: the value travels all the
 * same, and the schema itself still checks it.
 */
export function arktypeInput(schema: Schema): JsonSchema {
  return (schema as unknown as ArkType).in.toJsonSchema({
    fallback: { predicate: ({ base }) => base, default: refuse },
  });
}

function refuse({ code, domain }: Gap): never {
  throw new NotJson(
    `"${domain ?? code}" has no JSON form`,
    'use "string.date.iso.parse" for dates, "string.integer.parse" or a text for big integers',
  );
}
