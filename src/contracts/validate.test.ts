import { describe, expect, it } from "vitest";
import { z } from "zod";
import { check, payloadError } from "./validate.ts";

describe("check and payloadError", () => {
  const schema = z.object({ url: z.url(), items: z.array(z.object({ "a/b": z.number() })) });

  it("answers at once for a schema that does", () => {
    expect(check(z.number(), 5)).toEqual({ ok: true, value: 5 });
  });

  it("waits for one that does not", async () => {
    const slow = z.string().refine(async (value) => Promise.resolve(value === "x"), "must be x");
    expect(await check(slow, "x")).toEqual({ ok: true, value: "x" });
    expect(await check(slow, "y")).toEqual({ ok: false, issues: [{ pointer: "", message: "must be x" }] });
  });

  it("points at fields with JSON Pointers, and names them as people do", async () => {
    const checked = await check(schema, { url: "nope", items: [{ "a/b": "x" }] });
    const issues = checked.ok ? [] : checked.issues;
    expect(issues.map(({ pointer }) => pointer)).toEqual(["/url", "/items/0/a~1b"]);
    const error = payloadError('stream "s": payload', issues);
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ code: "FLEET_PAYLOAD_INVALID", retryable: false, issues });
    expect(error.message).toMatch(/^stream "s": payload: url: .*; items\.0\.a\/b: /);
  });

  it("shows three issues and says how many more there are", () => {
    const issues = Array.from({ length: 5 }, (_, i) => ({ pointer: `/f${i}`, message: "bad" }));
    expect(payloadError("p", issues).message).toBe("p: f0: bad; f1: bad; f2: bad (and 2 more)");
  });
});
