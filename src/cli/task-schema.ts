// The contract of a queue as its workers have published it: payloads are checked against that, without any user code.
import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { QUEUE_DEFAULTS, type QueueContract } from "../contracts/queue.ts";
import type { JsonSchema, Schema } from "../contracts/schema/standard.ts";
import { pointerPart } from "../contracts/validate.ts";
import { FleetError, messageOf, type PayloadIssue } from "../errors.ts";
import type { Manifest } from "../protocol/manifest.ts";
import { workerState, type WorkerRecord } from "../protocol/status.ts";

export type PublishedTasks = NonNullable<Manifest["tasks"]>;

/** What workers have published of a queue: where they differ, live ones count before others, then those that started last. */
export function publishedTasks(
  queue: string,
  manifests: Readonly<Record<string, readonly Manifest[]>>,
  { workers, now }: { workers: readonly WorkerRecord[]; now: number },
): PublishedTasks | undefined {
  const live = (worker: WorkerRecord) => (workerState(worker, now) === "offline" ? 0 : 1);
  const found = workers
    .toSorted((a, b) => live(b) - live(a) || b.startedAt - a.startedAt)
    .flatMap(({ id }) => manifests[id] ?? [])
    .map(({ tasks }) => tasks)
    .find((tasks) => tasks?.queue === queue);
  return found ?? undefined;
}

/** A contract by which tasks can be submitted; results are not checked. */
export function publishedContract({ queue, schema, resultSchema, options }: PublishedTasks): QueueContract {
  return {
    kind: "queue",
    name: queue,
    payload: jsonSchemaValidator(`queue "${queue}"`, schema),
    result: undefined,
    jsonSchema: schema,
    resultJsonSchema: resultSchema,
    options,
  };
}

/** A contract that takes any payload, for a queue of which nothing is known but that it is there. */
export function uncheckedContract(
  queue: string,
  options: QueueContract["options"] = QUEUE_DEFAULTS,
): QueueContract {
  const payload = asSchema(() => []);
  return {
    kind: "queue",
    name: queue,
    payload,
    result: undefined,
    jsonSchema: {},
    resultJsonSchema: null,
    options,
  };
}

/** A validator for JSON Schema (2020-12). A `uri` is what the platform's own `URL` takes. */
export function jsonSchemaValidator(where: string, schema: JsonSchema): Schema {
  const ajv = new Ajv2020({ strict: false, allErrors: true, verbose: true, logger: false });
  formats.default(ajv);
  ajv.addFormat("uri", (text) => URL.canParse(text));
  try {
    const validate = ajv.compile({ ...patternFirst(schema), $schema: undefined });
    return asSchema((value) => (validate(value) ? [] : (validate.errors ?? []).map(issueOf)));
  } catch (error) {
    throw new FleetError(
      "FLEET_SCHEMA_INVALID",
      `${where}: the published JSON Schema cannot be used (${messageOf(error)})`,
      { cause: error },
    );
  }
}

/** A format that stands aside, so that the pattern beside it alone decides. */
const ASIDE = "x-format";
/** Where a schema holds values, not schemas. */
const VALUES = new Set(["const", "enum", "default", "examples"]);

/**
 * Where a validator has written a pattern beside a format, the pattern is what it goes by: zod's `iso.datetime({ local: true })` has the
 * format `date-time` and takes texts without a time zone, which JSON Schema's own `date-time` must have.
 */
function patternFirst(schema: JsonSchema): JsonSchema {
  const entries = Object.entries(schema).map(([key, value]) => [
    key,
    VALUES.has(key) ? value : inside(value),
  ]);
  const { format, ...rest } = Object.fromEntries(entries) as Record<string, unknown>;
  if (typeof format !== "string" || typeof rest["pattern"] !== "string")
    return { ...rest, ...(format === undefined ? {} : { format }) };
  return { ...rest, [ASIDE]: format };
}

function inside(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inside);
  return typeof value === "object" && value !== null ? patternFirst(value as JsonSchema) : value;
}

function asSchema(issuesOf: (value: unknown) => readonly PayloadIssue[]): Schema {
  const validate = (value: unknown) => {
    const issues = issuesOf(value);
    if (issues.length === 0) return { value };
    return { issues: issues.map(({ pointer, message }) => ({ path: pathOf(pointer), message })) };
  };
  return { "~standard": { version: 1, vendor: "fleet", validate } };
}

function issueOf({
  instancePath,
  keyword,
  params,
  parentSchema,
  message = "does not fit",
}: ErrorObject): PayloadIssue {
  const at = (field: unknown) => `${instancePath}/${pointerPart(String(field))}`;
  switch (keyword) {
    case "required":
      return { pointer: at(params["missingProperty"]), message: "is missing" };
    case "additionalProperties":
      return { pointer: at(params["additionalProperty"]), message: "is not known" };
    case "enum":
      return { pointer: instancePath, message: `must be one of ${JSON.stringify(params["allowedValues"])}` };
    case "pattern":
      return { pointer: instancePath, message: formatMessage(parentSchema?.[ASIDE]) ?? message };
    default:
      return { pointer: instancePath, message };
  }
}

function formatMessage(format: unknown): string | undefined {
  return typeof format === "string" ? `must match format "${format}"` : undefined;
}

function pathOf(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}
