import { expect } from "vitest";
import { HandClock, openThree, range, siteCase, type StoreHarness } from "./harness.ts";
import { declared, payloads, peekAll, Producer, unaccounted } from "./producer.ts";

export function streamBounds(harness: StoreHarness): void {
  siteCase(
    harness,
    "maxLength 10 holds after each of 5000 pushes, and the newest survive",
    async ({ open }) => {
      const store = await open();
      const producer = await declared(store, "t", { maxLength: 10 });
      for (const i of range(1, 5001)) {
        const expected = { outcome: "pushed", length: Math.min(i, 10), trimmed: i > 10 ? 1 : 0, expired: 0 };
        expect(await producer.push(i)).toEqual(expected);
        if (i % 25 === 0) expect(await store.streams.length({ stream: "t" })).toBe(10);
      }
      expect(await peekAll(store, "t")).toEqual(range(4991, 5001));
      const stats = await store.streams.stats({ stream: "t" });
      expect(stats).toMatchObject({ length: 10, pushed: 5000, trimmed: 4990, popped: 0, expired: 0 });
    },
  );

  siteCase(harness, "a batch larger than maxLength leaves its newest entries", async ({ open }) => {
    const store = await open();
    const producer = await declared(store, "t", { maxLength: 10 });
    await producer.push(...range(0, 3));
    const result = await producer.push(...range(3, 28));
    expect(result).toEqual({ outcome: "pushed", length: 10, trimmed: 18, expired: 0 });
    expect(await peekAll(store, "t")).toEqual(range(18, 28));
    expect(await store.streams.stats({ stream: "t" })).toMatchObject({ pushed: 28, trimmed: 18 });
    expect(await producer.push(...range(28, 12_028))).toMatchObject({ length: 10, trimmed: 12_000 });
    expect(await peekAll(store, "t")).toEqual(range(12_018, 12_028));
  });

  siteCase(harness, "maxLength 1 keeps the last entry", async ({ open }) => {
    const store = await open();
    const producer = await declared(store, "t", { maxLength: 1 });
    for (const i of range(0, 5)) expect(await producer.push(i)).toMatchObject({ length: 1 });
    expect(payloads(await store.streams.pop({ stream: "t", n: 5 }))).toEqual([4]);
  });

  siteCase(harness, "60 000 pushes with nobody reading leave the newest 50 000", async ({ open }) => {
    const store = await open();
    const producer = await declared(store, "t", { maxLength: 50_000, ttlMs: 3_600_000 });
    for (const from of range(0, 60)) await producer.push(...range(from * 1000, from * 1000 + 1000));
    expect(await store.streams.stats({ stream: "t" })).toMatchObject({
      length: 50_000,
      pushed: 60_000,
      trimmed: 10_000,
      expired: 0,
    });
    expect(payloads(await store.streams.pop({ stream: "t", n: 2 }))).toEqual([10_000, 10_001]);
    expect(await unaccounted(store, "t")).toBe(0);
  });

  siteCase(harness, "maxLength holds while several producers push at once", async (site) => {
    const stores = await openThree(site);
    await declared(stores[0], "t", { maxLength: 10 });
    const work = { busy: true };
    const lengths: number[] = [];
    const watcher = (async () => {
      while (work.busy) lengths.push(await stores[2].streams.length({ stream: "t" }));
    })();
    const results = await Promise.all(
      stores.map(async (store) => {
        const producer = new Producer(store, "t");
        const mine = [];
        for (const i of range(0, 60)) mine.push(await producer.push(...range(0, 1 + (i % 4))));
        return mine;
      }),
    );
    work.busy = false;
    await watcher;
    expect(Math.max(...lengths)).toBe(10);
    for (const result of results.flat())
      expect(result.outcome === "pushed" && result.length <= 10).toBe(true);
    const trimmed = results.flat().reduce((sum, r) => sum + (r.outcome === "pushed" ? r.trimmed : 0), 0);
    expect(await stores[0].streams.stats({ stream: "t" })).toMatchObject({ trimmed, pushed: trimmed + 10 });
  });

  siteCase(harness, "a narrower declaration holds from the next push on", async ({ open }) => {
    const store = await open();
    const producer = await declared(store, "t");
    await producer.push(...range(0, 20));
    await declared(store, "t", { maxLength: 5 });
    expect(await producer.push(20)).toMatchObject({ outcome: "pushed", length: 5 });
    expect(await peekAll(store, "t")).toEqual(range(16, 21));
    expect(await store.streams.stats({ stream: "t" })).toMatchObject({ pushed: 21, trimmed: 16 });
  });

  siteCase(
    harness,
    "an expired entry is seen by nobody, though nothing was pushed since",
    async ({ open }) => {
      const clock = new HandClock();
      const store = await open(clock.options);
      const producer = await declared(store, "t", { ttlMs: 1000 });
      await producer.push(...range(0, 10));
      clock.advance(999);
      expect(await store.streams.length({ stream: "t" })).toBe(10);
      expect(await store.streams.stats({ stream: "t" })).toMatchObject({
        length: 10,
        oldestTs: clock.ms - 999,
      });
      clock.advance(1);
      expect(await store.streams.length({ stream: "t" })).toBe(0);
      expect(await store.streams.peek({ stream: "t", n: 10 })).toEqual([]);
      expect(await store.streams.stats({ stream: "t" })).toMatchObject({
        length: 0,
        oldestTs: null,
        pushed: 10,
        expired: 10,
        popped: 0,
      });
      expect(await store.streams.pop({ stream: "t", n: 10 })).toEqual([]);
      expect(await store.streams.stats({ stream: "t" })).toMatchObject({ expired: 10, popped: 0 });
    },
  );

  siteCase(harness, "age counts for each entry: the young ones stay", async ({ open }) => {
    const clock = new HandClock();
    const store = await open(clock.options);
    const producer = await declared(store, "t");
    await producer.push("old", "old too");
    clock.advance(30_000);
    await producer.push("young");
    clock.advance(30_000);
    expect(await peekAll(store, "t")).toEqual(["young"]);
    expect(await store.streams.stats({ stream: "t" })).toMatchObject({
      oldestTs: clock.ms - 30_000,
      expired: 2,
    });
    expect(payloads(await store.streams.pop({ stream: "t", n: 5 }))).toEqual(["young"]);
    expect(await unaccounted(store, "t")).toBe(0);
  });

  siteCase(harness, "a push prunes by age first, then by length", async ({ open }) => {
    const clock = new HandClock();
    const store = await open(clock.options);
    const producer = await declared(store, "t", { maxLength: 6 });
    await producer.push(1, 2, 3);
    clock.advance(40_000);
    await producer.push(4, 5);
    clock.advance(20_000);
    expect(await producer.push(6, 7, 8, 9)).toEqual({ outcome: "pushed", length: 6, trimmed: 0, expired: 3 });
    expect(await producer.push(10)).toEqual({ outcome: "pushed", length: 6, trimmed: 1, expired: 0 });
    expect(await peekAll(store, "t")).toEqual([5, 6, 7, 8, 9, 10]);
    expect(await store.streams.stats({ stream: "t" })).toMatchObject({ expired: 3, trimmed: 1, pushed: 10 });
  });

  siteCase(harness, "sweep frees what expired, counts it once, and nothing else", async ({ open }) => {
    const clock = new HandClock();
    const store = await open(clock.options);
    const producer = await declared(store, "t");
    await producer.push(...range(0, 2500));
    clock.advance(30_000);
    await producer.push("young");
    expect(await store.streams.sweep({ stream: "t" })).toEqual({ expired: 0 });
    clock.advance(30_000);
    expect(await store.streams.sweep({ stream: "t" })).toEqual({ expired: 2500 });
    expect(await store.streams.sweep({ stream: "t" })).toEqual({ expired: 0 });
    expect(await peekAll(store, "t")).toEqual(["young"]);
    expect(await store.streams.stats({ stream: "t" })).toMatchObject({
      expired: 2500,
      length: 1,
      pushed: 2501,
    });
    expect(await store.streams.sweep({ stream: "never-declared" })).toEqual({ expired: 0 });
  });
}
