import { expect } from "vitest";
import { isFleetError } from "../../errors.ts";
import { entryTemplate, type EntryTemplate } from "../../protocol/envelope.ts";
import type { Store } from "../store.ts";
import { failureOf, HandClock, openThree, range, siteCase, type StoreHarness } from "./harness.ts";
import { declared, entry, payloads, peekAll, Producer, unaccounted, wire } from "./producer.ts";

export function streamOrder(harness: StoreHarness): void {
  siteCase(harness, "equal payloads within one millisecond are distinct entries", async ({ open }) => {
    const clock = new HandClock();
    const store = await open(clock.options);
    const producer = await declared(store, "t");
    for (const _ of range(0, 3)) await producer.push({ a: 1 });
    expect(await store.streams.length({ stream: "t" })).toBe(3);
    const raws = await store.streams.pop({ stream: "t", n: 10 });
    expect(payloads(raws)).toEqual([{ a: 1 }, { a: 1 }, { a: 1 }]);
    expect(new Set(raws.map((raw) => wire(raw).id)).size).toBe(3);
    expect(raws.map((raw) => wire(raw).ts)).toEqual([clock.ms, clock.ms, clock.ms]);
    expect(Object.keys(wire(raws[0] as string))).toEqual(["id", "slot_id", "ts", "payload"]);
  });

  siteCase(
    harness,
    "an entry's ts lies between the store's time before its push and after",
    async ({ open }) => {
      const store = await open();
      const producer = await declared(store, "t");
      for (const n of range(1, 60)) {
        const before = await store.now();
        await producer.push(...range(0, n));
        const after = await store.now();
        const stamps = (await store.streams.pop({ stream: "t", n: 100 })).map((raw) => wire(raw).ts);
        expect(stamps).toHaveLength(n);
        for (const ts of stamps) {
          expect(ts).toBeGreaterThanOrEqual(before);
          expect(ts).toBeLessThanOrEqual(after);
        }
      }
    },
  );

  siteCase(harness, "an id that looks like an envelope stays what it is", async ({ open }) => {
    const store = await open();
    const producer = await declared(store, "t");
    const ids = ['x","ts":0', '","ts":1790000000000', ',"ts":', "\\"];
    // Time and again: whatever the store puts into an entry or puts right in it depends on the moment.
    for (const _ of range(0, 20)) {
      await producer.pushEntries(ids.map((id) => entryTemplate(id, 3, '{"ts":5}')));
      const found = (await store.streams.pop({ stream: "t", n: 10 })).map((raw) => wire(raw));
      expect(found.map(({ id, payload }) => [id, payload])).toEqual(ids.map((id) => [id, { ts: 5 }]));
    }
  });

  siteCase(harness, "one template pushed twice is two entries", async ({ open }) => {
    const store = await open(new HandClock().options);
    const producer = await declared(store, "t");
    const twin = entry({ same: "id and text" });
    await producer.pushEntries([twin, twin]);
    await producer.pushEntries([twin]);
    expect(await store.streams.length({ stream: "t" })).toBe(3);
    expect(await store.streams.pop({ stream: "t", n: 10 })).toHaveLength(3);
  });

  siteCase(harness, "ties leave in push order, not in alphabetical order", async ({ open }) => {
    const store = await open(new HandClock().options);
    const producer = await declared(store, "t");
    for (const name of ["p1", "p2", "c3", "b4", "a5"]) await producer.push(name);
    expect(payloads(await store.streams.pop({ stream: "t", n: 5 }))).toEqual(["p1", "p2", "c3", "b4", "a5"]);
  });

  siteCase(
    harness,
    "10 000 pushes within one millisecond stay in order and expire together, to the millisecond",
    async ({ open }) => {
      const clock = new HandClock();
      const store = await open(clock.options);
      const producer = await declared(store, "t");
      for (const i of range(0, 10_000)) await producer.push(i);
      expect(await peekAll(store, "t")).toEqual(range(0, 10_000));
      const born = clock.ms;
      const all = await store.streams.peek({ stream: "t", n: 10_000 });
      const stamps = all.map(({ raw }) => wire(raw).ts);
      expect(stamps[0]).toBe(born);
      // A back end may have to spread so many entries over some milliseconds; each one's age counts from its own `ts`.
      const last = stamps.at(-1) as number;
      expect(last - born).toBeLessThan(10);
      for (const at of range(born + 59_999, last + 60_001)) {
        clock.ms = at;
        const alive = stamps.filter((ts) => at - ts < 60_000).length;
        expect({ at, length: await store.streams.length({ stream: "t" }) }).toEqual({ at, length: alive });
      }
      expect(await store.streams.pop({ stream: "t", n: 1 })).toEqual([]);
      expect(await store.streams.stats({ stream: "t" })).toMatchObject({ expired: 10_000, popped: 0 });
    },
    60_000,
  );

  siteCase(
    harness,
    "one push of 10 000 entries keeps their order, and one pop takes them all",
    async ({ open }) => {
      const store = await open();
      const producer = await declared(store, "t");
      const result = await producer.push(...range(0, 10_000));
      expect(result).toEqual({ outcome: "pushed", length: 10_000, trimmed: 0, expired: 0 });
      await producer.push(10_000);
      expect(payloads(await store.streams.pop({ stream: "t", n: 20_000 }))).toEqual(range(0, 10_001));
    },
  );

  siteCase(harness, "order survives a clock that steps back and forth", async ({ open }) => {
    const clock = new HandClock();
    const store = await open(clock.options);
    const producer = await declared(store, "t");
    await producer.push(1, 2);
    clock.advance(-3_600_000);
    await producer.push(3);
    await producer.push(4, 5);
    clock.advance(1);
    await producer.push(6);
    clock.advance(3_599_999);
    await producer.push(7);
    expect(await peekAll(store, "t")).toContain(7);
    const left = await peekAll(store, "t");
    expect(left).toEqual(left.toSorted((a, b) => Number(a) - Number(b)));
    expect(await unaccounted(store, "t")).toBe(0);
  });

  siteCase(harness, "a step back of some seconds loses nothing and keeps the order", async ({ open }) => {
    const clock = new HandClock();
    const store = await open(clock.options);
    const producer = await declared(store, "t");
    await producer.push(1);
    clock.advance(-5000);
    await producer.push(2);
    await producer.push(3, 4);
    clock.advance(1000);
    await producer.push(5);
    expect(payloads(await store.streams.pop({ stream: "t", n: 3 }))).toEqual([1, 2, 3]);
    await producer.push(6);
    expect(payloads(await store.streams.pop({ stream: "t", n: 9 }))).toEqual([4, 5, 6]);
  });

  siteCase(harness, "each of several producers keeps its own order", async (site) => {
    const stores = await openThree(site);
    const first = await declared(stores[0], "t");
    const producers = [first, ...stores.slice(1).map((store) => new Producer(store, "t"))];
    await Promise.all(
      producers.map(async (producer, who) => {
        for (const i of range(0, 150)) await producer.push({ who, i });
      }),
    );
    const all = (await peekAll(stores[0], "t")) as { who: number; i: number }[];
    expect(all).toHaveLength(450);
    for (const who of [0, 1, 2])
      expect(all.filter((one) => one.who === who).map((one) => one.i)).toEqual(range(0, 150));
  });

  siteCase(harness, "concurrent consumers never get the same entry and miss none", async (site) => {
    const stores = await openThree(site);
    const producer = await declared(stores[0], "t");
    for (const from of [0, 1000, 2000]) await producer.push(...range(from, from + 1000));
    const taken = await Promise.all(
      stores.flatMap((store, who) =>
        [1, 3].map(async (n) => {
          const mine: number[] = [];
          for (;;) {
            const got = payloads(await store.streams.pop({ stream: "t", n: n + who })) as number[];
            if (got.length === 0) return mine;
            mine.push(...got);
          }
        }),
      ),
    );
    for (const mine of taken) expect(mine).toEqual(mine.toSorted((a, b) => a - b));
    expect(taken.flat().toSorted((a, b) => a - b)).toEqual(range(0, 3000));
    expect(await unaccounted(stores[0], "t")).toBe(0);
  });

  siteCase(harness, "producers and consumers at work together lose and double nothing", async (site) => {
    const [a, b, c] = await openThree(site);
    await declared(a, "t");
    let producing = 2;
    const produce = async (store: Store, from: number) => {
      const producer = new Producer(store, "t");
      for (const i of range(0, 100)) await producer.push(...range(from + 5 * i, from + 5 * i + 5));
      producing -= 1;
    };
    const consume = async (store: Store) => {
      const mine: number[] = [];
      for (;;) {
        const last = producing === 0;
        const got = payloads(await store.streams.pop({ stream: "t", n: 7 })) as number[];
        mine.push(...got);
        if (got.length === 0 && last) return mine;
      }
    };
    const [, , one, two] = await Promise.all([produce(a, 0), produce(b, 500), consume(c), consume(a)]);
    expect([...one, ...two].toSorted((x, y) => x - y)).toEqual(range(0, 1000));
    expect(await unaccounted(a, "t")).toBe(0);
  });

  siteCase(harness, "peek and length do not remove, pop does", async ({ open }) => {
    const store = await open();
    const producer = await declared(store, "t");
    await producer.push(1, 2, 3);
    expect(await peekAll(store, "t")).toEqual([1, 2, 3]);
    expect(await peekAll(store, "t")).toEqual([1, 2, 3]);
    expect(payloads(await store.streams.pop({ stream: "t", n: 1 }))).toEqual([1]);
    expect(await store.streams.length({ stream: "t" })).toBe(2);
    expect(payloads(await store.streams.pop({ stream: "t", n: 9 }))).toEqual([2, 3]);
    expect(await store.streams.pop({ stream: "t", n: 9 })).toEqual([]);
  });

  siteCase(
    harness,
    "the newest are read from the end, and what comes behind them from there",
    async ({ open }) => {
      const clock = new HandClock();
      const store = await open(clock.options);
      const producer = await declared(store, "t", { ttlMs: 1000 });
      const newest = async (n: number) => {
        const found = await store.streams.peek({ stream: "t", n, newest: true });
        return { seen: payloads(found.map(({ raw }) => raw)), cursor: found.at(-1)?.cursor };
      };
      expect(await newest(5)).toEqual({ seen: [], cursor: undefined });
      await producer.push(0, 1, 2);
      clock.advance(500);
      await producer.push(3, 4, 5, 6);
      await store.streams.pop({ stream: "t", n: 1 });
      expect((await newest(3)).seen).toEqual([4, 5, 6]);
      expect((await newest(100)).seen).toEqual([1, 2, 3, 4, 5, 6]);
      const { cursor } = await newest(1);
      await producer.push(7);
      const behind = await store.streams.peek({
        stream: "t",
        n: 9,
        ...(cursor === undefined ? {} : { after: cursor }),
      });
      expect(payloads(behind.map(({ raw }) => raw))).toEqual([7]);
      expect(
        await store.streams.peek({ stream: "t", n: 9, newest: true, after: behind[0]?.cursor ?? "" }),
      ).toEqual([]);
      clock.advance(500);
      expect((await newest(100)).seen).toEqual([3, 4, 5, 6, 7]);
    },
  );

  siteCase(
    harness,
    "cursors page through entries of one millisecond and outlive their entry",
    async ({ open }) => {
      const store = await open(new HandClock().options);
      const producer = await declared(store, "t");
      await producer.push(...range(0, 500));
      for (const i of range(500, 1000)) await producer.push(i);
      const seen: unknown[] = [];
      let after: string | undefined;
      for (;;) {
        const page = await store.streams.peek({
          stream: "t",
          n: 70,
          ...(after === undefined ? {} : { after }),
        });
        if (page.length === 0) break;
        seen.push(...payloads(page.map(({ raw }) => raw)));
        after = page.at(-1)?.cursor;
      }
      expect(seen).toEqual(range(0, 1000));
      await store.streams.pop({ stream: "t", n: 1000 });
      expect(await store.streams.peek({ stream: "t", n: 5, after })).toEqual([]);
      await producer.push("new");
      const next = await store.streams.peek({ stream: "t", n: 5, after });
      expect(payloads(next.map(({ raw }) => raw))).toEqual(["new"]);
    },
  );

  siteCase(harness, "a cursor of another store is refused", async ({ open }) => {
    const { streams } = await open();
    const refused = async (after: string) =>
      isFleetError(await failureOf(() => streams.peek({ stream: "t", n: 1, after })), "FLEET_OPTION_INVALID");
    for (const after of ["nonsense", "-1", "1e3", " 12", "NaN", "0x10"])
      expect([after, await refused(after)]).toEqual([after, true]);
    // One as SQLite gives it, one as Redis does: each is at home in one of the two.
    const theirs = await Promise.all(["0000000000000001", "1781234567890.00001"].map(refused));
    expect(theirs.filter(Boolean)).toHaveLength(1);
  });

  siteCase(harness, "streams whose names begin alike do not mix", async ({ open }) => {
    const store = await open();
    for (const stream of ["a", "a.b", "a-b", "a_b", "ab"]) await (await declared(store, stream)).push(stream);
    for (const stream of ["a", "a.b", "a-b", "a_b", "ab"])
      expect(payloads(await store.streams.pop({ stream, n: 9 }))).toEqual([stream]);
    expect(await store.streams.list()).toEqual(["a", "a.b", "a-b", "a_b", "ab"].toSorted());
  });

  siteCase(harness, "the text of an entry comes back byte for byte", async ({ open }) => {
    const clock = new HandClock();
    const store = await open(clock.options);
    const producer = await declared(store, "t");
    const entries = TEXTS.map((payload, i): EntryTemplate => ({
      ...entry(i),
      tail: `,"payload":${payload}}`,
    }));
    await producer.pushEntries(entries.slice(0, 5));
    for (const one of entries.slice(5)) await producer.pushEntries([one]);
    const expected = entries.map(({ head, tail }) => `${head}${clock.ms}${tail}`);
    const peeked = await store.streams.peek({ stream: "t", n: 100 });
    expect(peeked.map(({ raw }) => raw)).toEqual(expected);
    expect(await store.streams.pop({ stream: "t", n: 100 })).toEqual(expected);
  });
}

/** JSON texts that something on the way could parse, re-encode, cut or take for an instruction. */
export const TEXTS = [
  '{"tags":[],"m":{},"n":1781234567890123,"big":130775545883395173}',
  "{}",
  "[]",
  "[[],{},[[]],null]",
  '{"a":1.0,"b":-0,"c":1e400,"d":0.1e-7,"e":12345678901234567890123}',
  '{ "spaces" : [ 1 , 2 ] ,\n\t"lines": true }',
  String.raw`"\u0000 \u0000\ud800 \udfff \/ \u00e9 \" \\ "`,
  JSON.stringify("grüße 日本語 🚀 \u2028\u2029 \u0001 e\u0301"),
  JSON.stringify("%s %d %1 {0} $1 $& \r\n :1\r\n$-1\r\n ' '' ; -- ]] [["),
  JSON.stringify("x".repeat(200_000) + "é".repeat(10_000)),
  String.raw`{"__proto__":{},"constructor":[],"":null}`,
];
