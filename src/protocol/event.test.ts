import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeEvent, matchesTopic } from "./event.ts";

/** The plain model: every `*` is `.*`. */
function model(pattern: string, topic: string): boolean {
  const source = pattern.split("*").map((part) => part.replaceAll(".", "\\."));
  return new RegExp(`^${source.join(".*")}$`, "s").test(topic);
}

describe("matchesTopic", () => {
  const topics = fc.string({ unit: fc.constantFrom("a", "b", "."), maxLength: 8 });
  const patterns = fc.string({ unit: fc.constantFrom("a", "b", ".", "*"), maxLength: 8 });

  it("agrees with a regular expression", () => {
    fc.assert(
      fc.property(patterns, topics, (pattern, topic) => {
        expect(matchesTopic(pattern, topic)).toBe(model(pattern, topic));
      }),
      { numRuns: 5000 },
    );
  });

  it.each([
    ["fleet.slot.*", "fleet.slot.crashed", true],
    ["fleet.slot.*", "fleet.slot.", true],
    ["fleet.slot.*", "fleet.slots", false],
    ["a*a", "a", false],
    ["*", "", true],
  ])("%s ~ %s: %s", (pattern, topic, expected) => {
    expect(matchesTopic(pattern, topic)).toBe(expected);
  });

  it("stays fast on a pattern made to be slow", () => {
    const started = performance.now();
    expect(matchesTopic(`${"a*".repeat(5000)}b`, "a".repeat(10_000))).toBe(false);
    expect(matchesTopic(`*${"a".repeat(100)}b*`, "a".repeat(10_000))).toBe(false);
    expect(performance.now() - started).toBeLessThan(500);
  });
});

describe("decodeEvent", () => {
  it("takes whole events and nothing else", () => {
    const event = { topic: "t", ts: 1, source: "s", seq: 1, fleet: "f", payload: null };
    expect(decodeEvent(JSON.stringify(event))).toEqual(event);
    for (const field of ["topic", "ts", "seq", "fleet"]) {
      expect(decodeEvent(JSON.stringify({ ...event, [field]: undefined }))).toBeUndefined();
    }
    for (const raw of ["", "{", "null", "5", "[]"]) expect(decodeEvent(raw)).toBeUndefined();
  });
});
