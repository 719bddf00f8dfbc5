import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { check } from "./validate.ts";
import { FLEET_TOPICS } from "./life-cycle.ts";
import { isTopicContract } from "./topic.ts";

const ENDED = {
  automation: "a",
  slot: 0,
  worker: "w",
  outcome: "failed",
  cause: null,
  error: "Error: no",
};

const DOCS = readFileSync(new URL("../../docs/events.md", import.meta.url), "utf8");

describe("the framework's own topics", () => {
  it("are typed topics under fleet., each with a JSON Schema", () => {
    for (const topic of Object.values(FLEET_TOPICS)) {
      expect(isTopicContract(topic)).toBe(true);
      expect(topic.name).toMatch(/^fleet\.(worker|slot|config|contract|version)\.[a-z-]+$/);
      expect(topic.jsonSchema).toMatchObject({ type: "object" });
    }
    expect(FLEET_TOPICS.slotCrashed.jsonSchema).toMatchObject({
      properties: { slot: { type: "number" }, error: { type: ["string", "null"] } },
      required: ["automation", "slot", "worker", "outcome", "cause", "error"],
    });
  });

  it("stand in the documents, with their fields", () => {
    for (const [name, topic] of Object.entries(FLEET_TOPICS))
      expect(DOCS).toContain(`| \`${topic.name}\` | \`${name}\` |`);
    const documented = DOCS.match(/^\| `fleet\.[a-z.-]+` \|/gm) ?? [];
    expect(documented).toHaveLength(Object.keys(FLEET_TOPICS).length);
  });

  it("let through what a later version adds, and name what does not fit", () => {
    const { schema } = FLEET_TOPICS.slotCrashed;
    expect(check(schema, { ...ENDED, more: 1 })).toEqual({ ok: true, value: { ...ENDED, more: 1 } });
    expect(check(schema, { ...ENDED, slot: "0", cause: 1 })).toEqual({
      ok: false,
      issues: [
        { pointer: "/slot", message: 'must be a number, got "0"' },
        { pointer: "/cause", message: "must be a text or null, got 1" },
      ],
    });
    expect(check(schema, null)).toMatchObject({ ok: false });
  });
});
