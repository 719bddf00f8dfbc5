import { Ajv2020 } from "ajv/dist/2020.js";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { inputJsonSchema } from "../contracts/schema/json-schema.ts";
import type { JsonSchema } from "../contracts/schema/standard.ts";
import { schemaFit } from "./schema-fit.ts";

const json = (schema: z.ZodType) => inputJsonSchema("test", schema);
const fit = (given: z.ZodType, taken: z.ZodType) => schemaFit(json(given), json(taken));

interface Tree {
  name: string;
  kids: Tree[];
}
const Tree: z.ZodType<Tree> = z.object({ name: z.string(), kids: z.array(z.lazy(() => Tree)) });
const NumberTree: z.ZodType = z.object({ name: z.number(), kids: z.array(z.lazy(() => NumberTree)) });

const Ping = z.object({ url: z.url(), ok: z.boolean(), ts: z.number() });

describe("takes all that is given", () => {
  it.each<[string, z.ZodType, z.ZodType]>([
    ["the same", Ping, Ping],
    ["fewer fields", Ping, Ping.pick({ url: true })],
    ["a further field that has a default", Ping, Ping.extend({ region: z.string().default("eu") })],
    ["a further field that may be left out", Ping, Ping.extend({ region: z.string().optional() })],
    ["whole numbers where any number is taken", z.int(), z.number()],
    ["a narrower range", z.int().min(1).max(5), z.number().min(0)],
    ["above 0, where whole numbers from 1 are taken", z.int().gt(0), z.int().min(1)],
    ["fewer values", z.enum(["a", "b"]), z.enum(["a", "b", "c"])],
    ["fewer values, where texts are taken", z.enum(["a", "b"]), z.string().max(1)],
    ["one of several types", z.string(), z.union([z.number(), z.string()])],
    ["a text that is never null, where null is taken too", z.string(), z.string().nullable()],
    ["an address, where any text is taken", z.url(), z.string()],
    ["one kind of several", kinds("a"), kinds("a", "b")],
    ["a longer list, where any is taken", z.array(z.int()).min(2), z.array(z.number())],
    ["a tuple, where a list is taken", z.tuple([z.string(), z.enum(["a"])]), z.array(z.string())],
    ["a record of whole numbers", z.record(z.string(), z.int()), z.record(z.string(), z.number())],
    ["fields, where a record is taken", z.object({ a: z.int() }), z.record(z.string(), z.number())],
    ["what refers to itself", Tree, Tree],
    ["anything at all, where anything is taken", z.any(), z.any()],
    ["nested objects", z.object({ a: z.object({ b: Ping }) }), z.object({ a: z.object({ b: Ping }) })],
  ])("%s", (_, given, taken) => {
    expect(fit(given, taken)).toEqual({ outcome: "ok" });
  });
});

describe("is broken, and says where", () => {
  it.each<[string, z.ZodType, z.ZodType, pointer: string, words: string]>([
    [
      "a field that is missing",
      Ping.omit({ ts: true }),
      Ping,
      "/ts",
      "is not among what is given, but is required",
    ],
    [
      "a field that may be missing",
      Ping.partial({ ts: true }),
      Ping,
      "/ts",
      "may be left out, but is required",
    ],
    [
      "another type",
      z.object({ n: z.string() }),
      z.object({ n: z.number() }),
      "/n",
      "is given as a text, but taken as a number",
    ],
    [
      "any number, where whole ones are taken",
      z.number(),
      z.int(),
      "",
      "is given as a number, but taken as a whole number",
    ],
    ["a wider range", z.number().min(-1), z.number().min(0), "", "may be below 0, which is not taken"],
    ["no upper bound", z.int(), z.int().max(5), "", "may be above 5, which is not taken"],
    ["a longer text", z.string().max(9), z.string().max(5), "", "may be longer than 5, which is not taken"],
    ["one more value", z.enum(["a", "x"]), z.enum(["a", "b"]), "", 'may be given as "x", which is not taken'],
    [
      "any text for a few",
      z.string(),
      z.enum(["a", "b"]),
      "",
      'is given as any text, but taken only as "a", "b"',
    ],
    [
      "null",
      z.object({ a: z.string().nullable() }),
      z.object({ a: z.string() }),
      "/a",
      "is given as null, but taken as a text",
    ],
    ["any text for an address", z.string(), z.url(), "", 'taken only in format "uri"'],
    ["one more kind", kinds("a", "c"), kinds("a", "b"), "", "is given as none of what is taken"],
    [
      "deep inside, in a list",
      z.object({ a: z.array(z.object({ "b/c": z.string() })) }),
      z.object({ a: z.array(z.object({ "b/c": z.int() })) }),
      "/a/*/b~1c",
      "is given as a text, but taken as a whole number",
    ],
    [
      "a place of a tuple",
      z.tuple([z.string(), z.string()]),
      z.tuple([z.string(), z.number()]),
      "/1",
      "is given as a text",
    ],
    [
      "a field that a strict one does not know",
      z.object({ a: z.string(), b: z.string() }),
      z.strictObject({ a: z.string() }),
      "/b",
      "nothing is taken there",
    ],
    [
      "in the only alternative that is not null",
      z.object({ n: z.string() }),
      z.object({ n: z.number() }).nullable(),
      "/n",
      "is given as a text",
    ],
    ["what refers to itself", Tree, NumberTree, "/name", "is given as a text"],
    [
      "a record that may lack a field",
      z.record(z.string(), z.string()),
      z.object({ a: z.string() }),
      "/a",
      "is not among what is given",
    ],
  ])("%s", (_, given, taken, pointer, words) => {
    const found = fit(given, taken);
    expect(found).toMatchObject({ outcome: "broken", pointer });
    expect(found).toHaveProperty("words", expect.stringContaining(words));
  });
});

