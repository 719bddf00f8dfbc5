import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineQueue } from "../contracts/queue.ts";
import { scheduleSpec } from "./schedule-spec.ts";

const QUEUE = defineQueue("reports", {
  payload: z.object({ n: z.number() }),
  maxAttempts: 7,
  ttlSeconds: 60,
});
const payload = { n: 1 };

describe("a schedule", () => {
  it("is stored with the queue's own settings where it names none", async () => {
    const spec = await scheduleSpec(QUEUE, "nightly", { cron: "0 3 * * *", payload }, "definition");
    expect(spec).toEqual({
      id: "nightly",
      timing: { cron: "0 3 * * *", timezone: "UTC" },
      payload: '{"n":1}',
      overlap: "allow",
      missed: "once",
      missedCap: 100,
      jitterMs: 0,
      task: { priority: 0, maxAttempts: 7, timeoutMs: 3_600_000, ttlMs: 60_000 },
      origin: "definition",
    });
  });

  it("takes an interval, or a single time as a Date or a number", async () => {
    const timing = async (options: object) =>
      (await scheduleSpec(QUEUE, "s", { ...options, payload }, "runtime")).timing;
    expect(await timing({ everySeconds: 2.5 })).toEqual({ everyMs: 2500, anchor: 0 });
    expect(await timing({ at: new Date("2027-01-01T00:00:00Z") })).toEqual({ at: 1_798_761_600_000 });
    expect(await timing({ at: 1_798_761_600_000 })).toEqual({ at: 1_798_761_600_000 });
  });

  it.each([
    [{}, /exactly one of cron, everySeconds and at says when; got none/],
    [{ cron: "* * * * *", everySeconds: 5 }, /exactly one of .*; got 2/],
    [{ cron: "61 * * * *" }, /cron: "61 \* \* \* \*" is not a pattern/],
    [{ cron: "0 0 31 2 *" }, /never comes/],
    [{ cron: "* * * * *", timezone: "Mars/Base" }, /timezone must be an IANA time zone/],
    [{ everySeconds: 5, timezone: "UTC" }, /timezone goes with cron alone/],
    [{ everySeconds: 0.5 }, /everySeconds must be at least 1/],
    [{ at: 1_798_761_600 }, /at must be a Date or a time in Unix milliseconds, got 1798761600 \(seconds\?/],
    [{ at: new Date("nonsense") }, /at must be a valid Date/],
    [{ everySeconds: 5, missed: "twice" }, /missed must be "skip" or "once" or "all"/],
    [{ everySeconds: 5, maxAttempts: Infinity }, /maxAttempts must be a whole number/],
    [{ everySecond: 5 }, /unknown option "everySecond"; did you mean "everySeconds"\?/],
  ])("refuses %o", async (options, message) => {
    await expect(scheduleSpec(QUEUE, "s", { ...options, payload } as never, "runtime")).rejects.toThrow(
      message,
    );
  });

  it("refuses a payload that does not fit, naming the field, and a name that cannot be one", async () => {
    const wrong = scheduleSpec(QUEUE, "s", { everySeconds: 5, payload: { n: "x" } as never }, "runtime");
    await expect(wrong).rejects.toThrow(TypeError);
    await expect(wrong).rejects.toThrow(/schedule "s" of queue "reports": payload: n: /);
    await expect(scheduleSpec(QUEUE, "A b", { everySeconds: 5, payload }, "runtime")).rejects.toMatchObject({
      code: "FLEET_NAME_INVALID",
    });
  });
});
