import { expect, it } from "vitest";
import { missing, strangers } from "./task-held.ts";

const held = (...tokens: string[]) => tokens.map((token) => ({ id: `t${token}`, token, cancelling: false }));

it("takes for lost what was claimed before the list was made and is not on it", () => {
  expect(missing(["8", "9", "10", "11"], held("9"), "11")).toEqual(["8", "10"]);
  // Tokens are numbers: "9" is less than "10".
  expect(missing(["9"], [], "10")).toEqual(["9"]);
  expect(missing(["10"], [], "9")).toEqual([]);
  expect(missing(["1778000000000000001"], [], "1778000000000000000")).toEqual([]);
});

it("tells claims that nobody knows", () => {
  expect(strangers(held("1", "2", "3"), new Set(["2"])).map(({ token }) => token)).toEqual(["1", "3"]);
});
