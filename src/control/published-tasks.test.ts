import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineQueue } from "../contracts/queue.ts";
import { check } from "../contracts/validate.ts";
import type { Manifest } from "../protocol/manifest.ts";
import type { WorkerRecord } from "../protocol/status.ts";
import { jsonSchemaValidator } from "./json-schema.ts";
import { publishedContract, publishedTasks } from "./published-tasks.ts";

const Page = z.object({
  url: z.url(),
  at: z.iso.datetime().optional(),
  local: z.iso.datetime({ local: true }).optional(),
  mode: z.enum(["fast", "slow"]).default("fast"),
  tries: z.coerce.number().int().default(1),
  parts: z.array(z.strictObject({ "a/b": z.string() })).default([]),
});
const contract = defineQueue("scraper", { payload: Page, maxAttempts: 2 });
const validator = jsonSchemaValidator("q", contract.jsonSchema);
const issues = async (value: unknown) => {
  const checked = await check(validator, value);
  return checked.ok ? [] : checked.issues;
};

describe("the validator of a published schema", () => {
  it("takes what the schema's input takes, defaults left out", async () => {
    expect(await issues({ url: "https://example.com/ü?q=ä" })).toEqual([]);
    expect(
      await issues({ url: "https://a", mode: "slow", parts: [{ "a/b": "" }], at: "2027-01-01T00:00:00Z" }),
    ).toEqual([]);
  });

  it("names each field that does not fit", async () => {
    expect(await issues({ url: 1 })).toEqual([{ pointer: "/url", message: "must be string" }]);
    expect(await issues({})).toEqual([{ pointer: "/url", message: "is missing" }]);
    expect(await issues({ url: "no url" })).toEqual([
      { pointer: "/url", message: 'must match format "uri"' },
    ]);
    expect(await issues({ url: "https://a", mode: "idle" })).toEqual([
      { pointer: "/mode", message: 'must be one of ["fast","slow"]' },
    ]);
    expect(await issues({ url: "https://a", parts: [{ "a/b": "" }, { "a/b": 1, c: 1 }] })).toEqual([
      { pointer: "/parts/1/c", message: "is not known" },
      { pointer: "/parts/1/a~1b", message: "must be string" },
    ]);
    expect(await issues("text")).toEqual([{ pointer: "", message: "must be object" }]);
  });

  it("knows formats and dialects, and refuses what is no schema", async () => {
    expect(await issues({ url: "https://a", at: "yesterday" })).toEqual([
      { pointer: "/at", message: 'must match format "date-time"' },
    ]);
    // By its format alone a text without a time zone would be refused.
    expect(await issues({ url: "https://a", local: "2027-01-01T00:00:00" })).toEqual([]);
    const names = jsonSchemaValidator("q", {
      type: "object",
      properties: { format: { const: { format: "time", pattern: "." } }, pattern: { type: "string" } },
    });
    expect(await check(names, { format: { format: "time", pattern: "." }, pattern: "x" })).toMatchObject({
      ok: true,
    });
    expect(await check(names, { pattern: 5 })).toMatchObject({ ok: false });
    expect(() => jsonSchemaValidator('queue "q"', { type: "strnig" })).toThrow(
      'queue "q": the published JSON Schema cannot be used',
    );
  });
});

describe("what workers have published", () => {
  const { name, jsonSchema, resultJsonSchema, options } = contract;
  const tasks = { queue: name, schema: jsonSchema, resultSchema: resultJsonSchema, options };
  const manifest = (maxAttempts: number, queue = name) =>
    ({
      name: queue,
      tasks: { ...tasks, queue, options: { ...options, maxAttempts } },
    }) as unknown as Manifest;
  const worker = (id: string, startedAt: number, expiresAt = 2000) =>
    ({ id, startedAt, expiresAt, draining: false }) as WorkerRecord;

  it("is a contract with the owner's options", () => {
    expect(publishedContract(tasks)).toMatchObject({
      kind: "queue",
      name: "scraper",
      options: { maxAttempts: 2 },
    });
  });

  it("counts live workers first, then the one that started last", () => {
    const manifests = { old: [manifest(1)], dead: [manifest(2)], young: [manifest(3, "other"), manifest(4)] };
    const seen = (...workers: WorkerRecord[]) =>
      publishedTasks("scraper", manifests, { workers, now: 1000 })?.options.maxAttempts;
    expect(seen(worker("old", 1), worker("young", 5), worker("dead", 9, 500))).toBe(4);
    expect(seen(worker("old", 1), worker("dead", 9, 500))).toBe(1);
    expect(seen(worker("dead", 9, 500))).toBe(2);
    expect(seen(worker("unknown", 1))).toBeUndefined();
    expect(publishedTasks("nobody", manifests, { workers: [worker("old", 1)], now: 0 })).toBeUndefined();
  });
});
