import { canonicalJson } from "../internal/canonical.ts";
import { boundsFit } from "./schema-fit-bounds.ts";
import { ANNOTATIONS, isNever, isTrivial, list, type Node, record, resolve } from "./schema-node.ts";

type Answer = "yes" | "no" | "unknown";

/** What a plain value can be asked about without looking into texts. */
const UNDERSTOOD = new Set([
  "type",
  "const",
  "enum",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "minLength",
  "maxLength",
]);

/** Whether one value is valid by a schema, as far as that can be told from its structure. Pure. */
export function valueFits(value: unknown, schema: Node, root: Node, depth = 0): Answer {
  const node = resolve(schema, root);
  if (node === undefined || depth > 32) return "unknown";
  if (isTrivial(node)) return "yes";
  if (isNever(node)) return "no";
  const t = record(node);
  const within = (part: unknown) => valueFits(value, part as Node, root, depth + 1);
  const answers: Answer[] = [];
  if (t["type"] !== undefined) answers.push(hasType(value, t["type"]) ? "yes" : "no");
  const allowed = "const" in t ? [t["const"]] : list(t["enum"]);
  if (allowed !== undefined)
    answers.push(allowed.some((one) => canonicalJson(one) === canonicalJson(value)) ? "yes" : "no");
  answers.push(...(list(t["allOf"]) ?? []).map(within));
  for (const key of ["anyOf", "oneOf"]) {
    const union = list(t[key])?.map(within);
    if (union === undefined) continue;
    const yes = union.filter((answer) => answer === "yes").length;
    const maybe = union.filter((answer) => answer === "unknown").length;
    if (yes + maybe === 0) answers.push("no");
    else answers.push(yes === 0 || (key === "oneOf" && yes + maybe > 1) ? "unknown" : "yes");
  }
  if (answers.includes("no") || outOfBounds(value, t)) return "no";
  const rest = Object.keys(t).filter(
    (key) => !UNDERSTOOD.has(key) && !ANNOTATIONS.has(key) && !["allOf", "anyOf", "oneOf"].includes(key),
  );
  return answers.includes("unknown") || rest.length > 0 ? "unknown" : "yes";
}

function hasType(value: unknown, type: unknown): boolean {
  const types = list(type) ?? [type];
  if (value === null) return types.includes("null");
  if (Array.isArray(value)) return types.includes("array");
  if (typeof value === "number")
    return types.includes("number") || (types.includes("integer") && Number.isInteger(value));
  return types.includes(typeof value);
}

function outOfBounds(value: unknown, t: Record<string, unknown>): boolean {
  const exactly =
    typeof value === "number"
      ? { type: "number", minimum: value, maximum: value }
      : typeof value === "string"
        ? { type: "string", minLength: Array.from(value).length, maxLength: Array.from(value).length }
        : undefined;
  return exactly !== undefined && boundsFit(exactly.type, exactly, t, "").outcome === "broken";
}
