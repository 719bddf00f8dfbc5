import { expect, it } from "vitest";
import { traceOf } from "./trace.ts";

it("tells what was thrown, whatever it was", () => {
  const circle: { self?: unknown } = {};
  circle.self = circle;
  expect(traceOf(circle)).toBe("thrown: [object Object]");
  expect(traceOf({ big: 1n })).toBe("thrown: [object Object]");
  expect(traceOf("text")).toBe("thrown: text");
  expect(traceOf(undefined)).toBe("thrown: undefined");
  expect(traceOf(Object.assign(new Error("x"), { stack: 5 }))).toBe("Error: x");
});

it("shows the cause behind an error, and stays short", () => {
  const error = new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED 127.0.0.1:9") });
  expect(traceOf(error)).toMatch(/^TypeError: fetch failed\n.*\ncaused by: Error: connect ECONNREFUSED/s);
  const loop = new Error("loop");
  loop.cause = loop;
  expect(traceOf(loop).length).toBeLessThanOrEqual(4000);
});

it("shows no password of an address, wherever it stands", () => {
  const error = new Error("refused by postgres://app:S3CRET-x@db/main", {
    cause: new Error("no answer from https://u:S3CRET-x@h"),
  });
  expect(traceOf(error)).toMatch(/refused by postgres:\/\/\*\*\*@db\/main\n.*https:\/\/\*\*\*@h/s);
  expect(traceOf("postgres://app:S3CRET-x@db")).toBe("thrown: postgres://***@db");
});
