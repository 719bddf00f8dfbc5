import { expect } from "vitest";
import { HandClock, range, siteCase, type StoreHarness } from "./harness.ts";
import { declaredPool, HOLD_MS, isConserved, item, items, newRequest, Pool } from "./pool-driver.ts";

export function poolTime(harness: StoreHarness): void {
  siteCase(harness, "maxAge: retired so long after its put, or with its release", async ({ open }) => {
    const clock = new HandClock();
    const pool = await declaredPool(await open(clock.options), { maxAgeMs: 20_000 });
    const born = clock.ms;
    await pool.put(...items(["held", "cooling", "free"]));
    const [held, cooling] = await pool.claim("h", { n: 2, holdMs: 30_000 });
    if (!held || !cooling) throw new Error("two were there");
    await pool.change(cooling, { do: "cool", ms: 40_000 });
    clock.advance(19_999);
    await pool.put(item("young"));
    const free = await pool.claimOne("h");
    expect(free.id).toBe("free");
    await pool.release(free);
    clock.ms = born + 20_000;
    // Nobody has looked: yet it is not given out any more.
    expect(await pool.claimIds("i")).toEqual(["young"]);
    const swept = await pool.sweep();
    expect(swept).toMatchObject({ released: 0, expired: 0 });
    for (const id of ["free", "cooling"])
      expect(await pool.get(id)).toMatchObject({ state: "retired", retired: { reason: "max-age" } });
    expect(await pool.get("held")).toMatchObject({ state: "held" });
    await pool.release(held);
    expect((await pool.get("held")).retired).toMatchObject({ reason: "max-age", at: clock.ms });
    expect(await pool.claim("i")).toEqual([]);
    expect(await pool.count()).toEqual({ retired: 3, held: 1 });
    expect(isConserved(await pool.stats())).toBe(true);
  });

  siteCase(
    harness,
    "a time to live ends what is free or cooling, and what is held with its claim",
    async ({ open }) => {
      const clock = new HandClock();
      const pool = await declaredPool(await open(clock.options), { maxUses: 1 });
      await pool.put(...items(["held", "expires", "retires"], { ttlMs: 1000 }));
      const [held, expires, retires] = await pool.claim("h", { n: 3 });
      if (!held || !expires || !retires) throw new Error("three were there");
      await pool.put(...items(["free", "asked"], { ttlMs: 1000 }), item("ever"));
      await pool.retire("asked");
      await declaredPool(pool.store, { maxUses: 0 });
      await pool.put(item("cooling", { ttlMs: 1000, tags: { c: ["1"] } }));
      await pool.change(await pool.claimOne("h", { where: { c: ["1"] } }), { do: "cool", ms: 5000 });
      clock.advance(999);
      expect(await pool.claimIds("i", { n: 2 })).toEqual(["free", "ever"]);
      await pool.lose("i");
      clock.advance(1);
      expect(await pool.claimIds("i", { where: {} })).toEqual(["ever"]);
      await pool.sweep();
      expect([await pool.state("free"), await pool.state("cooling")]).toEqual([undefined, undefined]);
      expect(await pool.count()).toEqual({ held: 4, retired: 1 });
      expect(await pool.put(item("held"))).toEqual(["exists"]);
      await pool.change(retires, { do: "retire", note: "" });
      expect(await pool.change(held, { do: "release" })).toEqual({ outcome: "done", until: null, score: 0 });
      clock.advance(HOLD_MS);
      await pool.sweep();
      expect(await pool.count()).toEqual({ free: 1, retired: 2 });
      expect((await pool.get("retires")).retired).toMatchObject({ reason: "asked" });
      expect((await pool.stats()).totals).toMatchObject({ put: 7, expired: 4, retired: 2, removed: 0 });
      expect(isConserved(await pool.stats())).toBe(true);
    },
  );

  siteCase(harness, "a time to live is kept though a clock ahead has passed it", async ({ open }) => {
    const clock = new HandClock();
    const pool = await declaredPool(await open(clock.options));
    const ahead = new Pool(await open({ frozenNow: () => clock.ms + 1500 }));
    await pool.put(item("a", { ttlMs: 1000 }));
    const a = await pool.claimOne("h");
    await ahead.sweep();
    expect(await pool.release(a)).toEqual(["done"]);
    clock.advance(999);
    expect(await pool.sweep()).toMatchObject({ expired: 0 });
    clock.advance(1);
    expect(await pool.sweep()).toMatchObject({ expired: 1 });
    expect(await pool.count()).toEqual({});
  });

  siteCase(
    harness,
    "an id is free again once its time to live is over, though nobody has looked",
    async ({ open }) => {
      const clock = new HandClock();
      const pool = await declaredPool(await open(clock.options));
      await pool.put(item("a", { ttlMs: 1000 }));
      clock.advance(1000);
      expect(await pool.put(item("a", { payload: "2", ttlMs: 500 }))).toEqual(["put"]);
      expect(await pool.get("a")).toMatchObject({ payload: "2", putAt: clock.ms, expiresAt: clock.ms + 500 });
      expect((await pool.stats()).totals).toMatchObject({ put: 2, expired: 1 });
      await pool.sweep();
      expect(await pool.claimIds("h")).toEqual(["a"]);
      expect(isConserved(await pool.stats())).toBe(true);
    },
  );

  siteCase(
    harness,
    "what a claim's end decides: first its holder, then the time to live, uses, age, score",
    async ({ open }) => {
      const clock = new HandClock();
      const pool = await declaredPool(await open(clock.options), {});
      const ttlMs = 1000;
      await pool.put(...items(["asked", "gone"], { ttlMs }), ...items(["uses", "age", "score", "cool"]));
      const claims = await pool.claim("h", { n: 6 });
      const end = async (settings: Parameters<typeof declaredPool>[1]) => {
        await declaredPool(pool.store, settings);
        const claim = claims.shift();
        if (claim === undefined) throw new Error("six were there");
        await pool.change(claim, { do: "report", what: "bad" });
        if (claim.id === "asked") await pool.change(claim, { do: "retire", note: "" });
        else await pool.release(claim);
        const record = await pool.find(claim.id);
        return record?.retired?.reason ?? record?.state;
      };
      clock.advance(2000);
      const all = { maxUses: 1, maxAgeMs: 1500, retireAtScore: -1, cooldownMs: 9 };
      expect(await end(all)).toBe("asked");
      expect(await end(all)).toBeUndefined();
      expect(await end(all)).toBe("max-uses");
      expect(await end({ ...all, maxUses: 2 })).toBe("max-age");
      expect(await end({ ...all, maxUses: 2, maxAgeMs: 9000 })).toBe("score");
      expect(await end({ ...all, maxUses: 2, maxAgeMs: 9000, retireAtScore: -2 })).toBe("cooling");
    },
  );

  siteCase(harness, "sweep counts what time did, each once", async ({ open }) => {
    const clock = new HandClock();
    const pool = await declaredPool(await open(clock.options), { maxUses: 2 });
    await pool.put(...items(range(0, 40).map((i) => `h${i}`)));
    await pool.claim("h", { n: 40, holdMs: 1000 });
    await pool.put(
      ...items(
        range(0, 30).map((i) => `t${i}`),
        { ttlMs: 1000 },
      ),
    );
    await pool.claim("h", { n: 10, holdMs: 1000, where: {} });
    clock.advance(999);
    expect(await pool.sweep()).toEqual({ released: 0, expired: 0, retired: 0, forgotten: 0 });
    clock.advance(1);
    const sweeps = await Promise.all(range(0, 4).map(() => pool.sweep()));
    const sum = (what: "released" | "expired" | "retired") => sweeps.reduce((n, one) => n + one[what], 0);
    expect([sum("released"), sum("expired"), sum("retired")]).toEqual([50, 30, 0]);
    await pool.claim("h", { n: 40, holdMs: 1000 });
    await pool.put(...items(["x", "y"]));
    clock.advance(1000);
    expect(await pool.sweep()).toEqual({ released: 40, expired: 0, retired: 40, forgotten: 0 });
    expect((await pool.stats()).totals).toMatchObject({
      put: 72,
      expired: 30,
      retired: 40,
      leasesExpired: 90,
    });
    await declaredPool(pool.store, { maxAgeMs: 500 });
    clock.advance(500);
    expect(await pool.sweep()).toEqual({ released: 0, expired: 0, retired: 2, forgotten: 0 });
  });

  siteCase(harness, "retired items are kept for a time and up to a number, the newest", async ({ open }) => {
    const clock = new HandClock();
    const pool = await declaredPool(await open(clock.options), { keepRetiredMs: 1000, keepRetiredCount: 5 });
    const ids = range(0, 12).map((i) => `i${i}`);
    await pool.put(...items(ids), item("free"));
    for (const id of ids.toReversed()) {
      await pool.retire(id);
      clock.advance(10);
    }
    expect(await pool.sweep()).toEqual({ released: 0, expired: 0, retired: 0, forgotten: 7 });
    expect(await pool.ids("retired")).toEqual(["i0", "i1", "i2", "i3", "i4"]);
    clock.advance(1000 - 50);
    expect(await pool.sweep()).toMatchObject({ forgotten: 1 });
    clock.advance(9);
    expect(await pool.sweep()).toMatchObject({ forgotten: 0 });
    clock.advance(31);
    expect(await pool.sweep()).toMatchObject({ forgotten: 4 });
    expect([await pool.count(), await pool.state("i0")]).toEqual([{ free: 1 }, undefined]);
    expect((await pool.stats()).totals).toMatchObject({ put: 13, retired: 12, removed: 0 });
    expect(isConserved(await pool.stats())).toBe(true);
    expect(await pool.put(item("i0"))).toEqual(["put"]);
    await declaredPool(pool.store, { keepRetiredCount: 0 });
    await pool.retire("i0");
    expect(await pool.sweep()).toMatchObject({ forgotten: 1 });
    expect(await pool.claimIds("h", { n: 1, request: newRequest() })).toEqual(["free"]);
  });
}
