import { FleetError } from "../../errors.ts";
import { arktypeInput } from "./arktype.ts";
import { DIALECT, NotJson, standardJson, type JsonSchema, type Schema } from "./standard.ts";
import { valibotInput } from "./valibot.ts";
import { zodInput } from "./zod.ts";

const ADAPTERS: Record<string, (schema: Schema) => JsonSchema> = {
  zod: zodInput,
  arktype: arktypeInput,
  valibot: valibotInput,
};

/** True when `value` implements Standard Schema v1. */
export function isSchema(value: unknown): value is Schema {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  const standard = (value as { "~standard"?: { validate?: unknown } })["~standard"];
  return typeof standard === "object" && standard !== null && typeof standard.validate === "function";
}

/**
 * JSON Schema (2020-12) of what `schema` takes in. Throws `FLEET_SCHEMA_INVALID`, naming `where` and the remedy, for
 * anything that is no Standard Schema, or whose input cannot travel as JSON (a bare `Date`, `bigint`, `Map`, …).
 */
export function inputJsonSchema(where: string, schema: unknown): JsonSchema {
  if (!isSchema(schema)) {
    throw new FleetError(
      "FLEET_SCHEMA_INVALID",
      `${where}: expected a Standard Schema, for example z.object({ … }) of zod 4`,
    );
  }
  const { vendor } = schema["~standard"];
  try {
    const adapter = ADAPTERS[vendor];
    if (adapter !== undefined) return adapter(schema);
    const json = standardJson(schema);
    if (json !== undefined) return json.input({ target: DIALECT });
    throw new NotJson(
      `no adapter for "${vendor}" schemas, and they bring no "~standard.jsonSchema" of their own`,
      "use zod 4, arktype or valibot",
    );
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const hint = error instanceof NotJson && error.hint !== undefined ? `; ${error.hint}` : "";
    throw new FleetError(
      "FLEET_SCHEMA_INVALID",
      `${where}: this schema's input cannot travel as JSON: ${message}${hint}`,
      { cause: error },
    );
  }
}
