import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { Schema } from "./schema/standard.ts";
import { defineStream, isStreamContract } from "./stream.ts";

const refused = (schema: unknown) => {
  try {
    defineStream("s", schema as Schema);
  } catch (error) {
    expect(error).toMatchObject({ code: "FLEET_SCHEMA_INVALID" });
    return (error as Error).message;
  }
  throw new Error("was not refused");
};

describe("defineStream", () => {
  it("gives a frozen reference with the defaults", () => {
    const schema = z.object({ a: z.number() });
    const contract = defineStream("url-pinger", schema);
    expect(contract).toMatchObject({
      kind: "stream",
      name: "url-pinger",
      options: { maxLength: 50_000, ttlSeconds: 3600, maxPayloadBytes: 262_144, whenFull: "evict" },
    });
    expect(contract.schema).toBe(schema);
    expect(Object.isFrozen(contract) && Object.isFrozen(contract.options)).toBe(true);
    expect(isStreamContract(contract)).toBe(true);
    expect(isStreamContract(schema)).toBe(false);
  });

  it("checks its name and options", () => {
    expect(() => defineStream("Not a name", z.number())).toThrow(/stream "Not a name" is not a valid name/);
    expect(() => defineStream("s", z.number(), { maxLenght: 5 } as object)).toThrow(
      'stream "s": unknown option "maxLenght"; did you mean "maxLength"?',
    );
    expect(() => defineStream("s", z.number(), { ttlSeconds: 0 })).toThrow("ttlSeconds must be above 0");
    for (const whenFull of ["wait", "reject"])
      expect(() => defineStream("s", z.number(), { whenFull } as object)).toThrowError(
        expect.objectContaining({ code: "FLEET_NOT_AVAILABLE" }),
      );
  });

  it("publishes the JSON Schema of the input, not of the output", () => {
    const schema = z.object({
      at: z.coerce.date(),
      tries: z.number().default(3),
      size: z.string().transform((text) => text.length),
    });
    expect(defineStream("s", schema).jsonSchema).toMatchObject({
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties: { size: { type: "string" }, tries: { type: "number", default: 3 } },
    });
    expect(defineStream("s", schema).jsonSchema.required ?? []).not.toContain("tries");
  });
});

describe("schemas that cannot travel as JSON", () => {
  it.each([undefined, null, 5, {}, { "~standard": {} }, { "~standard": null }])(
    "refuses %o, which is no schema",
    (value) => {
      expect(refused(value)).toBe(
        'stream "s": expected a Standard Schema, for example z.object({ … }) of zod 4',
      );
    },
  );

  it.each<[string, Schema, string]>([
    ["date", z.object({ at: z.date() }), "z.iso.datetime()"],
    ["bigint", z.object({ n: z.bigint() }), "z.coerce.bigint()"],
    ["map", z.map(z.string(), z.number()), "z.record()"],
    ["set", z.object({ tags: z.set(z.string()) }), "z.array()"],
    ["undefined", z.object({ a: z.undefined() }), ".optional()"],
    ["symbol", z.object({ a: z.symbol() }), "z.symbol() has no JSON form"],
    ["custom", z.object({ a: z.instanceof(URL) }), "z.custom() has no JSON form"],
    ["literal", z.object({ a: z.literal(1n) }), "z.literal()"],
    ["nested", z.array(z.record(z.string(), z.union([z.string(), z.date()]))), "z.iso.datetime()"],
    ["piped", z.date().transform(String), "z.iso.datetime()"],
  ])("refuses zod: %s, with a hint", (_, schema, hint) => {
    expect(refused(schema)).toContain('stream "s": this schema\'s input cannot travel as JSON');
    expect(refused(schema)).toContain(hint);
  });

  it("takes zod schemas whose input is JSON, whatever comes out", () => {
    for (const schema of [
      z.object({ at: z.coerce.date(), n: z.coerce.bigint() }),
      z.string().transform((text) => new Map([[text, 1]])),
      z.object({
        at: z.iso.datetime().transform((text) => new Date(text)),
        any: z.unknown(),
        maybe: z.string().optional(),
      }),
      z.lazy(() => z.object({ a: z.number() })),
    ])
      expect(defineStream("s", schema).jsonSchema).toBeTypeOf("object");
  });

  it("takes arktype schemas, and refuses what JSON lacks", () => {
    const good = type({ at: "string.date.iso.parse", "tries?": "number", url: "string.url" });
    expect(defineStream("s", good).jsonSchema).toMatchObject({ type: "object", required: ["at", "url"] });
    expect(refused(type({ at: "Date" }))).toMatch(/"date" has no JSON form; use "string\.date\.iso\.parse"/i);
    expect(refused(type({ n: "bigint" }))).toContain('"bigint" has no JSON form');
  });

  it("takes valibot schemas, bare and wrapped by their adapter, and refuses what JSON lacks", () => {
    const good = v.object({ at: v.pipe(v.string(), v.isoTimestamp()), tries: v.optional(v.number(), 3) });
    for (const schema of [good, toStandardJsonSchema(good)])
      expect(defineStream("s", schema).jsonSchema).toMatchObject({ type: "object", required: ["at"] });
    expect(refused(v.object({ at: v.date() }))).toContain("isoTimestamp");
    expect(refused(v.object({ n: v.bigint() }))).toContain('"bigint" schema cannot be converted');
    const checked = v.object({
      a: v.pipe(
        v.string(),
        v.trim(),
        v.url(),
        v.check((text) => text !== "x"),
      ),
    });
    expect(defineStream("s", checked).jsonSchema).toMatchObject({
      properties: { a: { type: "string", format: "uri" } },
    });
  });

  it("names the adapter that is missing", () => {
    // Without a module loader (a browser) the adapter cannot be found, as where it is not installed.
    const loader = Object.getOwnPropertyDescriptor(process, "getBuiltinModule") ?? {};
    Object.defineProperty(process, "getBuiltinModule", { ...loader, value: undefined });
    try {
      const message = refused(v.object({ a: v.string() }));
      expect(message).toContain(
        "valibot schemas need the adapter @valibot/to-json-schema, which is not installed",
      );
      expect(message).toContain("npm install @valibot/to-json-schema");
      expect(defineStream("s", toStandardJsonSchema(v.object({ a: v.string() }))).name).toBe("s");
    } finally {
      Object.defineProperty(process, "getBuiltinModule", loader);
    }
  });

  it("names the vendor of a validator that it has no adapter for", () => {
    const bare = {
      "~standard": { version: 1, vendor: "homemade", validate: (value: unknown) => ({ value }) },
    };
    expect(refused(bare)).toContain('no adapter for "homemade" schemas');
    const withJson = {
      "~standard": { ...bare["~standard"], jsonSchema: { input: () => ({ type: "string" }) } },
    };
    expect(defineStream("s", withJson as Schema).jsonSchema).toEqual({ type: "string" });
  });
});
