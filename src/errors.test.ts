import { describe, expect, it, vi } from "vitest";
import { FleetError, isFleetError, messageOf, PayloadError } from "./errors.ts";

describe("errors", () => {
  it("bear code, cause, retryable and outcome", () => {
    const cause = new Error("inner");
    const error = new FleetError("FLEET_STORE_UNAVAILABLE", "away", {
      cause,
      retryable: true,
      outcome: "unknown",
    });
    expect(error).toMatchObject({
      code: "FLEET_STORE_UNAVAILABLE",
      cause,
      retryable: true,
      outcome: "unknown",
    });
    expect(Object.keys(error)).toEqual(expect.arrayContaining(["code", "retryable", "outcome"]));
    expect(new FleetError("FLEET_CLOSED", "x")).not.toHaveProperty("outcome");
  });

  it("are told across two copies of the package, and from others", async () => {
    vi.resetModules();
    const copy = await import("./errors.ts");
    const foreign = new copy.FleetError("FLEET_CLOSED", "x");
    expect(foreign).not.toBeInstanceOf(FleetError);
    expect(isFleetError(foreign)).toBe(true);
    expect(isFleetError(foreign, "FLEET_CLOSED")).toBe(true);
    expect(isFleetError(foreign, "FLEET_USAGE")).toBe(false);
    for (const other of [new Error("x"), null, undefined, "FLEET_CLOSED", { code: "FLEET_CLOSED" }])
      expect(isFleetError(other)).toBe(false);
  });

  it("are a TypeError where a payload is wrong", () => {
    const error = new PayloadError("FLEET_PAYLOAD_INVALID", "x");
    expect(error).toBeInstanceOf(TypeError);
    expect(error.name).toBe("TypeError");
    expect(isFleetError(error, "FLEET_PAYLOAD_INVALID")).toBe(true);
  });

  it("have a short message, whatever was thrown", () => {
    expect(messageOf(new Error("a"))).toBe("a");
    expect(messageOf("b")).toBe("b");
    expect(messageOf({ c: 1 })).toBe('{"c":1}');
    expect(messageOf(undefined)).toBe("undefined");
    const circle: { self?: unknown } = {};
    circle.self = circle;
    expect(messageOf(circle)).toBe("[object Object]");
    expect(messageOf({ big: 1n })).toBe("[object Object]");
  });
});