describe("cannot be told", () => {
  it.each<[string, z.ZodType, z.ZodType]>([
    ["anything at all, where something is taken", z.any(), z.string()],
    ["another pattern", z.string().regex(/^a+$/), z.string().regex(/^a*$/)],
    ["another format", z.email(), z.url()],
    ["a number of no known step", z.number(), z.number().multipleOf(3)],
    [
      "objects that could be one of several",
      z.object({ a: z.string() }),
      z.union([z.object({ a: z.string().max(2) }), z.object({ a: z.string().min(1) })]),
    ],
  ])("%s", (_, given, taken) => {
    expect(fit(given, taken)).toMatchObject({ outcome: "unknown" });
  });

  it("what has words that are not understood, or references that lead nowhere", () => {
    expect(schemaFit({ type: "array" }, { type: "array", uniqueItems: true })).toMatchObject({
      outcome: "unknown",
    });
    expect(schemaFit({ type: "string" }, { $ref: "#/$defs/gone" })).toMatchObject({ outcome: "unknown" });
    // What it says beyond may rule out what would not fit.
    expect(schemaFit({ type: "number", not: { const: -1 } }, { type: "number", minimum: 0 })).toMatchObject({
      outcome: "unknown",
    });
  });

  it("ends also where schemas refer to themselves in many ways", () => {
    const knot = (type: string) => ({
      $ref: "#/$defs/a",
      $defs: {
        a: { anyOf: [{ type }, { type: "array", items: { $ref: "#/$defs/b" } }, { $ref: "#/$defs/b" }] },
        b: {
          anyOf: [{ type: "array", items: { $ref: "#/$defs/a" } }, { $ref: "#/$defs/a" }, { type: "null" }],
        },
      },
    });
    expect(["unknown", "ok"]).toContain(schemaFit(knot("string"), knot("string")).outcome);
    expect(["unknown", "broken"]).toContain(schemaFit(knot("string"), knot("number")).outcome);
  });
});

function kinds(...names: [string, ...string[]]) {
  const [first, ...rest] = names.map((kind) => z.object({ kind: z.literal(kind), n: z.number() }));
  return z.discriminatedUnion("kind", [first as z.ZodObject<{ kind: z.ZodLiteral<string> }>, ...rest]);
}

// All values that matter for the schemas below: whatever one of them tells from another is told here.
const PLAIN: unknown[] = [-0.5, null, true, false, -1, 0, 0.5, 1, 1.5, 2, 3, "", "a", "aa", "aaa"];
const VALUES: unknown[] = [
  ...PLAIN,
  [],
  ...PLAIN.map((one) => [one]),
  ...PLAIN.flatMap((one) => PLAIN.map((other) => [one, other])),
  ...[undefined, ...PLAIN].flatMap((a) =>
    [undefined, ...PLAIN].map((b) => ({
      ...(a === undefined ? {} : { a }),
      ...(b === undefined ? {} : { b }),
    })),
  ),
];

const range = (low: string, high: string) =>
  fc
    .record({ low: fc.option(fc.nat({ max: 1 })), high: fc.option(fc.integer({ min: 1, max: 2 })) })
    .map(({ low: least, high: most }) => ({
      ...(least === null ? {} : { [low]: least }),
      ...(most === null ? {} : { [high]: most }),
    }));
