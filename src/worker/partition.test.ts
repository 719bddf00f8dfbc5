import { describe, expect, it, test } from "vitest";
import { partitionOf, partitionState, StoreAbsence } from "./partition.ts";

const LEASE = { leaseMs: 10_000 };

describe("the options", () => {
  it("are filled in", () => {
    expect(partitionOf({}, LEASE)).toEqual({ policy: "finish", afterSeconds: null });
    expect(partitionOf({ partition: "stop" }, LEASE)).toEqual({ policy: "stop", afterSeconds: null });
    expect(partitionOf({ partition: "exit" }, LEASE)).toEqual({ policy: "exit", afterSeconds: 60 });
    expect(partitionOf({ partition: "exit" }, { leaseMs: 90_000 }).afterSeconds).toBe(90);
    expect(partitionOf({ partition: "exit", partitionSeconds: 10 }, LEASE).afterSeconds).toBe(10);
  });

  it.each([
    [{ partition: "halt" as never }, "partition"],
    [{ partitionSeconds: 60 }, "partitionSeconds"],
    [{ partition: "stop" as const, partitionSeconds: 60 }, "partitionSeconds"],
    [{ partition: "exit" as const, partitionSeconds: 9.9 }, "at least the lease"],
    [{ partition: "exit" as const, partitionSeconds: 86_401 }, "partitionSeconds"],
    [{ partition: "exit" as const, partitionSeconds: Number.NaN }, "partitionSeconds"],
  ])("%j is refused", (options, words) => {
    expect(() => partitionOf(options, LEASE)).toThrow(
      expect.objectContaining({
        code: "FLEET_OPTION_INVALID",
        message: expect.stringContaining(words) as string,
      }),
    );
  });
});

describe("what follows", () => {
  const at = (policy: "finish" | "stop" | "exit", ms: number, realMs = ms) =>
    partitionState(partitionOf({ partition: policy }, LEASE), { awayMs: ms, realMs, ...LEASE });
  const nothing = { stops: false, kills: false, leaves: false };

  it("finish leaves all to the leases", () => expect(at("finish", 1e9)).toEqual(nothing));

  it("stop tells a third of the lease ahead and kills when it ends", () => {
    expect(at("stop", 6000)).toEqual(nothing);
    expect(at("stop", 7000)).toEqual({ ...nothing, stops: true });
    expect(at("stop", 9900)).toEqual({ ...nothing, stops: true, kills: true });
  });

  it("stop counts the time that this process stood still once leases have ended, and exit never does", () => {
    expect(at("stop", 100, 7000)).toEqual(nothing);
    expect(at("stop", 100, 10_000)).toEqual({ ...nothing, stops: true, kills: true });
    expect(at("exit", 59_000, 90_000)).toEqual(nothing);
    expect(at("exit", 60_000)).toEqual({ ...nothing, leaves: true });
  });
});

test("how long the store has been away begins anew with each answer", () => {
  const absence = new StoreAbsence(100);
  absence.forgive(40);
  expect(absence.at(200)).toEqual({ realMs: 100, awayMs: 60 });
  absence.answered(150);
  expect(absence.at(200)).toEqual({ realMs: 50, awayMs: 50 });
});
