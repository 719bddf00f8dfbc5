import { describe, expect, it } from "vitest";
import { z } from "zod";
import { definePool, isPoolContract, POOL_DEFAULTS } from "./pool.ts";
import { defineQueue } from "./queue.ts";

const Session = z.object({ cookie: z.string() });
const Tags = z.object({ site: z.string(), tier: z.string().default("free") });
const HARVEST = defineQueue("harvest", { payload: z.object({ site: z.string() }), maxAttempts: 2 });

const refusal = (options: object) => {
  try {
    definePool("sessions", { payload: Session, ...options });
  } catch (error) {
    return error as Error & { code: string };
  }
  throw new Error(`was not refused: ${JSON.stringify(options)}`);
};

describe("definePool", () => {
  it("gives a frozen reference with the defaults", () => {
    const pool = definePool("sessions", { payload: Session, tags: Tags });
    expect(pool).toMatchObject({ kind: "pool", name: "sessions", refill: undefined });
    expect(pool.options).toEqual(POOL_DEFAULTS);
    expect(pool.jsonSchema).toMatchObject({ type: "object", required: ["cookie"] });
    expect(pool.tagsJsonSchema).toMatchObject({ type: "object", required: ["site"] });
    expect(Object.isFrozen(pool) && Object.isFrozen(pool.options)).toBe(true);
    expect([isPoolContract(pool), isPoolContract(HARVEST)]).toEqual([true, false]);
  });

  it("needs no tags", () => {
    expect(definePool("keys", { payload: Session })).toMatchObject({ tags: undefined, tagsJsonSchema: null });
  });

  it("takes a refill, whose attempts and timeout are the queue's unless they are given", () => {
    const payload = ({ site }: { site?: string | readonly string[] }) => ({ site: String(site) });
    const pool = definePool("sessions", {
      payload: Session,
      tags: Tags,
      refill: { below: 3, submit: HARVEST, payload, timeoutSeconds: 60 },
    });
    expect(pool.refill).toEqual({ below: 3, submit: HARVEST, payload, maxAttempts: 2, timeoutSeconds: 60 });
  });

  it.each([
    [{ strategy: "newest" }, 'strategy must be "lru" or "fifo" or "random", got "newest"'],
    [{ maxUses: -1 }, "maxUses must be at least 0, got -1"],
    [{ maxUses: 1.5 }, "maxUses must be a whole number, got 1.5"],
    [{ maxAgeSeconds: "1h" }, 'maxAgeSeconds must be a finite number, got "1h"'],
    [{ cooldownSeconds: -1 }, "cooldownSeconds must be at least 0, got -1"],
    [{ retireAtScore: 0 }, "retireAtScore must be at most -1, got 0"],
    [{ maxPayloadBytes: 0 }, "maxPayloadBytes must be at least 1, got 0"],
    [{ keepRetiredSeconds: 1 }, "keepRetiredSeconds must be at least 60, got 1"],
    [{ keepRetiredCount: -1 }, "keepRetiredCount must be at least 0, got -1"],
    [{ cooldownSecond: 1 }, 'unknown option "cooldownSecond"; did you mean "cooldownSeconds"?'],
    [{ refill: { below: 3 } }, "refill must be an object with `below`, `submit` and `payload`"],
    [{ refill: { below: 0 } }, "refill: below must be at least 1, got 0"],
    [{ refill: { submit: Session } }, "refill: submit must be a queue contract"],
    [{ refill: { payload: {} } }, "refill: payload must be a function"],
    [{ payload: undefined }, "payload must be a Standard Schema"],
  ])("refuses %o, naming the field and what came", (options, message) => {
    const error = refusal(options);
    expect(error.code).toBe("FLEET_OPTION_INVALID");
    expect(error.message).toMatch(/^pool "sessions": /);
    expect(error.message).toContain(message);
  });

  it("refuses schemas that cannot travel or be matched, and bad names", () => {
    expect(refusal({ payload: z.date() })).toMatchObject({ code: "FLEET_SCHEMA_INVALID" });
    expect(refusal({ tags: z.object({ at: z.object({}) }) }).message).toMatch(
      /^pool "sessions": tags: .*"at"/,
    );
    expect(() => definePool("Sessions", { payload: Session })).toThrow(/pool "Sessions" is not a valid name/);
  });
});
