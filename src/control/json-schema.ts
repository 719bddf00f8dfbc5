// A schema that is known as JSON Schema only: payloads are checked against that, without any user code.
import { createRequire } from "node:module";
import type * as ajv2020 from "ajv/dist/2020.js";
import type { ErrorObject } from "ajv/dist/2020.js";
import type * as ajvFormats from "ajv-formats";
import type { JsonSchema, Schema } from "../contracts/schema/standard.ts";
import { pointerPart } from "../contracts/validate.ts";
import { FleetError, messageOf, type PayloadIssue } from "../errors.ts";

/** Validators by their schema's text: one costs far more to make than to use. */
const made = new Map<string, Schema>();
const MOST_MADE = 500;

/** A validator for JSON Schema (2020-12). A `uri` is what the platform's own `URL` takes. */
export function jsonSchemaValidator(where: string, schema: JsonSchema): Schema {
  const text = JSON.stringify(schema);
  const known = made.get(text);
  if (known !== undefined) return known;
  const validator = makeValidator(where, schema);
  if (made.size >= MOST_MADE) made.clear();
  made.set(text, validator);
  return validator;
}

const load = createRequire(import.meta.url);

/** Loaded at the first use: its ninety files would be a third of the start of each command, and most check nothing. */
function newAjv(): ajv2020.Ajv2020 {
  const { Ajv2020 } = load("ajv/dist/2020.js") as typeof ajv2020;
  const { default: addFormats } = load("ajv-formats") as typeof ajvFormats;
  const ajv = new Ajv2020({ strict: false, allErrors: true, verbose: true, logger: false });
  addFormats.default(ajv);
  ajv.addFormat("uri", (text) => URL.canParse(text));
  return ajv;
}

function makeValidator(where: string, schema: JsonSchema): Schema {
  const ajv = newAjv();
  try {
    const validate = ajv.compile({ ...patternFirst(schema), $schema: undefined });
    return asSchema((value) => {
      if (validate(value)) return [];
      const issues = (validate.errors ?? []).map(issueOf);
      // They hold the payload, and the validator is kept.
      validate.errors = null;
      return issues;
    });
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

export function asSchema(issuesOf: (value: unknown) => readonly PayloadIssue[]): Schema {
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