const leaf: fc.Arbitrary<JsonSchema> = fc.oneof(
  range("minimum", "maximum").map((bounds) => ({ type: "number", ...bounds })),
  range("minimum", "maximum").map((bounds) => ({ type: "integer", ...bounds })),
  range("exclusiveMaximum", "minimum").map(({ minimum = 0 }) => ({
    type: "number",
    exclusiveMinimum: minimum - 1,
  })),
  range("minLength", "maxLength").map((bounds) => ({ type: "string", ...bounds })),
  fc.constantFrom<JsonSchema>({ type: "boolean" }, { type: "null" }, { type: ["string", "null"] }),
  fc.subarray(PLAIN, { minLength: 1, maxLength: 3 }).map((values) => ({ enum: values })),
);
const union = (part: fc.Arbitrary<JsonSchema>) =>
  fc.tuple(fc.constantFrom("anyOf", "oneOf"), part, part).map(([key, a, b]) => ({ [key]: [a, b] }));
const small = fc.oneof({ weight: 4, arbitrary: leaf }, { weight: 1, arbitrary: union(leaf) });
const object = fc
  .record({
    a: small,
    b: fc.option(small),
    required: fc.subarray(["a", "b"]),
    strict: fc.boolean(),
  })
  .map(({ a, b, required, strict }): JsonSchema => ({
    type: "object",
    properties: { a, ...(b === null ? {} : { b }) },
    required: b === null ? required.filter((name) => name !== "b") : required,
    ...(strict ? { additionalProperties: false } : {}),
  }));
const array = fc.tuple(small, fc.subarray(["minItems", "maxItems"])).map(([items, bounds]): JsonSchema => ({
  type: "array",
  items,
  ...Object.fromEntries(bounds.map((key) => [key, 1])),
}));
const part = fc.oneof(leaf, object, array);
const schema = fc.oneof({ weight: 3, arbitrary: part }, { weight: 2, arbitrary: union(part) });

/** The same, asking for less. */
function relaxed(schema: JsonSchema): JsonSchema {
  const node = Object.fromEntries(
    Object.entries(schema).filter(([key]) => !["minimum", "maxItems", "maxLength"].includes(key)),
  );
  if (node["type"] === "object") return { ...node, required: [] };
  return node["type"] === "integer" ? { ...node, type: "number" } : node;
}
const pair = fc.oneof(
  fc.tuple(schema, schema),
  part.map((given) => [given, relaxed(given)] as const),
  part.map((given) => [relaxed(given), given] as const),
  fc.tuple(part, leaf).map(([given, other]) => [given, { anyOf: [other, relaxed(given)] }] as const),
);

const ajv = new Ajv2020({ strict: false });
/** Whoever gives an object gives the fields that its schema names, and no others: that is taken on trust. */
function closed(node: JsonSchema): JsonSchema {
  const deep = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(deep)
      : typeof value === "object" && value !== null
        ? closed(value as JsonSchema)
        : value;
  const inner = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, deep(value)]));
  return node["type"] === "object" ? { ...inner, additionalProperties: false } : inner;
}

it("says ok only where all values fit, and broken only where one does not", () => {
  const outcomes = { ok: 0, broken: 0, unknown: 0 };
  fc.assert(
    fc.property(pair, ([given, taken]) => {
      const isGiven = ajv.compile(closed(given));
      const isTaken = ajv.compile(taken);
      const found = schemaFit(given, taken);
      const values = VALUES.filter((value) => isGiven(value));
      const refused = values.filter((value) => !isTaken(value));
      outcomes[found.outcome] += 1;
      // Alternatives that exclude each other give nothing at all, alone or as a part of a schema that does: nothing of that can be told
      // from outside, so that something is refused is expected only where there are none.
      const excludes = JSON.stringify(given).includes('"oneOf"');
      const nothingRefused =
        found.outcome === "broken" && values.length > 0 && refused.length === 0 && !excludes;
      const disjoint = found.outcome === "broken" && found.disjoint === true;
      expect({
        fit: found,
        refusedThough: found.outcome === "ok" ? refused : [],
        brokenThough: nothingRefused ? values : [],
        takenThough: disjoint ? values.filter((value) => isTaken(value)) : [],
      }).toEqual({ fit: found, refusedThough: [], brokenThough: [], takenThough: [] });
    }),
    { numRuns: 250 },
  );
  expect(outcomes.ok).toBeGreaterThan(20);
  expect(outcomes.broken).toBeGreaterThan(20);
}, 60_000);
