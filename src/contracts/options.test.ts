import { describe, expect, it } from "vitest";
import {
  boolean,
  checkOptions,
  integer,
  notAvailable,
  number,
  oneOf,
  text,
  type OptionRules,
} from "./options.ts";

interface Sample {
  maxLength: number;
  ratio: number;
  on: boolean;
  label: string;
  mode: "a" | "b";
  later: never;
}
const RULES: OptionRules<Sample> = {
  maxLength: integer({ min: 1, max: 10 }),
  ratio: number({ above: 0 }),
  on: boolean,
  label: text({ max: 3 }),
  mode: oneOf(["a", "b"]),
  later: notAvailable,
};
const check = (given: unknown) => checkOptions<Sample>("thing", given, RULES);

describe("checkOptions", () => {
  it("returns what was given, and nothing for undefined", () => {
    expect(check(undefined)).toEqual({});
    expect(check({ maxLength: 5, ratio: undefined, on: false })).toEqual({ maxLength: 5, on: false });
  });

  it("refuses an unknown option with the nearest known name", () => {
    expect(() => check({ maxLenght: 1 })).toThrow(
      'thing: unknown option "maxLenght"; did you mean "maxLength"?',
    );
    expect(() => check({ MAXLENGTH: 1 })).toThrow('did you mean "maxLength"?');
    expect(() => check({ somethingElse: 1 })).toThrow("known: maxLength, ratio, on, label, mode, later");
    expect(() => check(JSON.parse('{"__proto__x":1,"constructor":1}'))).toThrow(/unknown option/);
  });

  it.each<[object, string]>([
    [{ maxLength: 0 }, "thing: maxLength must be at least 1, got 0"],
    [{ maxLength: 11 }, "thing: maxLength must be at most 10, got 11"],
    [{ maxLength: 1.5 }, "thing: maxLength must be a whole number, got 1.5"],
    [{ maxLength: Infinity }, "thing: maxLength must be a whole number, got Infinity"],
    [{ maxLength: "5" }, 'thing: maxLength must be a whole number, got "5"'],
    [{ ratio: 0 }, "thing: ratio must be above 0, got 0"],
    [{ ratio: NaN }, "thing: ratio must be a finite number, got NaN"],
    [{ ratio: null }, "thing: ratio must be a finite number, got null"],
    [{ on: 1 }, "thing: on must be true or false, got 1"],
    [{ label: "" }, "thing: label must be a text of 1 to 3 characters"],
    [{ label: "abcd" }, "thing: label must be a text of 1 to 3 characters"],
    [{ mode: "c" }, 'thing: mode must be "a" or "b", got "c"'],
    [{ mode: ["a"] }, 'thing: mode must be "a" or "b", got an array of 1'],
  ])("refuses %o", (given, message) => {
    expect(() => check(given)).toThrowError(expect.objectContaining({ code: "FLEET_OPTION_INVALID" }));
    expect(() => check(given)).toThrow(message);
  });

  it("refuses what a later version brings", () => {
    expect(() => check({ later: true })).toThrowError(
      expect.objectContaining({ code: "FLEET_NOT_AVAILABLE" }),
    );
    expect(() => check({ later: true })).toThrow("thing: later is not available in this version (got true)");
  });

  it.each([null, 1, "x", [], true])("refuses %j in place of options", (given) => {
    expect(() => check(given)).toThrow("thing: options must be an object");
  });
});
