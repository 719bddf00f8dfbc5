import {
  DIALECT,
  NotJson,
  standardJson,
  type JsonSchema,
  type Schema,
  type StandardJson,
} from "./standard.ts";

const ADAPTER = "@valibot/to-json-schema";
interface Adapter {
  toStandardJsonSchema(schema: Schema): { "~standard": { jsonSchema: StandardJson } };
}

/**
 * JSON Schema of a valibot schema's input. Valibot keeps the conversion in a package of its own: a schema that was
 * wrapped by it works everywhere; a bare one works in Node where that package is installed.
 */
export function valibotInput(schema: Schema): JsonSchema {
  const json = standardJson(schema) ?? load()?.toStandardJsonSchema(schema)["~standard"].jsonSchema;
  if (json === undefined) {
    throw new NotJson(
      `valibot schemas need the adapter ${ADAPTER}, which is not installed`,
      `npm install ${ADAPTER}, or hand over toStandardJsonSchema(schema) from it`,
    );
  }
  try {
    return json.input({ target: DIALECT, libraryOptions: { overrideAction: leaveOut } });
  } catch (error) {
    throw new NotJson(
      error instanceof Error ? error.message : String(error),
      "use v.pipe(v.string(), v.isoTimestamp()) and a transform for dates",
    );
  }
}

/** A check that JSON Schema cannot express (`v.check`, `v.trim`) stays out of it; the schema itself still runs it. */
function leaveOut({
  jsonSchema,
  errors,
}: {
  jsonSchema: JsonSchema;
  errors?: unknown;
}): JsonSchema | undefined {
  return errors === undefined ? undefined : jsonSchema;
}

/** Contracts import nothing of Node, so that they load in browsers; in Node the module loader is reached at run time. */
function load(): Adapter | undefined {
  const node = (globalThis as { process?: { cwd(): string; getBuiltinModule?: (id: string) => unknown } })
    .process;
  const module = node?.getBuiltinModule?.("node:module") as
    | { createRequire(from: string): (id: string) => unknown }
    | undefined;
  if (node === undefined || module === undefined) return undefined;
  for (const from of [`${node.cwd()}/_`, import.meta.url]) {
    try {
      return module.createRequire(from)(ADAPTER) as Adapter;
    } catch {
      // Not installed there; the caller names the package in its error.
    }
  }
  return undefined;
}
