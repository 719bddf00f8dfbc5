import { expect } from "vitest";
import type { ItemTags } from "../../protocol/pool.ts";
import { HandClock, openThree, range, siteCase, type StoreHarness } from "./harness.ts";
import { declaredPool, HOLD_MS, isConserved, item, items, newRequest, Pool } from "./pool-driver.ts";

export function poolSettings(harness: StoreHarness): void {
  siteCase(harness, "another strategy counts from the next claim on, for all items", async ({ open }) => {
    const clock = new HandClock();
    const store = await open(clock.options);
    const pool = await declaredPool(store, { strategy: "fifo" });
    const tags = { t: ["1"] };
    await pool.put(...items(["a", "b", "c", "d"], { tags }));
    const [a, b] = await pool.claim("h", { n: 2 });
    if (!a || !b) throw new Error("two were there");
    clock.advance(10);
    await pool.release(b);
    clock.advance(10);
    await pool.release(a);
    const order = async (strategy: "lru" | "fifo" | "random", where: ItemTags = {}) => {
      await declaredPool(store, { strategy });
      const request = newRequest();
      const ids = (await pool.claimIds("h", { n: 4, where, request })).join("");
      return { ids, undo: () => pool.leave(request) };
    };
    const lru = await order("lru");
    expect(lru.ids).toBe("cdba");
    await lru.undo();
    const fifo = await order("fifo", tags);
    expect(fifo.ids).toBe("abcd");
    await fifo.undo();
    const random = await order("random");
    expect(random.ids.split("").toSorted().join("")).toBe("abcd");
    await random.undo();
    expect((await order("fifo")).ids).toBe("abcd");
  });

  siteCase(
    harness,
    "another strategy counts for however many items, and for what is put and released meanwhile",
    async ({ open }) => {
      const clock = new HandClock();
      const store = await open(clock.options);
      const pool = await declaredPool(store, { strategy: "lru" });
      const tags = { t: ["1"] };
      const names = range(0, 1400).map((n) => `i${n}`);
      await pool.put(...items(names, { tags }));
      const used = await pool.claim("h", { n: 3 });
      clock.advance(10);
      await pool.release(...used.slice(0, 2).toReversed());
      const change = async (strategy: "lru" | "fifo" | "random", meanwhile: () => Promise<unknown>) =>
        Promise.all([declaredPool(store, { strategy }), meanwhile()]);
      const order = async (where: ItemTags) => {
        const request = newRequest();
        const ids = await pool.claimIds("g", { n: names.length + 1, where, request });
        await pool.leave(request);
        return ids;
      };
      await change("fifo", async () => {
        await pool.put(...items(["late"], { tags }));
        await pool.release(...used.slice(2));
      });
      for (const where of [{}, tags]) expect(await order(where)).toEqual([...names, "late"]);
      const [first] = await pool.claim("h");
      await change("random", () => pool.release(first as NonNullable<typeof first>));
      for (const where of [tags, {}]) {
        const drawn = await order(where);
        expect(drawn.toSorted()).toEqual([...names, "late"].toSorted());
        expect(drawn).not.toEqual([...names, "late"]);
      }
      clock.advance(10);
      const [again] = await pool.claim("h", { where: tags });
      clock.advance(10);
      await pool.release(again as NonNullable<typeof again>);
      await declaredPool(store, { strategy: "lru" });
      expect((await order(tags)).at(-1)).toBe(again?.id);
      expect(await pool.count()).toEqual({ free: 1401 });
      expect(await pool.count(tags)).toEqual({ free: 1401 });
      expect(isConserved(await pool.stats())).toBe(true);
    },
  );

  siteCase(harness, "other limits count from then on, for what is there too", async ({ open }) => {
    const clock = new HandClock();
    const store = await open(clock.options);
    const pool = await declaredPool(store, { cooldownMs: 1000 });
    await pool.put(...items(["used", "rests", "old"]));
    const [used, rests] = await pool.claim("h", { n: 2 });
    if (!used || !rests) throw new Error("two were there");
    await pool.release(rests);
    await declaredPool(store, { cooldownMs: 50, maxUses: 1 });
    // What rests already does so for as long as it was told; what is held goes by the new limit.
    expect((await pool.get("rests")).coolUntil).toBe(clock.ms + 1000);
    await pool.release(used);
    expect((await pool.get("used")).retired).toMatchObject({ reason: "max-uses" });
    clock.advance(1000);
    await declaredPool(store, { maxAgeMs: 1000 });
    expect(await pool.claim("i")).toEqual([]);
    await pool.sweep();
    expect(await pool.count()).toEqual({ retired: 3 });
    await declaredPool(store, { maxAgeMs: 500 });
    await pool.put(item("new"));
    clock.advance(400);
    await declaredPool(store);
    clock.advance(HOLD_MS);
    expect(await pool.claimIds("i")).toEqual(["new"]);
    expect(isConserved(await pool.stats())).toBe(true);
  });

  siteCase(harness, "of many puts at once of one id one is put, and each call is whole", async (site) => {
    const stores = await openThree(site);
    const pool = await declaredPool(stores[0]);
    const by = (n: number) => new Pool(stores[n % 3] ?? stores[0]);
    const ids = range(0, 5).map((i) => `i${i}`);
    const answers = await Promise.all(
      range(0, 20).map((i) => by(i).put(...items(ids, { payload: String(i), tags: { by: [String(i)] } }))),
    );
    const done = answers.findIndex(([first]) => first === "put");
    for (const [i, answer] of answers.entries())
      expect(answer).toEqual(ids.map(() => (i === done ? "put" : "exists")));
    for (const id of ids) expect((await pool.get(id)).payload).toBe(String(done));
    for (const i of range(0, 20))
      expect(await pool.count({ by: [String(i)] })).toEqual(i === done ? { free: 5 } : {});
    expect((await pool.stats()).totals.put).toBe(5);
  });

  siteCase(harness, "what somebody else ends while it is held ends once", async (site) => {
    const stores = await openThree(site);
    const pool = await declaredPool(stores[0]);
    const by = (n: number) => new Pool(stores[n % 3] ?? stores[0]);
    const ids = range(0, 40).map((i) => `i${i}`);
    await pool.put(...items(ids));
    const claims = await pool.claim("h", { n: 40 });
    const answers = await Promise.all([
      ...claims.map((claim, i) => by(i).change(claim, { do: "release" })),
      ...ids.map((id, i) => (i % 2 === 0 ? by(i + 1).retire(id, "by hand") : by(i + 1).remove(id))),
      ...range(0, 3).map((i) => by(i).lose("h")),
    ]);
    expect(answers).toHaveLength(83);
    const stats = await pool.stats();
    expect(stats.totals).toMatchObject({
      claimed: 40,
      released: 40,
      retired: 20,
      removed: 20,
      leasesExpired: 0,
    });
    expect(await pool.count()).toEqual({ retired: 20 });
    expect(isConserved(stats)).toBe(true);
  });
}
