import { describe, expect, it } from "vitest";
import { hintFor, nearest } from "./suggest.ts";

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

it("a hint names the nearest, else what there is, and never more than a few", () => {
  expect(hintFor("scrapr", ["scraper", "pinger"])).toBe('did you mean "scraper"?');
  expect(hintFor("x", [])).toBe("there are none yet");
  expect(hintFor("x", [], { none: "nothing runs" })).toBe("nothing runs");
  expect(hintFor("zzzzzz", ["scraper", "pinger"])).toBe("there are: scraper, pinger");
  expect(hintFor("zzzzzz", ["scraper"], { others: "ls lists all" })).toBe("ls lists all");
  const many = Array.from({ length: 23 }, (_, i) => `automation-${i}`);
  expect(hintFor("zzzzzz", many)).toMatch(/^there are: automation-0, .*automation-19 and 3 more$/);
});
