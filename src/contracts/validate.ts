import type { StandardSchemaV1 } from "@standard-schema/spec";
import { PayloadError, type PayloadIssue } from "../errors.ts";
import type { InferOutput, Schema } from "./schema/standard.ts";

export type Checked<T> = { ok: true; value: T } | { ok: false; issues: readonly PayloadIssue[] };

/** Runs a schema. Answers at once unless the schema itself is asynchronous. */
export function check<S extends Schema>(
  schema: S,
  value: unknown,
): Checked<InferOutput<S>> | Promise<Checked<InferOutput<S>>> {
  const result = schema["~standard"].validate(value);
  return result instanceof Promise ? result.then(settle<S>) : settle<S>(result);
}

function settle<S extends Schema>(result: StandardSchemaV1.Result<unknown>): Checked<InferOutput<S>> {
  if (result.issues === undefined) return { ok: true, value: result.value as InferOutput<S> };
  return {
    ok: false,
    issues: result.issues.map((issue) => ({ pointer: pointerOf(issue.path), message: issue.message })),
  };
}

function pointerOf(path: StandardSchemaV1.Issue["path"]): string {
  return (path ?? [])
    .map((segment) => (typeof segment === "object" ? segment.key : segment))
    .map((key) => `/${pointerPart(String(key))}`)
    .join("");
}

/** A key as it stands in a JSON Pointer. */
export function pointerPart(key: string): string {
  return key.includes("/") || key.includes("~") ? key.replaceAll("~", "~0").replaceAll("/", "~1") : key;
}

/** The `TypeError` for a payload that does not fit: names the field and what is wrong with it. */
export function payloadError(where: string, issues: readonly PayloadIssue[]): PayloadError {
  const shown = issues
    .slice(0, 3)
    .map(({ pointer, message }) => (pointer === "" ? message : `${fieldOf(pointer)}: ${message}`));
  const more = issues.length > 3 ? ` (and ${issues.length - 3} more)` : "";
  return new PayloadError("FLEET_PAYLOAD_INVALID", `${where}: ${shown.join("; ")}${more}`, { issues });
}

/** `/items/0/url` as people write it: `items.0.url`. */
function fieldOf(pointer: string): string {
  return pointer.slice(1).replaceAll("/", ".").replaceAll("~1", "/").replaceAll("~0", "~");
}
