import { expect, test } from "vitest";
import { ERROR_CODES, FleetError, type ErrorCode } from "../errors.ts";
import { CommandFailed, errorText, exitCodeOf } from "./exit.ts";

test.each<[ErrorCode, number]>([
  ["FLEET_USAGE", 2],
  ["FLEET_CONFIG_INVALID", 2],
  ["FLEET_PROJECT_INVALID", 2],
  ["FLEET_STORE_URL_INVALID", 2],
  ["FLEET_STORE_UNAVAILABLE", 3],
  ["FLEET_STORE_AUTH", 4],
  ["FLEET_STORE_FAILED", 1],
  ["FLEET_WORKER_ID_TAKEN", 1],
])("%s ends with %i", (code, exit) => {
  expect(exitCodeOf(new FleetError(code, "x"))).toBe(exit);
});

test("every code has an exit code that means failure", () => {
  for (const code of Object.keys(ERROR_CODES) as ErrorCode[])
    expect(exitCodeOf(new FleetError(code, "x"))).toBeGreaterThan(0);
  expect(exitCodeOf(new Error("x"))).toBe(1);
  expect(exitCodeOf(new CommandFailed("FLEET_NOT_CONFIRMED", "x"))).toBe(1);
});

test("text for people: message without secrets or escape sequences, a stack only for the unexpected", () => {
  const error = new FleetError("FLEET_STORE_UNAVAILABLE", "lost redis://:S3CRET-x@h\n\tline\u001b[2J");
  expect(errorText(error, false)).toMatch(
    /^fleet: lost redis:\/\/\*\*\*@h\n\tline\ufffd\[2J; is it running there/,
  );
  expect(errorText(new CommandFailed("FLEET_NOT_CONFIRMED", "none"), false)).toBe("fleet: none\n");
  expect(errorText(new Error("odd"), false)).toMatch(/^fleet: odd\n\s+at /);
});

test("JSON: one object with code and message", () => {
  const text = errorText(new FleetError("FLEET_STORE_AUTH", "no redis://u:S3CRET-x@h"), true);
  expect(JSON.parse(text)).toEqual({ code: "FLEET_STORE_AUTH", message: "no redis://***@h" });
  expect(text.endsWith("}\n")).toBe(true);
  expect(JSON.parse(errorText("thrown text", true))).toEqual({ code: "FAILED", message: "thrown text" });
});
