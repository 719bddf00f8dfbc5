import { expect } from "vitest";
import type { ClaimedItem } from "../../protocol/pool.ts";
import { HandClock, openThree, range, type Site, siteCase, type StoreHarness } from "./harness.ts";
import { declaredPool, HOLD_MS, isConserved, item, items, newRequest, Pool } from "./pool-driver.ts";

const TAKERS = 50;

/** One pool as seen by three connections, which take turns: the nth call goes by the nth. */
async function three(site: Site, settings: Parameters<typeof declaredPool>[1] = {}, clock = new HandClock()) {
  const stores = await openThree(site, clock.options);
  const pool = await declaredPool(stores[0], settings);
  const all = stores.map((store) => new Pool(store));
  return { pool, clock, by: (n: number) => all[n % 3] as Pool };
}

export function poolClaims(harness: StoreHarness): void {
  siteCase(harness, `of ${TAKERS} takers at once no two hold one item`, async (site) => {
    for (const strategy of ["lru", "fifo", "random"] as const) {
      const { pool, by } = await three(site, { strategy });
      await declaredPool(pool.store, { strategy });
      const ids = range(0, 30).map((i) => `${strategy}${i}`);
      const where = { s: [strategy] };
      await pool.put(...items(ids, { tags: where }));
      const got = await Promise.all(range(0, TAKERS).map((i) => by(i).claim(`h${i}`, { where })));
      expect(
        got
          .flat()
          .map(({ id }) => id)
          .toSorted(),
      ).toEqual(ids.toSorted());
      expect(got.every((claims) => claims.length <= 1)).toBe(true);
      expect(new Set(got.flat().map(({ token }) => token)).size).toBe(30);
    }
  });

  siteCase(harness, "holders that come and go never meet", async (site) => {
    const { pool, by } = await three(site, { strategy: "lru" });
    await pool.put(...items(["a", "b", "c", "d", "e"]));
    const hands = new Map<string, string>();
    const met: string[] = [];
    let claimed = 0;
    const come = async (who: number) => {
      for (const i of range(0, 12)) {
        const claims = await by(who + i).claim(`h${who}`, { n: 1 + (i % 2) });
        for (const { id, token } of claims) {
          if (hands.has(id)) met.push(id);
          hands.set(id, token);
          claimed += 1;
        }
        await Promise.resolve();
        for (const { id } of claims) hands.delete(id);
        for (const claim of claims) expect(await by(who).release(claim)).toEqual(["done"]);
      }
    };
    await Promise.all(range(0, TAKERS).map((who) => come(who)));
    expect(met).toEqual([]);
    expect(claimed).toBeGreaterThan(TAKERS);
    const stats = await pool.stats();
    expect(stats.totals).toMatchObject({ claimed, released: claimed, leasesExpired: 0 });
    expect(await pool.count()).toEqual({ free: 5 });
    expect(isConserved(stats)).toBe(true);
  });

  siteCase(harness, "field case 19: usage limit exceeded under concurrency", async (site) => {
    const { pool, by } = await three(site, { maxUses: 1 });
    const ids = range(0, 10).map((i) => `i${i}`);
    await pool.put(...items(ids));
    const got = await Promise.all(
      range(0, 50).map(async (i) => {
        const claims = await by(i).claim(`h${i}`);
        if (i % 2 === 0) await by(i + 1).release(...claims);
        return claims;
      }),
    );
    const claims = got.flat();
    expect(got.filter(({ length }) => length === 0)).toHaveLength(40);
    expect(claims.map(({ id }) => id).toSorted()).toEqual(ids);
    expect(claims.every(({ uses }) => uses === 1)).toBe(true);
    await Promise.all(claims.map((claim, i) => by(i).release(claim)));
    const counts = await pool.count();
    expect(counts).toEqual({ retired: 10 });
    for (const id of ids)
      expect(await pool.get(id)).toMatchObject({
        uses: 1,
        state: "retired",
        retired: { reason: "max-uses" },
      });
    expect(await pool.claim("late")).toEqual([]);
    expect(isConserved(await pool.stats())).toBe(true);
  });

  siteCase(harness, "several at once: as many as asked for, or none", async (site) => {
    const { pool, by } = await three(site);
    await pool.put(...range(0, 10).map((i) => item(`i${i}`, { tags: { even: [String(i % 2 === 0)] } })));
    expect(await pool.ask("h", { n: 11 })).toMatchObject({
      outcome: "none",
      position: null,
      nextFreeAt: null,
    });
    expect(await pool.ask("h", { n: 6, where: { even: ["true"] } })).toMatchObject({ outcome: "none" });
    expect(await pool.count()).toEqual({ free: 10 });
    expect((await pool.stats()).totals.claimed).toBe(0);
    expect(await pool.claimIds("h", { n: 5, where: { even: ["true"] } })).toEqual([
      "i0",
      "i2",
      "i4",
      "i6",
      "i8",
    ]);
    expect(await pool.claim("h", { n: 6 })).toEqual([]);
    // Of takers of two at once, two get theirs, and one item stays.
    const got = await Promise.all(range(0, 20).map((i) => by(i).claim(`h${i}`, { n: 2 })));
    expect(got.filter(({ length }) => length === 0)).toHaveLength(18);
    expect(got.filter(({ length }) => length === 2)).toHaveLength(2);
    expect(await pool.count()).toEqual({ free: 1, held: 9 });
    for (const claims of got)
      for (const { token } of claims) expect(claims.filter((c) => c.token === token)).toHaveLength(1);
  });

  siteCase(harness, "a request that is repeated is answered with the claims it had", async (site) => {
    const { pool, clock, by } = await three(site);
    await pool.put(...items(["a", "b", "c", "d"]));
    const request = newRequest();
    const ask = { request, n: 2 };
    const first = await pool.claim("h", ask);
    clock.advance(10);
    for (const i of range(0, 3)) expect(await by(i).claim("h", ask)).toEqual(first);
    expect((await pool.stats()).totals.claimed).toBe(2);
    expect(await pool.get("a")).toMatchObject({ uses: 1 });
    // What one of many takers at once got is what they all get.
    const same = { request: newRequest() };
    const got = await Promise.all(range(0, 12).map((i) => by(i).claim("h", same)));
    expect(got).toEqual(range(0, 12).map(() => got[0]));
    expect(got[0]?.map(({ id }) => id)).toEqual(["c"]);
    // Of what is over by then, nothing is told: it is a new attempt.
    clock.advance(HOLD_MS);
    const anew = await pool.claim("h", ask);
    expect(anew.map(({ id }) => id)).toEqual(["a", "b"]);
    const tokens = new Set([...first, ...anew].map(({ token }: ClaimedItem) => token));
    expect(tokens.size).toBe(4);
    expect(await pool.release(...first)).toEqual(["lease-lost", "lease-lost"]);
    expect(await pool.release(...anew)).toEqual(["done", "done"]);
    expect(isConserved(await pool.stats())).toBe(true);
  });

  siteCase(harness, "a repeat tells of a changed item as it stands", async ({ open }) => {
    const clock = new HandClock();
    const pool = await declaredPool(await open(clock.options));
    await pool.put(...items(["a", "b"]));
    const ask = { request: newRequest(), n: 2 };
    const [a, b] = await pool.claim("h", ask);
    if (!a || !b) throw new Error("two were there");
    await pool.change(a, { do: "extend", holdMs: 99_000 });
    await pool.release(b);
    expect(await pool.claim("h", ask)).toMatchObject([{ id: "a", token: a.token, until: clock.ms + 99_000 }]);
    expect(await pool.count()).toEqual({ free: 1, held: 1 });
  });
}
