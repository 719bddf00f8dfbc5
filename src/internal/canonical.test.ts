import * as fc from "fast-check";
import { expect, it } from "vitest";
import { canonicalJson } from "./canonical.ts";

/** The same value, with the keys of every object in the opposite order. */
function turned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(turned);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, inner]) => [key, turned(inner)]),
  );
}

it("gives equal values equal texts, whatever the order of their keys", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      expect(canonicalJson(turned(value))).toBe(canonicalJson(value));
      expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
  expect(canonicalJson([2, 1])).not.toBe(canonicalJson([1, 2]));
});
