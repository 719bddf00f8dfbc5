import { describe, expect, it } from "vitest";
import { nearest } from "./suggest.ts";

describe("nearest", () => {
  const known = ["maxLength", "ttlSeconds", "maxPayloadBytes"];
  it.each([
    ["maxLenght", "maxLength"],
    ["maxlength", "maxLength"],
    ["ttlSecond", "ttlSeconds"],
    ["ttl", undefined],
    ["", undefined],
    ["completelyDifferent", undefined],
  ])("%j → %j", (given, expected) => {
    expect(nearest(given, known)).toBe(expected);
  });
});
