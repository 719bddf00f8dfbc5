import { describe, expect } from "vitest";
import type { User } from "../../protocol/topology.ts";
import { type EdgeCount, type EdgeRecord, MOST_EDGES } from "../edge-store.ts";
import type { Store } from "../store.ts";
import { HandClock, openThree, range, siteCase, type StoreHarness } from "./harness.ts";

const automation = (name: string): User => ({ kind: "automation", name });
const A = automation("a");
const pop = (name: string, count: number): EdgeCount => ({ direction: "pop", name, count });

/** What is kept, by who uses what. */
async function kept(store: Store): Promise<Record<string, Omit<EdgeRecord, "from" | "direction" | "name">>> {
  const { edges } = await store.edges.list();
  const shown = ({ from, direction, name }: EdgeRecord) => `${from.kind} ${from.name} ${direction} ${name}`;
  const found = Object.fromEntries(
    edges.map((edge) => {
      const { from: _from, direction: _direction, name: _name, ...rest } = edge;
      return [shown(edge), rest];
    }),
  );
  expect(Object.keys(found)).toHaveLength(edges.length);
  return found;
}
const counts = async (store: Store) =>
  Object.fromEntries(Object.entries(await kept(store)).map(([edge, { count }]) => [edge, count]));

/** All that `EdgeStore` promises. */
export function edgeConformance(harness: StoreHarness): void {
  describe("edges", () => {
    siteCase(harness, "counts add up per user, direction and name", async ({ open }) => {
      const [a, b] = await Promise.all([open(), open()]);
      expect((await a.edges.list()).edges).toEqual([]);
      const named: User = { kind: "external", name: "my cron  job: ü" };
      await a.edges.observe({ from: A, edges: [pop("x", 3), pop("y", 0)] });
      await b.edges.observe({ from: A, edges: [pop("x", 4), { direction: "emit", name: "x", count: 1 }] });
      await b.edges.observe({ from: automation("x"), edges: [pop("x", 5)] });
      await a.edges.observe({ from: named, edges: [{ direction: "push", name: "x", count: 6 }] });
      await a.edges.observe({
        from: { kind: "pool", name: "p" },
        edges: [{ direction: "refill", name: "q", count: 1 }],
      });
      await a.edges.observe({ from: A, edges: [] });
      // Twice in one call is as good as in two.
      await a.edges.observe({ from: A, edges: [pop("z", 1), pop("z", 2)] });
      expect(await counts(b)).toEqual({
        "automation a pop x": 7,
        "automation a pop y": 0,
        "automation a pop z": 3,
        "automation a emit x": 1,
        "automation x pop x": 5,
        "external my cron  job: ü push x": 6,
        "pool p refill q": 1,
      });
      const { edges } = await a.edges.list();
      expect(edges.filter(({ from }) => from.kind === "external").map(({ from }) => from)).toEqual([named]);
    });

    siteCase(harness, "an edge knows when it was seen first and last, by the store's clock", async (site) => {
      const clock = new HandClock();
      const [a, b] = await Promise.all([site.open(clock.options), site.open(clock.options)]);
      const start = clock.ms;
      await a.edges.observe({ from: A, edges: [pop("x", 2), pop("y", 2)] });
      clock.advance(5000);
      // Asked for, and nothing came: it is in use all the same.
      await b.edges.observe({ from: A, edges: [pop("x", 0)] });
      clock.advance(1);
      expect((await b.edges.list()).now).toBe(clock.ms);
      expect(await kept(b)).toMatchObject({
        "automation a pop x": { count: 2, firstSeenAt: start, lastSeenAt: start + 5000 },
        "automation a pop y": { count: 2, firstSeenAt: start, lastSeenAt: start },
      });
      // A clock that goes back takes nothing back.
      clock.advance(-60_000);
      await b.edges.observe({ from: A, edges: [pop("x", 1)] });
      expect(await kept(b)).toMatchObject({
        "automation a pop x": { count: 3, firstSeenAt: start, lastSeenAt: start + 5000 },
      });
    });

    siteCase(harness, "the rate is that of the last minute", async ({ open }) => {
      const clock = new HandClock();
      clock.ms = 30_000_000 * 60_000;
      const store = await open(clock.options);
      const rate = async () => (await kept(store))["automation a pop x"]?.perMinute;
      const add = (count: number) => store.edges.observe({ from: A, edges: [pop("x", count)] });
      await add(10);
      clock.advance(30_000);
      await add(20);
      expect(await rate()).toBe(30);
      // Of the minute before counts as much as lies within the last 60 s.
      clock.advance(45_000);
      expect(await rate()).toBe(22.5);
      await add(8);
      expect(await rate()).toBe(30.5);
      clock.advance(20_000);
      expect(await rate()).toBe(20.5);
      clock.advance(25_000);
      expect(await rate()).toBe(8);
      clock.advance(15_000);
      expect(await rate()).toBe(6);
      clock.advance(60_000);
      expect(await rate()).toBe(0);
      // After a pause nothing of old is counted as the minute before.
      await add(6);
      expect(await rate()).toBe(6);
      expect(await counts(store)).toEqual({ "automation a pop x": 44 });
      // What a clock that went back counts is counted in the minute that it was in.
      clock.advance(-60_000);
      await add(1);
      expect(await rate()).toBe(7);
    });

    siteCase(
      harness,
      "what was not seen for long is forgotten, and only that",
      async ({ open, openBeside }) => {
        const clock = new HandClock();
        const [store, beside] = [await open(clock.options), await openBeside("x", clock.options)];
        await store.edges.observe({ from: A, edges: [pop("x", 1), pop("y", 1)] });
        await beside.edges.observe({ from: A, edges: [pop("x", 1)] });
        clock.advance(999);
        expect(await store.edges.sweep({ unseenMs: 1000 })).toEqual({ forgotten: 0 });
        await store.edges.observe({ from: A, edges: [pop("y", 0)] });
        clock.advance(1);
        expect(await store.edges.sweep({ unseenMs: 1000 })).toEqual({ forgotten: 1 });
        expect(await counts(store)).toEqual({ "automation a pop y": 1 });
        expect(await counts(beside)).toEqual({ "automation a pop x": 1 });
        // Seen again it begins anew.
        await store.edges.observe({ from: A, edges: [pop("x", 5)] });
        expect(await kept(store)).toMatchObject({
          "automation a pop x": { count: 5, firstSeenAt: clock.ms },
        });
        await store.wipe();
        expect(await counts(store)).toEqual({});
        expect(await counts(beside)).toEqual({ "automation a pop x": 1 });
      },
    );

    siteCase(harness, "no more are kept than there may be: those seen longest ago go", async ({ open }) => {
      const clock = new HandClock();
      const store = await open(clock.options);
      const names = range(0, MOST_EDGES).map((i) => `n${i}`);
      for (const from of range(0, MOST_EDGES / 1000)) {
        const some = names.slice(from * 1000, (from + 1) * 1000);
        await store.edges.observe({ from: A, edges: some.map((name) => pop(name, 1)) });
        clock.advance(1);
      }
      expect((await store.edges.list()).edges).toHaveLength(MOST_EDGES);
      // All but one of the oldest thousand are seen again.
      await store.edges.observe({ from: A, edges: names.slice(1, 1000).map((name) => pop(name, 0)) });
      clock.advance(1);
      await store.edges.observe({ from: A, edges: [pop("more", 1)] });
      expect(Object.keys(await kept(store))).not.toContain("automation a pop n0");
      await store.edges.observe({ from: A, edges: range(0, 1000).map((i) => pop(`m${i}`, 1)) });
      const left = new Set((await store.edges.list()).edges.map(({ name }) => name));
      expect(left.size).toBe(MOST_EDGES);
      for (const name of ["n1", "n999", "n2000", "n4999", "more", "m0", "m999"]) expect(left).toContain(name);
      for (const name of ["n1000", "n1500", "n1999"]) expect(left).not.toContain(name);
    });

    siteCase(harness, "many who count at once lose nothing", async (site) => {
      const stores = await openThree(site);
      await Promise.all(
        range(0, 9).map(async (i) => {
          const { edges } = stores[i % 3] as Store;
          for (const _ of range(0, 20))
            await edges.observe({ from: A, edges: [pop("x", 1), pop(`y${i}`, 2)] });
        }),
      );
      expect(await counts(stores[0])).toMatchObject({ "automation a pop x": 180, "automation a pop y8": 40 });
    });
  });
}
