import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineQueue, isQueueContract, QUEUE_DEFAULTS } from "./queue.ts";
import type { QueueRateLimit } from "./rate-limit.ts";

const Page = z.object({ url: z.url() });
const refusal = (options: object) => {
  try {
    defineQueue("scraper", { payload: Page, ...options });
  } catch (error) {
    return error as Error & { code: string };
  }
  throw new Error(`was not refused: ${JSON.stringify(options)}`);
};

describe("defineQueue", () => {
  it("gives a frozen reference with the defaults, from a payload schema alone", () => {
    const contract = defineQueue("scraper", Page);
    expect(contract).toMatchObject({
      kind: "queue",
      name: "scraper",
      result: undefined,
      resultJsonSchema: null,
      options: { maxAttempts: 5, timeoutSeconds: 3600, ttlSeconds: 0, maxLength: 0, keyConcurrency: 1 },
    });
    expect(contract.options).toEqual(QUEUE_DEFAULTS);
    expect(contract.payload).toBe(Page);
    expect(contract.jsonSchema).toMatchObject({ type: "object", required: ["url"] });
    expect(Object.isFrozen(contract) && Object.isFrozen(contract.options)).toBe(true);
    expect(isQueueContract(contract)).toBe(true);
    expect(isQueueContract(Page)).toBe(false);
  });

  it("takes a result schema and options; what a backoff leaves out has its default", () => {
    const result = z.object({ at: z.coerce.date() });
    const contract = defineQueue("scraper", {
      payload: Page,
      result,
      maxAttempts: 2,
      backoff: { baseSeconds: 5 },
      maxLength: 10,
    });
    expect(contract.result).toBe(result);
    expect(contract.resultJsonSchema).toMatchObject({ type: "object" });
    expect(contract.options).toEqual({
      ...QUEUE_DEFAULTS,
      maxAttempts: 2,
      maxLength: 10,
      backoff: { baseSeconds: 5, capSeconds: 3600, jitter: 0.2 },
    });
  });

  it.each([Number.POSITIVE_INFINITY, Number.NaN, -1, 0, 1.5, 1001, "5", null])(
    "refuses maxAttempts: %o, naming the field and what came",
    (maxAttempts) => {
      const error = refusal({ maxAttempts });
      expect(error.code).toBe("FLEET_OPTION_INVALID");
      expect(error.message).toMatch(/^queue "scraper": maxAttempts must be .*, got /);
      expect(error.message).toContain(
        `got ${JSON.stringify(maxAttempts) === "null" ? maxAttempts : JSON.stringify(maxAttempts)}`,
      );
    },
  );

  it.each<[object, string]>([
    [{ maxAttemps: 3 }, 'unknown option "maxAttemps"; did you mean "maxAttempts"?'],
    [{ backoff: { base: 3 } }, 'queue "scraper": backoff: unknown option "base"'],
    [{ backoff: { jitter: 2 } }, "backoff: jitter must be at most 1, got 2"],
    [{ backoff: { baseSeconds: 0 } }, "backoff: baseSeconds must be above 0, got 0"],
    [{ timeoutSeconds: -1 }, "timeoutSeconds must be at least 0, got -1"],
    [{ timeoutSeconds: Number.POSITIVE_INFINITY }, "timeoutSeconds must be a finite number, got Infinity"],
    [{ keepSeconds: 1 }, "keepSeconds must be at least 60, got 1"],
    [{ keepCount: 0 }, "keepCount must be at least 1, got 0"],
    [{ keepFailedCount: 0 }, "keepFailedCount must be at least 1, got 0"],
    [{ maxPayloadBytes: 0 }, "maxPayloadBytes must be at least 1, got 0"],
    [{ crashLimit: 0 }, "crashLimit must be at least 1, got 0"],
  ])("refuses %o", (options, message) => {
    expect(refusal(options).message).toContain(message);
  });

  it("refuses what is no name and no schema, and schemas whose input cannot travel", () => {
    expect(() => defineQueue("No Name", Page)).toThrow('queue "No Name" is not a valid name');
    expect(() => defineQueue("q", 5 as never)).toThrow(
      'queue "q" must be a Standard Schema, or an object with `payload`',
    );
    expect(() => defineQueue("q", {} as never)).toThrow(
      'queue "q": payload must be a Standard Schema, got undefined',
    );
    expect(() => defineQueue("q", z.object({ at: z.date() }))).toThrow("z.iso.datetime()");
    expect(() => defineQueue("q", { payload: Page, result: z.bigint() })).toThrow('queue "q": result');
  });

  it("takes a rate limit, by default one of its own name, with all filled in", () => {
    const limited = (rateLimit: QueueRateLimit) =>
      defineQueue("scraper", { payload: Page, rateLimit }).options.rateLimit;
    expect(limited({ limit: 50, perSeconds: 1 })).toEqual({
      name: "scraper",
      key: "",
      cost: 1,
      windows: [{ limit: 50, perMs: 1000, burst: 1 }],
    });
    const windows = [
      { limit: 1000, perSeconds: 3600, burst: 100 },
      { limit: 10, perSeconds: 1, burst: 2 },
    ];
    expect(limited({ name: "example-api", key: "eu", cost: 2, windows })).toEqual({
      name: "example-api",
      key: "eu",
      cost: 2,
      windows: [
        { limit: 10, perMs: 1000, burst: 2 },
        { limit: 1000, perMs: 3_600_000, burst: 100 },
      ],
    });
  });

  it.each<[unknown, string]>([
    [5, 'queue "scraper": rateLimit: options must be an object, got 5'],
    [{}, "rateLimit: limit is missing"],
    [{ limit: 5 }, "rateLimit: perSeconds is missing"],
    [{ limit: 0, perSeconds: 1 }, "rateLimit: limit must be at least 1, got 0"],
    [{ limit: 5, perSecond: 1 }, 'rateLimit: unknown option "perSecond"; did you mean "perSeconds"?'],
    [{ limit: 5, perSeconds: 1, burst: 6 }, "rateLimit: burst must be at most limit, which is 5, got 6"],
    [{ limit: 5, perSeconds: 1, burst: 1, cost: 2 }, "rateLimit: a cost of 2 is more than may be taken"],
    [{ limit: 5, perSeconds: 1, windows: [{ limit: 1, perSeconds: 1 }] }, "not both"],
    [{ name: "No Name", limit: 5, perSeconds: 1 }, 'rate limit "No Name" is not a valid name'],
    [{ key: "a\0b", limit: 5, perSeconds: 1 }, "rateLimit: key must be a text"],
  ])("refuses rateLimit: %o", (rateLimit, message) => {
    expect(refusal({ rateLimit }).message).toContain(message);
  });
});
