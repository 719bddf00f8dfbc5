import * as fc from "fast-check";
import { expect } from "vitest";
import { HandClock, siteCase, type StoreHarness } from "./harness.ts";
import { BOUNDS, declared, entry, payloads, type Producer } from "./producer.ts";
import type { Store } from "../store.ts";

const TTL = 60_000;

/** What a stream is, in the fewest words: a list, its bounds and its counters. */
class Model {
  entries: { value: number; ts: number }[] = [];
  pushed = 0;
  popped = 0;
  trimmed = 0;
  expired = 0;
  invalid = 0;
  readonly #maxLength: number;

  constructor(maxLength: number) {
    this.#maxLength = maxLength;
  }

  expire(now: number): void {
    const alive = this.entries.filter(({ ts }) => now - ts < TTL);
    this.expired += this.entries.length - alive.length;
    this.entries = alive;
  }

  push(values: readonly number[], now: number): { length: number; trimmed: number } {
    this.expire(now);
    this.entries.push(...values.map((value) => ({ value, ts: now })));
    this.pushed += values.length;
    const trimmed = Math.max(0, this.entries.length - this.#maxLength);
    this.entries.splice(0, trimmed);
    this.trimmed += trimmed;
    return { length: this.entries.length, trimmed };
  }

  pop(n: number, now: number): number[] {
    this.expire(now);
    const gone = this.entries.splice(0, n);
    this.popped += gone.length;
    return gone.map(({ value }) => value);
  }
}

type Op =
  | { do: "push" | "pop" | "peek" | "quarantine"; n: number }
  | { do: "advance"; ms: number }
  | { do: "sweep" | "length" | "repeat" };

const n = fc.integer({ min: 1, max: 9 });
const OPS = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant("push" as const), n }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("pop" as const), n }) },
    {
      weight: 3,
      arbitrary: fc.record({ do: fc.constant("advance" as const), ms: fc.integer({ min: 1, max: 45_000 }) }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("peek" as const, "quarantine" as const), n }) },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constantFrom("sweep" as const, "length" as const, "repeat" as const) }),
    },
  ),
  { maxLength: 30 },
);

export function streamModel(harness: StoreHarness): void {
  siteCase(harness, "any sequence of calls does what a plain list with bounds would do", async ({ open }) => {
    const clock = new HandClock();
    const store = await open(clock.options);
    let run = 0;
    const property = fc.asyncProperty(fc.integer({ min: 1, max: 12 }), OPS, async (maxLength, ops) => {
      run += 1;
      await follow(store, clock, `s${run}`, maxLength, ops);
    });
    await fc.assert(property, { numRuns: 60 });
  });
}

async function follow(store: Store, clock: HandClock, stream: string, maxLength: number, ops: readonly Op[]) {
  const model = new Model(maxLength);
  const producer = await declared(store, stream, { maxLength, ttlMs: TTL });
  let next = 0;
  for (const op of ops) {
    if (op.do === "push") next = await push(producer, model, clock, next, op.n);
    else await step(store, clock, stream, model, producer, op);
    model.expire(clock.ms);
    expect(await store.streams.stats({ stream })).toEqual({
      length: model.entries.length,
      bounds: { ...BOUNDS, maxLength, ttlMs: TTL },
      oldestTs: model.entries[0]?.ts ?? null,
      pushed: model.pushed,
      popped: model.popped,
      trimmed: model.trimmed,
      expired: model.expired,
      invalid: model.invalid,
    });
  }
}

async function push(producer: Producer, model: Model, clock: HandClock, next: number, count: number) {
  const values = Array.from({ length: count }, (_, i) => next + i);
  expect(await producer.push(...values)).toMatchObject({
    outcome: "pushed",
    ...model.push(values, clock.ms),
  });
  return next + count;
}

async function step(
  store: Store,
  clock: HandClock,
  stream: string,
  model: Model,
  producer: Producer,
  op: Exclude<Op, { do: "push" }>,
): Promise<void> {
  const { streams } = store;
  switch (op.do) {
    case "pop":
      expect(payloads(await streams.pop({ stream, n: op.n }))).toEqual(model.pop(op.n, clock.ms));
      return;
    case "peek": {
      const seen = payloads((await streams.peek({ stream, n: op.n })).map(({ raw }) => raw));
      expect(seen).toEqual(model.entries.slice(0, op.n).map(({ value }) => value));
      return;
    }
    case "length":
      expect(await streams.length({ stream })).toBe(model.entries.length);
      return;
    case "advance":
      clock.advance(op.ms);
      return;
    case "sweep":
      await streams.sweep({ stream });
      return;
    case "repeat":
      if (producer.seq > 0) expect(await producer.repeat([entry("again")])).toEqual({ outcome: "duplicate" });
      return;
    case "quarantine":
      await streams.quarantine({
        stream,
        entries: Array.from({ length: op.n }, () => ({ raw: "x", reason: "y" })),
      });
      model.invalid += op.n;
  }
}
