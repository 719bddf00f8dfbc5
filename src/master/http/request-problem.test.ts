import { expect, test } from "vitest";
import { FleetError } from "../../errors.ts";
import { readBody } from "./read-body.ts";
import { problemOf } from "./request-problem.ts";

test("what is said of an error is short, and shows no password that the cut goes through", () => {
  const message = `${"m".repeat(8150)} redis://user:${"S3CRET-x".repeat(10_000)}@h`;
  const { detail } = problemOf(new FleetError("FLEET_OPTION_INVALID", message)).problem;
  expect(detail).toBe(`${"m".repeat(8150)} redis://***…`);
});

test.each([
  [JSON.stringify("x".repeat(100_000)), `"${"x".repeat(80)}…"`],
  [`[${"1,".repeat(100_000)}1]`, "an array of 100001"],
  ["1e3", "1000"],
  ["null", "null"],
])("a body that is no object is described, not repeated", async (body, described) => {
  const request = new Request("http://h/", {
    method: "POST",
    body,
    headers: { "content-type": "application/json" },
  });
  await expect(readBody(request, { maxBytes: 1_000_000, withinMs: 60_000 })).rejects.toMatchObject({
    message: `the body must be a JSON object, got ${described}`,
  });
});
