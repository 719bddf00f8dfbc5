import { describe, expect, it } from "vitest";
import { z } from "zod";
import { checkTagsSchema, tagNames, tagTexts, whereTexts } from "./pool-tags.ts";
import { inputJsonSchema } from "./schema/json-schema.ts";

const json = (schema: z.ZodType) => inputJsonSchema("tags", schema);

describe("checkTagsSchema", () => {
  it.each([
    z.object({ a: z.string(), b: z.number().int().optional(), c: z.boolean().default(true) }),
    z.object({ a: z.array(z.string()), b: z.enum(["x", "y"]), c: z.literal(3) }),
    z.object({ a: z.union([z.string(), z.number(), z.array(z.boolean())]) }),
    z.record(z.string(), z.string()),
    z.object({}),
  ])("takes objects of texts, numbers, booleans and lists of those (%#)", (schema) => {
    expect(() => checkTagsSchema("tags", json(schema))).not.toThrow();
  });

  it.each([
    [z.string(), "an object of tags"],
    [z.object({ a: z.object({ b: z.string() }) }), 'tag "a"'],
    [z.object({ a: z.array(z.array(z.string())) }), 'tag "a"'],
    [z.object({ a: z.string().nullable() }), 'tag "a"'],
    [z.object({ a: z.unknown() }), 'tag "a"'],
    [z.record(z.string(), z.object({})), "its values"],
  ])("refuses what could not be matched (%#)", (schema, message) => {
    const checking = () => checkTagsSchema("tags", json(schema));
    expect(checking).toThrow(message);
    expect(checking).toThrow(expect.objectContaining({ code: "FLEET_SCHEMA_INVALID" }));
  });
});

describe("tagTexts", () => {
  it("writes each value as text, sorted and once; an empty list is no tag", () => {
    expect(tagTexts("t", { b: ["y", "x", "y"], a: 5, c: true, d: [], e: undefined })).toEqual({
      a: ["5"],
      b: ["x", "y"],
      c: ["true"],
    });
    expect(Object.keys(tagTexts("t", { b: 1, a: 1 }))).toEqual(["a", "b"]);
  });

  it.each([{ a: null }, { a: {} }, { a: [["x"]] }, { a: Number.NaN }, { a: "x".repeat(257) }])(
    "refuses what is no value: %o",
    (tags) => {
      expect(() => tagTexts("pool", tags)).toThrow(/^pool: tag "a" must be /);
    },
  );

  it("refuses more than 64 values", () => {
    const list = (n: number) => Array.from({ length: n }, (_, i) => i);
    expect(() => tagTexts("p", { a: list(64) })).not.toThrow();
    expect(() => tagTexts("p", { a: list(60), b: list(5) })).toThrow(
      "at most 64 values over all tags, got 65",
    );
  });
});

describe("whereTexts", () => {
  const names = tagNames(json(z.object({ site: z.string(), tier: z.string().default("free") })));

  it("takes one value or several, and nothing for any", () => {
    expect(whereTexts("w", { site: ["b", "a"], tier: undefined }, names)).toEqual({ site: ["a", "b"] });
    expect(whereTexts("w", undefined, names)).toEqual({});
    expect(whereTexts("w", {}, names)).toEqual({});
  });

  it("refuses what would match nothing without a word", () => {
    expect(() => whereTexts("w", { sit: "a" }, names)).toThrow('unknown tag "sit"; did you mean "site"?');
    expect(() => whereTexts("w", { site: [] }, names)).toThrow('tag "site" is an array of 0');
    expect(() => whereTexts("w", ["a"], names)).toThrow("w must be an object of tags");
    expect(() => whereTexts("w", { a: 1 }, tagNames(null))).toThrow("this pool has no tags");
  });

  it("takes any tag where the schema leaves the names open", () => {
    expect(tagNames(json(z.record(z.string(), z.string())))).toBeUndefined();
    expect(whereTexts("w", { anything: "x" }, undefined)).toEqual({ anything: ["x"] });
  });
});
