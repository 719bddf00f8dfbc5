// Short (`npm test`): what travels through a stream and what does not, on SQLite in memory.
import { type } from "arktype";
import * as v from "valibot";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { fleetOn, type Fleet } from "../src/automation/fleet.ts";
import { defineStream } from "../src/contracts/stream.ts";
import { SILENT } from "../src/internal/log.ts";
import { entryTemplate } from "../src/protocol/envelope.ts";
import { openStore } from "../src/store/open.ts";
import type { Store } from "../src/store/store.ts";

let store: Store;
let fleet: Fleet;
const warn = vi.fn<(message: string, fields?: object) => void>();

beforeEach(async () => {
  warn.mockClear();
  store = await openStore("sqlite::memory:");
  fleet = fleetOn(store, { log: { ...SILENT, warn } });
});
afterEach(() => fleet.close());

const rawPayloads = async (stream: string) =>
  (await store.streams.peek({ stream, n: 100 })).map(
    ({ raw }) => (JSON.parse(raw) as { payload: unknown }).payload,
  );

describe("the wire carries the input form, the consumer gets the output", () => {
  it("with zod: defaults, coercions and transforms", async () => {
    const MEASURE = defineStream(
      "measure",
      z.object({
        at: z.coerce.date(),
        tries: z.number().default(3),
        size: z.string().transform((text) => text.length),
        big: z.coerce.bigint().optional(),
      }),
    );
    const given = { at: "2026-01-02T03:04:05.000Z", size: "four", big: "12345678901234567890" };
    await fleet.stream(MEASURE).push(given);
    expect(await rawPayloads("measure")).toEqual([given]);
    const [got] = await fleet.stream(MEASURE).pop();
    expect(got).toEqual({ at: new Date(given.at), tries: 3, size: 4, big: 12345678901234567890n });
  });

  it("with arktype", async () => {
    const ARK = defineStream("ark", type({ at: "string.date.iso.parse", n: "number = 5" }));
    await fleet.stream(ARK).push({ at: "2026-01-02T03:04:05.000Z" });
    expect(await rawPayloads("ark")).toEqual([{ at: "2026-01-02T03:04:05.000Z" }]);
    expect(await fleet.stream(ARK).pop()).toEqual([{ at: new Date("2026-01-02T03:04:05.000Z"), n: 5 }]);
  });

  it("with valibot", async () => {
    const VALI = defineStream("vali", v.object({ n: v.optional(v.number(), 5), tags: v.array(v.string()) }));
    await fleet.stream(VALI).push({ tags: [] });
    expect(await rawPayloads("vali")).toEqual([{ tags: [] }]);
    expect(await fleet.stream(VALI).pop()).toEqual([{ n: 5, tags: [] }]);
  });

  it("keeps empty lists and empty objects apart", async () => {
    const ANY = defineStream("any", z.unknown());
    const payload = { tags: [], m: {}, nested: [[], {}, [[]]] };
    await fleet.stream(ANY).push(payload);
    expect(await fleet.stream(ANY).pop()).toEqual([payload]);
  });

  it("checks with an asynchronous schema too", async () => {
    const SLOW = defineStream(
      "slow",
      z.string().refine(async (text) => Promise.resolve(text !== "bad"), "is bad"),
    );
    await expect(fleet.stream(SLOW).push("bad")).rejects.toThrow("is bad");
    await fleet.stream(SLOW).push("good");
    expect(await fleet.stream(SLOW).pop()).toEqual(["good"]);
  });
});

