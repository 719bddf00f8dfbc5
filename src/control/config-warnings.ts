// What is not wrong with a config, but looks like a slip of the pen.
import type { JsonSchema } from "../contracts/schema/standard.ts";
import { canonicalJson } from "../internal/canonical.ts";
import { nearest } from "../internal/suggest.ts";
import { bears, effectiveConfig } from "../protocol/config.ts";
import type { DesiredAutomation } from "../protocol/spec.ts";
import { workerState } from "../protocol/status.ts";
import type { FleetView } from "../store/store.ts";
import type { Runner } from "./config-check.ts";

type Labels = Readonly<Record<string, string>>;

/** Of a change for `seenBy`: its labels where it is an override. */
export function configWarnings(
  desired: DesiredAutomation,
  seenBy: { labels?: Labels; slotId?: number },
  { view, runners }: { view: Pick<FleetView, "workers" | "now">; runners: readonly Runner[] },
): string[] {
  const config = effectiveConfig(desired, { labels: {}, ...seenBy });
  const schemas = runners.map(({ manifest }) => manifest.configSchema);
  return [...borneByNobody(desired, seenBy.labels, view), ...unknownFields(config, schemas)];
}

/** An override for labels that no live worker bears may also be there before its workers. */
function borneByNobody(
  { overrides = [] }: DesiredAutomation,
  labels: Labels | undefined,
  { workers, now }: Pick<FleetView, "workers" | "now">,
): string[] {
  if (labels === undefined) return [];
  const text = canonicalJson(labels);
  if (!overrides.some((one) => canonicalJson(one.labels) === text)) return [];
  if (workers.some((worker) => workerState(worker, now) !== "offline" && bears(worker.labels, labels)))
    return [];
  const named = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  return [`no live worker bears ${named.join(",")}, so nobody gets this override until one does`];
}

/** Fields that no version of the schema knows, and that each drops without a word. */
export function unknownFields(config: unknown, schemas: readonly (JsonSchema | null)[]): string[] {
  if (typeof config !== "object" || config === null || Array.isArray(config)) return [];
  const known = new Set<string>();
  for (const schema of schemas) {
    const fields = fieldsOf(schema);
    if (fields === undefined) return [];
    for (const field of fields) known.add(field);
  }
  if (schemas.length === 0) return [];
  return Object.keys(config)
    .filter((field) => !known.has(field))
    .map((field) => {
      const meant = nearest(field, known);
      const question = meant === undefined ? "" : ` (did you mean ${JSON.stringify(meant)}?)`;
      return `the config has no field ${JSON.stringify(field)}${question}, so it has no effect`;
    });
}

/** Undefined where a schema takes other fields too, or says in another way what it takes. */
function fieldsOf(schema: JsonSchema | null): string[] | undefined {
  if (schema === null || schema["type"] !== "object") return undefined;
  const { properties, additionalProperties, patternProperties } = schema as Record<string, unknown>;
  const open = additionalProperties !== undefined || patternProperties !== undefined;
  const more = ["allOf", "anyOf", "oneOf", "$ref", "if"].some((word) => schema[word] !== undefined);
  if (open || more || typeof properties !== "object" || properties === null) return undefined;
  return Object.keys(properties);
}
