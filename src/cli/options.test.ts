import { expect, test } from "vitest";
import { labelList, nameList, seconds, wholeNumber } from "./options.ts";

test("whole numbers", () => {
  expect(wholeNumber(1)("12")).toBe(12);
  for (const text of ["0", "-1", "1.5", "1e3", "x", ""]) expect(() => wholeNumber(1)(text)).toThrow("whole");
  expect(() => wholeNumber(1, 5)("6")).toThrow("from 1 to 5");
});

test("seconds", () => {
  expect(seconds(10)("1.5")).toBe(1.5);
  expect(seconds(10)("0")).toBe(0);
  expect(seconds(10)("10s")).toBe(10);
  expect(seconds(600)("2m")).toBe(120);
  for (const text of ["11", "11s", "1m", "-1", "Infinity", "x", "s", ""])
    expect(() => seconds(10)(text)).toThrow("seconds");
});

test("lists", () => {
  expect(nameList("a, b")).toEqual(["a", "b"]);
  expect(() => nameList("a,,b")).toThrow("commas");
  expect(labelList("region=eu,gpu=true,empty=")).toEqual({ region: "eu", gpu: "true", empty: "" });
  expect(() => labelList("region")).toThrow("pairs");
});
