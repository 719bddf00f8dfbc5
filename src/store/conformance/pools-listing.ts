import { expect } from "vitest";
import type { ItemState } from "../../protocol/pool.ts";
import { FORGET_REFILL_MS, type Refill } from "../pool-store.ts";
import { HandClock, range, siteCase, type StoreHarness } from "./harness.ts";
import { declaredPool, isConserved, item, items, type Pool } from "./pool-driver.ts";

export function poolListing(harness: StoreHarness): void {
  siteCase(harness, "pages, counts and stats of each state, oldest put first", async ({ open }) => {
    const clock = new HandClock();
    const pool = await declaredPool(await open(clock.options), { strategy: "lru" });
    const expected: Record<ItemState, string[]> = { free: [], held: [], cooling: [], retired: [] };
    const states = Object.keys(expected) as ItemState[];
    for (const i of range(0, 92)) {
      const state = states[(i * 7) % 4] ?? "free";
      expected[state].push(`i${i}`);
      await pool.put(item(`i${i}`, { tags: { odd: [String(i % 2)], all: ["x"] } }));
      if (i % 10 === 0) clock.advance(1);
    }
    const all = await pool.claim("h", { n: 92 });
    for (const claim of all.toReversed()) {
      if (expected.free.includes(claim.id)) await pool.release(claim);
      if (expected.cooling.includes(claim.id)) await pool.change(claim, { do: "cool", ms: 5000 });
      if (expected.retired.includes(claim.id)) await pool.change(claim, { do: "retire", note: "" });
    }
    for (const state of states) {
      for (const n of [1, 5, 23, 100]) {
        expect({ state, n, ids: await pool.ids(state, {}, n) }).toEqual({ state, n, ids: expected[state] });
        const page = await pool.store.pools.page({ pool: "p", state, where: { all: ["x"] }, n });
        expect(page.items).toHaveLength(Math.min(n, 23));
        expect(page.items[0]).toEqual(await pool.get(page.items[0]?.id ?? ""));
        if (n === 100) expect(page.next).toBeUndefined();
      }
      const odd = expected[state].filter((id) => Number(id.slice(1)) % 2 === 1);
      expect(await pool.ids(state, { odd: ["1"], all: ["x", "y"] }, 3)).toEqual(odd);
      expect((await pool.count({ odd: ["1"] }))[state] ?? 0).toBe(odd.length);
      expect(await pool.ids(state, { odd: ["2"] })).toEqual([]);
    }
    const stats = await pool.stats();
    expect(stats.counts).toEqual({ free: 23, held: 23, cooling: 23, retired: 23 });
    expect(await pool.store.pools.count({ pool: "p", where: {} })).toEqual(stats.counts);
    expect(isConserved(stats)).toBe(true);
  });

  siteCase(harness, "what does not change is on exactly one page, whatever else does", async ({ open }) => {
    const pool = await declaredPool(await open(new HandClock().options));
    await pool.put(...items(range(0, 30).map((i) => `t${i}`)));
    const seen: string[] = [];
    let cursor: string | undefined;
    for (let i = 0; ; i++) {
      const more = cursor === undefined ? {} : { cursor };
      const page = await pool.store.pools.page({ pool: "p", state: "free", where: {}, n: 4, ...more });
      seen.push(...page.items.map(({ id }) => id));
      if (page.next === undefined) break;
      cursor = page.next;
      // The last that was seen goes (the cursor's own), one that was not seen goes, and a new one comes.
      await pool.remove(seen.at(-1) ?? "");
      await pool.retire(`t${29 - i}`);
      await pool.put(item(`new${i}`));
    }
    expect(new Set(seen).size).toBe(seen.length);
    const still = (await pool.ids("free")).filter((id) => id.startsWith("t"));
    expect(still.length).toBeGreaterThan(10);
    expect(seen).toEqual(expect.arrayContaining(still));
  });

  siteCase(harness, "refills are kept, one for each where, until they are replaced", async ({ open }) => {
    const [pool, other] = [await declaredPool(await open()), await declaredPool(await open(), {}, "other")];
    const refill = (where: Refill["where"], more: Partial<Refill> = {}): Refill => ({
      where,
      below: 3,
      queue: "harvest",
      payload: '{ "n": 1.0, "s": "é 🚀", "a": [], "o": {} }',
      maxAttempts: 5,
      timeoutMs: 60_000,
      ...more,
    });
    const put = (one: Refill) => pool.store.pools.putRefill({ pool: pool.pool, refill: one });
    const listed = async ({ store, pool: name } = pool) =>
      (await store.pools.refills({ pool: name })).toSorted((a, b) =>
        JSON.stringify(a) < JSON.stringify(b) ? -1 : 1,
      );
    expect(await listed()).toEqual([]);
    await put(refill({ t: ["x"] }));
    await put(refill({}));
    await put(refill({ t: ["x", "y"] }));
    await put(refill({ t: ["x"], u: ["1"] }));
    const rest = [refill({ t: ["x", "y"] }), refill({ t: ["x"], u: ["1"] }), refill({})];
    expect(await listed()).toEqual(
      [refill({ t: ["x"] }), ...rest].toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)),
    );
    const changed = refill(
      { t: ["x"] },
      { below: 0, queue: "q.2", payload: "[]", maxAttempts: 1, timeoutMs: 0 },
    );
    await put(changed);
    await put(changed);
    expect(await listed()).toEqual(
      [changed, ...rest].toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)),
    );
    expect(await listed(other)).toEqual([]);
  });

  siteCase(
    harness,
    "refills that nobody has left again for a week are forgotten, but for those that are waited with",
    async ({ open }) => {
      const clock = new HandClock();
      const store = await open(clock.options);
      const [pool, other] = [await declaredPool(store), await declaredPool(store, {}, "other")];
      const terms = { below: 1, queue: "q", payload: "1", maxAttempts: 1, timeoutMs: 0 };
      const left = async ({ pool: name }: Pool, ...users: string[]) => {
        for (const user of users)
          await store.pools.putRefill({ pool: name, refill: { where: { user: [user] }, ...terms } });
      };
      const listed = async ({ pool: name }: Pool) =>
        (await store.pools.refills({ pool: name })).map(({ where }) => String(where["user"]?.[0])).toSorted();
      const many = range(0, 700).map((n) => `u${n}`);
      await left(pool, ...many, "waits", "again");
      await left(other, "a");
      clock.advance(86_400_000);
      await left(pool, "again", "late");
      clock.advance(FORGET_REFILL_MS - 86_400_001);
      const patience = { where: { user: ["waits"] }, waitFor: { patienceMs: 1000 } };
      expect(await pool.ask("h", { ...patience, request: "r" })).toMatchObject({ position: 0 });
      await pool.sweep();
      expect(await listed(pool)).toHaveLength(703);
      clock.advance(1);
      await pool.sweep();
      expect(await listed(pool)).toEqual(["again", "late", "waits"]);
      // What is forgotten is left anew like any other.
      await left(pool, "u1");
      expect(await listed(pool)).toEqual(["again", "late", "u1", "waits"]);
      expect(await listed(other)).toEqual(["a"]);
      clock.advance(86_400_000);
      await pool.sweep();
      expect(await listed(pool)).toEqual(["u1", "waits"]);
      clock.advance(FORGET_REFILL_MS);
      for (const one of [pool, other]) await one.sweep();
      expect([await listed(pool), await listed(other)]).toEqual([[], []]);
    },
  );
}
