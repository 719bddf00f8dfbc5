import { expect, test } from "vitest";
import { FleetError, isFleetError, PayloadError } from "../errors.ts";
import { errorFromWire, messagesOf, sameMajor, type WireError, wireError } from "./remote.ts";

/** As it arrives: what is undefined has gone. */
const travel = (error: unknown) => errorFromWire(JSON.parse(JSON.stringify(wireError(error))) as WireError);

test("an error arrives with all that callers go by", () => {
  const issues = [{ pointer: "/a", message: "must be a number" }];
  const sent = new FleetError("FLEET_STORE_UNAVAILABLE", "no answer", {
    retryable: true,
    outcome: "unknown",
    issues,
    cause: new Error("hidden"),
  });
  const arrived = travel(sent);
  expect(isFleetError(arrived, "FLEET_STORE_UNAVAILABLE")).toBe(true);
  expect(arrived).toMatchObject({ message: "no answer", retryable: true, outcome: "unknown", issues });
  expect(arrived.cause).toBeUndefined();
  expect(travel(new PayloadError("FLEET_PAYLOAD_INVALID", "x", { issues }))).toMatchObject({
    code: "FLEET_PAYLOAD_INVALID",
    retryable: false,
    issues,
  });
  expect(travel(new FleetError("FLEET_QUEUE_FULL", "x"))).not.toHaveProperty("outcome");
});

test("what is no error of Fleet, or of a newer version, is one that says so", () => {
  expect(travel(new RangeError("too much"))).toMatchObject({
    code: "FLEET_STORE_FAILED",
    message: "the call failed: too much",
    retryable: false,
  });
  for (const code of ["FLEET_NEWS", "constructor", "__proto__", ""])
    expect(errorFromWire({ code, message: "m", retryable: true })).toMatchObject({
      code: "FLEET_STORE_FAILED",
      message: `${code}: m`,
      retryable: true,
    });
  expect(errorFromWire({})).toMatchObject({ code: "FLEET_STORE_FAILED", retryable: false });
});

test("a store that is closed behind is one that is away; passwords stay there", () => {
  expect(travel(new FleetError("FLEET_CLOSED", "the store redis://u:S3CRET-x@h was closed"))).toMatchObject({
    code: "FLEET_STORE_UNAVAILABLE",
    message: "the store redis://***@h was closed",
    retryable: true,
  });
  expect(travel(new Error("redis://u:S3CRET-x@h")).message).not.toContain("S3CRET");
  const long = `redis://u:${"S3CRET-x".repeat(100_000)}@h`;
  expect(travel(new FleetError("FLEET_STORE_FAILED", long)).message).toBe("redis://***…");
  expect(travel(new Error(long)).message).toBe("the call failed: redis://***…");
});

test.each(["", "x", "{}", "1", "null", "[1]", "[null]", '["a"]', "[{}", '{"length":0}'])(
  "%s is no frame",
  (frame) => {
    expect(messagesOf(frame)).toBeUndefined();
  },
);

test("a frame is a list of messages", () => {
  expect(messagesOf("[]")).toEqual([]);
  expect(messagesOf('[{"id":1},{"push":2,"values":[]}]')).toEqual([{ id: 1 }, { push: 2, values: [] }]);
});

test.each([
  ["0.1.0", "0.2.3", true],
  ["1.0.0", "1.9.0-beta", true],
  ["1.0.0", "2.0.0", false],
  ["undefined", "0.1.0", false],
])("%s and %s: %s", (a, b, same) => {
  expect(sameMajor(a, b)).toBe(same);
});
