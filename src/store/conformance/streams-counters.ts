import { expect } from "vitest";
import { HandClock, range, siteCase, type StoreHarness } from "./harness.ts";
import { BOUNDS, declared, entry, payloads, peekAll, Producer } from "./producer.ts";

const OTHER = { maxLength: 7, ttlMs: 5000, maxPayloadBytes: 1024 };

export function streamCounters(harness: StoreHarness): void {
  siteCase(harness, "an undeclared stream takes nothing and is empty", async ({ open }) => {
    const store = await open();
    const producer = new Producer(store, "t");
    const entries = [entry(1), entry(2)];
    expect(await producer.pushEntries(entries)).toEqual({ outcome: "undeclared" });
    expect(await store.streams.length({ stream: "t" })).toBe(0);
    expect(await store.streams.pop({ stream: "t", n: 5 })).toEqual([]);
    expect(await store.streams.peek({ stream: "t", n: 5 })).toEqual([]);
    expect(await store.streams.stats({ stream: "t" })).toBeUndefined();
    expect(await store.streams.list()).toEqual([]);
    // The refused call has used up no operation id.
    await declared(store, "t");
    expect(await producer.repeat(entries)).toMatchObject({ outcome: "pushed", length: 2 });
    expect(await peekAll(store, "t")).toEqual([1, 2]);
  });

  siteCase(harness, "a guest declares only while nobody has, an owner always", async ({ open }) => {
    const store = await open();
    const { streams } = store;
    expect(await streams.declare({ stream: "t", bounds: BOUNDS, as: "guest" })).toEqual(BOUNDS);
    expect(await streams.declare({ stream: "t", bounds: OTHER, as: "guest" })).toEqual(BOUNDS);
    expect((await streams.stats({ stream: "t" }))?.bounds).toEqual(BOUNDS);
    expect(await streams.declare({ stream: "t", bounds: OTHER, as: "owner" })).toEqual(OTHER);
    expect(await streams.declare({ stream: "t", bounds: BOUNDS, as: "guest" })).toEqual(OTHER);
    expect((await streams.stats({ stream: "t" }))?.bounds).toEqual(OTHER);
    expect(await streams.declare({ stream: "t", bounds: BOUNDS, as: "owner" })).toEqual(BOUNDS);
    expect((await streams.stats({ stream: "t" }))?.bounds).toEqual(BOUNDS);
  });

  siteCase(
    harness,
    "of many guests at once one sets the bounds and all are told the same",
    async ({ open }) => {
      const stores = await Promise.all(range(0, 3).map(() => open()));
      const answers = await Promise.all(
        range(0, 12).map((i) =>
          (stores[i % 3] as (typeof stores)[0]).streams.declare({
            stream: "t",
            bounds: { ...BOUNDS, maxLength: 100 + i },
            as: "guest",
          }),
        ),
      );
      expect(new Set(answers.map(({ maxLength }) => maxLength)).size).toBe(1);
    },
  );

  siteCase(harness, "a declaration touches neither entries nor counters", async ({ open }) => {
    const store = await open();
    const producer = await declared(store, "t");
    await producer.push(1, 2, 3);
    await store.streams.pop({ stream: "t", n: 1 });
    await declared(store, "t", { maxLength: 50 });
    expect(await store.streams.stats({ stream: "t" })).toMatchObject({ length: 2, pushed: 3, popped: 1 });
    expect(await producer.push(4)).toMatchObject({ outcome: "pushed", length: 3 });
  });

  siteCase(harness, "a fresh stream has all counters at zero", async ({ open }) => {
    const store = await open();
    await declared(store, "t");
    expect(await store.streams.stats({ stream: "t" })).toEqual({
      length: 0,
      bounds: BOUNDS,
      oldestTs: null,
      pushed: 0,
      popped: 0,
      trimmed: 0,
      expired: 0,
      invalid: 0,
    });
  });

  siteCase(harness, "a repeated operation writes nothing", async ({ open }) => {
    const store = await open();
    const producer = await declared(store, "t");
    const entries = [entry("once")];
    expect(await producer.pushEntries(entries)).toMatchObject({ outcome: "pushed", length: 1 });
    expect(await producer.repeat(entries)).toEqual({ outcome: "duplicate" });
    expect(await producer.repeat([entry("other text, same number")])).toEqual({ outcome: "duplicate" });
    expect(await peekAll(store, "t")).toEqual(["once"]);
    // Also when the entry is gone, and for numbers before the last.
    await store.streams.pop({ stream: "t", n: 1 });
    expect(await producer.repeat(entries)).toEqual({ outcome: "duplicate" });
    await producer.push("next");
    const op = { producer: producer.id, seq: 1 };
    expect(await store.streams.push({ stream: "t", entries, op })).toEqual({ outcome: "duplicate" });
    expect(await store.streams.stats({ stream: "t" })).toMatchObject({ pushed: 2, popped: 1, length: 1 });
  });

  siteCase(
    harness,
    "operation ids belong to one producer and one stream; a gap is no duplicate",
    async ({ open }) => {
      const store = await open();
      const one = await declared(store, "t");
      const other = new Producer(store, "t");
      await one.push("a");
      expect(await other.push("b")).toMatchObject({ outcome: "pushed", length: 2 });
      await declared(store, "u");
      const op = { producer: one.id, seq: 1 };
      expect(await store.streams.push({ stream: "u", entries: [entry("c")], op })).toMatchObject({
        outcome: "pushed",
      });
      one.seq += 3;
      expect(await one.push("after lost calls")).toMatchObject({ outcome: "pushed", length: 3 });
      for (const seq of range(10, 121)) {
        const entries = [entry(seq)];
        expect(
          await store.streams.push({ stream: "t", entries, op: { producer: one.id, seq } }),
        ).toMatchObject({
          outcome: "pushed",
        });
      }
    },
  );

  siteCase(harness, "of the same operation sent twice at once, one counts", async ({ open }) => {
    const [a, b] = await Promise.all([open(), open()]);
    await declared(a, "t");
    for (const seq of range(1, 41)) {
      const call = { stream: "t", entries: [entry(seq)], op: { producer: "p", seq } };
      const outcomes = await Promise.all([a.streams.push(call), b.streams.push(call)]);
      expect(outcomes.map(({ outcome }) => outcome).toSorted()).toEqual(["duplicate", "pushed"]);
    }
    expect(await peekAll(a, "t")).toEqual(range(1, 41));
  });

  siteCase(harness, "producers are remembered for an hour, then forgotten by a sweep", async ({ open }) => {
    const clock = new HandClock();
    const store = await open(clock.options);
    const producer = await declared(store, "t");
    const busy = new Producer(store, "t");
    const entries = [entry(1)];
    await producer.pushEntries(entries);
    await busy.push(2);
    clock.advance(3_599_000);
    await busy.push(3);
    await store.streams.sweep({ stream: "t" });
    expect(await producer.repeat(entries)).toEqual({ outcome: "duplicate" });
    clock.advance(3_598_000);
    await store.streams.sweep({ stream: "t" });
    expect(await busy.repeat([entry(3)])).toEqual({ outcome: "duplicate" });
    clock.advance(3_600_001);
    await store.streams.sweep({ stream: "t" });
    expect(await producer.repeat(entries)).toMatchObject({ outcome: "pushed" });
  });

  siteCase(harness, "pushed, popped, trimmed and expired add up", async ({ open }) => {
    const clock = new HandClock();
    const store = await open(clock.options);
    const producer = await declared(store, "t", { maxLength: 10 });
    await producer.push(...range(0, 12));
    expect(payloads(await store.streams.pop({ stream: "t", n: 3 }))).toEqual([2, 3, 4]);
    clock.advance(60_000);
    await producer.push("a", "b");
    await store.streams.quarantine({ stream: "t", entries: [{ raw: "x", reason: "no JSON" }] });
    expect(await store.streams.stats({ stream: "t" })).toEqual({
      length: 2,
      bounds: { ...BOUNDS, maxLength: 10 },
      oldestTs: clock.ms,
      pushed: 14,
      popped: 3,
      trimmed: 2,
      expired: 7,
      invalid: 1,
    });
  });

  if (harness.connections === "many") {
    siteCase(
      harness,
      "entries, bounds, counters and operation ids outlive their connection",
      async ({ open }) => {
        const first = await open();
        const producer = await declared(first, "t", { maxLength: 5 });
        await producer.push(...range(0, 7));
        await first.streams.pop({ stream: "t", n: 1 });
        await first.streams.quarantine({ stream: "t", entries: [{ raw: "x", reason: "y" }] });
        await first.close();
        const second = await open();
        expect(await second.streams.stats({ stream: "t" })).toMatchObject({
          length: 4,
          bounds: { ...BOUNDS, maxLength: 5 },
          pushed: 7,
          popped: 1,
          trimmed: 2,
          invalid: 1,
        });
        const op = { producer: producer.id, seq: 1 };
        expect(await second.streams.push({ stream: "t", entries: [entry(9)], op })).toEqual({
          outcome: "duplicate",
        });
        expect(await peekAll(second, "t")).toEqual([3, 4, 5, 6]);
      },
    );

    siteCase(harness, "a connection with a clock ahead sees entries expire", async ({ open }) => {
      const store = await open();
      const ahead = await open({ clockOffsetMs: 60_000 });
      await (await declared(store, "t")).push(1);
      expect(await store.streams.length({ stream: "t" })).toBe(1);
      expect(await ahead.streams.length({ stream: "t" })).toBe(0);
      expect(await ahead.streams.peek({ stream: "t", n: 1 })).toEqual([]);
      expect(await ahead.streams.pop({ stream: "t", n: 1 })).toEqual([]);
      expect(await ahead.streams.stats({ stream: "t" })).toMatchObject({ expired: 1, popped: 0, length: 0 });
    });
  }
}