describe("a wrong payload", () => {
  const PING = defineStream("ping", z.object({ url: z.url(), ms: z.number() }), { maxPayloadBytes: 100 });

  it("is a TypeError that names the field, and nothing is written", async () => {
    const wrong = fleet.stream(PING).push({ url: "https://example.com", ms: "12" as unknown as number });
    await expect(wrong).rejects.toBeInstanceOf(TypeError);
    await expect(wrong).rejects.toMatchObject({
      code: "FLEET_PAYLOAD_INVALID",
      message: expect.stringMatching(/^stream "ping": payload: ms: /) as string,
      issues: [{ pointer: "/ms" }],
    });
    expect(await store.streams.stats({ stream: "ping" })).toBeUndefined();
  });

  it("is refused where JSON would lose something that the schema lets through", async () => {
    const ANY = defineStream("any", z.unknown());
    await expect(fleet.stream(ANY).push({ deep: [{ n: Number.NaN }] })).rejects.toThrow(
      "deep.0.n: NaN has no JSON form",
    );
    expect(await fleet.stream(ANY).length()).toBe(0);
  });

  it("is refused with both numbers when it is too large", async () => {
    const url = `https://example.com/${"x".repeat(100)}`;
    const bytes = JSON.stringify({ url, ms: 1 }).length;
    await expect(fleet.stream(PING).push({ url, ms: 1 })).rejects.toMatchObject({
      name: "TypeError",
      code: "FLEET_PAYLOAD_TOO_LARGE",
      message: expect.stringContaining(`has ${bytes} bytes, the limit is 100`) as string,
    });
    expect(await fleet.stream(PING).length()).toBe(0);
  });

  it("refuses odd options of push, pop and peek", async () => {
    const stream = fleet.stream(PING);
    const good = { url: "https://example.com", ms: 1 };
    await expect(stream.push(good, { id: "" })).rejects.toThrow("id must be a text of 1 to 128 characters");
    await expect(stream.pop({ n: 0 })).rejects.toThrow("n must be at least 1");
    await expect(stream.pop({ wait: 1 } as object)).rejects.toThrow('unknown option "wait"');
    await expect(stream.pop({ waitSeconds: -1 })).rejects.toThrow("waitSeconds must be at least 0");
    await expect(stream.peek({ n: 1.5 })).rejects.toThrow("n must be a whole number");
    expect(() => fleet.stream({ name: "ping" } as unknown as typeof PING)).toThrow(
      /expected a stream contract/,
    );
  });

  it("carries the id that it was given, and its envelope", async () => {
    await fleet.stream(PING).push({ url: "https://example.com", ms: 1 }, { id: "mine" });
    expect(await fleet.stream(PING).popEnvelopes()).toEqual([
      {
        id: "mine",
        slotId: null,
        ts: expect.any(Number) as number,
        payload: { url: "https://example.com", ms: 1 },
      },
    ]);
  });
});

describe("entries that a consumer cannot use", () => {
  const NUMBERS = defineStream("numbers", z.object({ n: z.number() }));
  const WIDER = defineStream("numbers", z.object({ n: z.union([z.number(), z.string()]) }));

  it("go to quarantine with their reason, are counted and logged, and the consumer goes on", async () => {
    for (const n of [1, "two", 3, "four", 5]) await fleet.stream(WIDER).push({ n });
    expect(await fleet.stream(NUMBERS).pop({ n: 10 })).toEqual([{ n: 1 }, { n: 3 }, { n: 5 }]);
    expect(await store.streams.stats({ stream: "numbers" })).toMatchObject({
      pushed: 5,
      popped: 5,
      invalid: 2,
      length: 0,
    });
    const aside = await store.streams.quarantined({ stream: "numbers", n: 10 });
    expect(aside.map(({ raw }) => (JSON.parse(raw) as { payload: object }).payload)).toEqual([
      { n: "four" },
      { n: "two" },
    ]);
    expect(aside[0]?.reason).toMatch(/^payload: n: /);
    expect(warn).toHaveBeenCalledOnce();
    expect(warn.mock.calls[0]?.[0]).toContain(
      "2 entries do not fit the consumer's schema and went to quarantine",
    );
  });

  it("do not make a pop come back empty while good ones lie behind them", async () => {
    for (const n of ["a", "b", "c", 4]) await fleet.stream(WIDER).push({ n });
    expect(await fleet.stream(NUMBERS).pop()).toEqual([{ n: 4 }]);
    expect(await fleet.stream(NUMBERS).pop()).toEqual([]);
  });

  it("do not stop a loop, also where they are no envelopes at all", async () => {
    await fleet.stream(NUMBERS).push({ n: 1 });
    // Garbage of another program: not JSON once it is put together.
    const garbage = { id: "g", head: "garbage ", tail: " }{" };
    await store.streams.push({
      stream: "numbers",
      entries: [garbage, entryTemplate("x", 0, '"text"')],
      op: { producer: "foreign", seq: 1 },
    });
    await fleet.stream(NUMBERS).push({ n: 2 });
    const got: number[] = [];
    for await (const { n } of fleet.stream(NUMBERS)) {
      got.push(n);
      if (got.length === 2) break;
    }
    expect(got).toEqual([1, 2]);
    const reasons = (await store.streams.quarantined({ stream: "numbers", n: 10 })).map(
      ({ reason }) => reason,
    );
    expect(reasons).toEqual([expect.stringContaining("payload:"), "not JSON"]);
  });

  it("stay where they are on a peek", async () => {
    for (const n of ["a", 2]) await fleet.stream(WIDER).push({ n });
    expect(await fleet.stream(NUMBERS).peek({ n: 10 })).toEqual([{ n: 2 }]);
    expect(await store.streams.stats({ stream: "numbers" })).toMatchObject({ length: 2, invalid: 0 });
  });
});
