import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineTopic, isTopicContract, type TopicOptions } from "./topic.ts";

const Started = z.object({ site: z.string() });

describe("defineTopic", () => {
  it("gives a frozen reference with its JSON Schema", () => {
    const topic = defineTopic("harvest.started", Started);
    expect(topic).toMatchObject({ kind: "topic", name: "harvest.started", options: { maxBytes: 65_536 } });
    expect(topic.jsonSchema).toMatchObject({ type: "object", required: ["site"] });
    expect(Object.isFrozen(topic) && Object.isFrozen(topic.options)).toBe(true);
    expect([isTopicContract(topic), isTopicContract(Started), isTopicContract(null)]).toEqual([
      true,
      false,
      false,
    ]);
  });

  it("takes a smaller limit", () => {
    expect(defineTopic("t", Started, { maxBytes: 100 }).options.maxBytes).toBe(100);
  });

  it.each([
    ["fleet.slot.crashed", Started, {}, "FLEET_NAME_INVALID", /reserved/],
    ["Harvest", Started, {}, "FLEET_NAME_INVALID", /"Harvest"/],
    ["t", z.object({ at: z.date() }), {}, "FLEET_SCHEMA_INVALID", /topic "t": .*z\.date\(\)/],
    ["t", Started, { maxBytes: 65_537 }, "FLEET_OPTION_INVALID", /topic "t": maxBytes must be at most 65536/],
    ["t", Started, { maxByte: 1 }, "FLEET_OPTION_INVALID", /did you mean "maxBytes"/],
  ])("refuses %s with %o, %o", (name, schema, options, code, message) => {
    const define = () => defineTopic(name, schema, options as TopicOptions);
    expect(define).toThrow(message);
    expect(define).toThrow(expect.objectContaining({ code }));
  });
});
