import { expect } from "vitest";
import { HandClock, siteCase, type StoreHarness } from "./harness.ts";
import { declaredPool, HOLD_MS, isConserved, item, items, Pool, SETTINGS } from "./pool-driver.ts";
import { TEXTS } from "./streams-order.ts";

export function poolLife(harness: StoreHarness): void {
  siteCase(harness, "an item's life: put, held, released, held, retired", async ({ open }) => {
    const clock = new HandClock();
    const pool = await declaredPool(await open(clock.options));
    const born = clock.ms;
    expect(await pool.put(item("a", { ttlMs: 60_000 }))).toEqual(["put"]);
    const fresh = {
      id: "a",
      state: "free",
      payload: '{"id":"a"}',
      tagsJson: "{}",
      uses: 0,
      score: 0,
      putAt: born,
      expiresAt: born + 60_000,
      lastUsedAt: null,
      holder: null,
      coolUntil: null,
      retired: null,
    };
    expect(await pool.get("a")).toEqual(fresh);
    clock.advance(100);
    const claim = await pool.claimOne("h");
    const until = clock.ms + HOLD_MS;
    const { token, ...rest } = claim;
    expect(rest).toEqual({ id: "a", payload: '{"id":"a"}', tagsJson: "{}", uses: 1, score: 0, until });
    expect(BigInt(token)).toBeGreaterThanOrEqual(BigInt(clock.ms) * 1000n);
    const holder = { by: "by h", since: clock.ms, until };
    expect(await pool.get("a")).toEqual({ ...fresh, state: "held", uses: 1, holder });
    clock.advance(100);
    const done = { outcome: "done", until: null, score: 0 };
    expect(await pool.change(claim, { do: "release" })).toEqual(done);
    expect(await pool.get("a")).toEqual({ ...fresh, uses: 1, lastUsedAt: clock.ms });
    const again = await pool.claimOne("h2");
    expect(again).toMatchObject({ id: "a", uses: 2 });
    clock.advance(100);
    expect(await pool.change(again, { do: "retire", note: "worn out" })).toEqual(done);
    const retired = { reason: "asked", note: "worn out", at: clock.ms };
    expect(await pool.get("a")).toEqual({
      ...fresh,
      state: "retired",
      uses: 2,
      lastUsedAt: clock.ms,
      retired,
      expiresAt: expect.toSatisfy((at: number | null) => at === null || at === fresh.expiresAt) as number,
    });
    expect((await pool.stats()).totals).toEqual({
      put: 1,
      claimed: 2,
      released: 2,
      expired: 0,
      retired: 1,
      removed: 0,
      leasesExpired: 0,
    });
  });

  siteCase(harness, "the same id put again changes nothing, whatever its state", async ({ open }) => {
    const pool = await declaredPool(await open(new HandClock().options));
    const other = { payload: '"other"', tags: { x: ["1"] } };
    expect(await pool.put(item("a"), item("b"), item("a", other))).toEqual(["put", "put", "exists"]);
    expect(await pool.put(item("b", other), item("c"))).toEqual(["exists", "put"]);
    const [a, b, c] = await pool.claim("h", { n: 3 });
    if (!a || !b || !c) throw new Error("three were there");
    await pool.change(a, { do: "cool", ms: 1000 });
    await pool.change(b, { do: "retire", note: "" });
    expect(await pool.put(...items(["a", "b", "c"], other))).toEqual(["exists", "exists", "exists"]);
    for (const [id, state] of [
      ["a", "cooling"],
      ["b", "retired"],
      ["c", "held"],
    ] as const)
      expect(await pool.get(id)).toMatchObject({ state, payload: item(id).payload, tagsJson: "{}" });
    expect(await pool.count({ x: ["1"] })).toEqual({});
    expect((await pool.stats()).totals.put).toBe(3);
    expect(await pool.put()).toEqual([]);
  });

  siteCase(harness, "payloads, tags and names come back byte for byte", async ({ open }) => {
    const pool = await declaredPool(await open());
    const odd = TEXTS.map((text, i) =>
      item(`i${i}:é 🚀 {"}`, {
        payload: text,
        tagsJson: text,
        tags: { [`t${i}:é`]: [`v:${i} {}*?`], all: [text.slice(0, 50)] },
      }),
    );
    await pool.put(...odd);
    for (const [i, given] of odd.entries()) {
      const { id, payload, tagsJson } = given;
      expect(await pool.get(id)).toMatchObject({ id, payload, tagsJson, state: "free" });
      const claim = await pool.claimOne("h:é", { where: { [`t${i}:é`]: [`v:${i} {}*?`] } });
      expect(claim).toMatchObject({ id, payload, tagsJson });
      const next = TEXTS[(i + 1) % TEXTS.length] ?? "";
      await pool.change(claim, { do: "update", payload: next });
      expect(await pool.get(id)).toMatchObject({ payload: next, tagsJson });
      await pool.change(claim, { do: "retire", note: `é ${next.slice(0, 100)}` });
      expect((await pool.get(id)).retired).toMatchObject({ note: `é ${next.slice(0, 100)}` });
    }
    const page = await pool.store.pools.page({ pool: "p", state: "retired", where: {}, n: 100 });
    expect(page.items.map(({ id }) => id)).toEqual(odd.map(({ id }) => id));
  });

  siteCase(harness, "a pool that was never declared has no items", async ({ open }) => {
    const store = await open();
    const pool = new Pool(store, "never");
    const { pools } = store;
    expect(await pools.put({ pool: "never", items: [item("a")] })).toEqual({ outcome: "undeclared" });
    expect(await pool.ask("h")).toEqual({ outcome: "undeclared" });
    await pool.leave("r");
    expect(await pool.change({ id: "a", token: "1" }, { do: "release" })).toEqual({ outcome: "lease-lost" });
    expect([await pool.retire("a"), await pool.remove("a")]).toEqual(["unknown", "unknown"]);
    expect((await pool.keep("h", "i")).held).toEqual([[], []]);
    expect(await pool.lose("h")).toBe(0);
    expect(await pool.find("a")).toBeUndefined();
    expect(await pool.ids("free")).toEqual([]);
    expect(await pool.count()).toEqual({});
    expect(await pools.stats({ pool: "never" })).toBeUndefined();
    expect(await pool.sweep()).toEqual({ released: 0, expired: 0, retired: 0, forgotten: 0 });
    expect(await pools.refills({ pool: "never" })).toEqual([]);
    expect(await pools.list()).toEqual([]);
  });

  siteCase(harness, "settings are the owner's; a guest's count where there are none", async ({ open }) => {
    const { pools } = await open();
    const guest = { ...SETTINGS, maxUses: 3 };
    const owner = { ...SETTINGS, strategy: "random" as const, retireAtScore: -2, cooldownMs: 5, maxAgeMs: 7 };
    expect(await pools.declare({ pool: "z", settings: guest, as: "guest" })).toEqual(guest);
    expect(await pools.declare({ pool: "z", settings: owner, as: "owner" })).toEqual(owner);
    expect(await pools.declare({ pool: "z", settings: guest, as: "guest" })).toEqual(owner);
    expect((await pools.stats({ pool: "z" }))?.settings).toEqual(owner);
    for (const pool of ["a.b", "a", "a-b"]) await pools.declare({ pool, settings: guest, as: "guest" });
    expect(await pools.list()).toEqual(["a", "a-b", "a.b", "z"]);
  });

  siteCase(
    harness,
    "pools whose names begin alike do not mix, nor do two namespaces",
    async ({ open, openBeside }) => {
      const [store, beside] = [await open(), await openBeside("-b")];
      const pools = await Promise.all(["a", "a.b", "a-b", "ab"].map((name) => declaredPool(store, {}, name)));
      for (const pool of pools)
        await pool.put(item("same", { payload: JSON.stringify(pool.pool), tags: { t: ["1"] } }));
      const other = new Pool(beside, "a");
      expect(await beside.pools.list()).toEqual([]);
      expect(await other.find("same")).toBeUndefined();
      expect(await other.ask("h")).toEqual({ outcome: "undeclared" });
      await declaredPool(beside, {}, "a");
      expect(await other.ask("h", { where: { t: ["1"] } })).toMatchObject({ outcome: "none" });
      await other.put(item("there"));
      const held = await Promise.all(pools.map((pool) => pool.claimOne("h", { where: { t: ["1"] } })));
      expect(held.map(({ payload }) => payload)).toEqual(pools.map(({ pool }) => JSON.stringify(pool)));
      const theirs = await other.claimOne("h");
      expect(theirs.id).toBe("there");
      expect(await other.lose("h")).toBe(1);
      expect([await other.retire("same"), await other.remove("same")]).toEqual(["unknown", "unknown"]);
      for (const pool of pools) {
        expect(await pool.count()).toEqual({ held: 1 });
        expect(isConserved(await pool.stats())).toBe(true);
      }
      await beside.wipe();
      expect(await beside.pools.list()).toEqual([]);
      expect(await pools[0]?.release(held[0] ?? theirs)).toEqual(["done"]);
    },
  );
}
