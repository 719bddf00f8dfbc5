import { expect } from "vitest";
import type { HolderChange } from "../pool-store.ts";
import { HandClock, range, siteCase, type StoreHarness } from "./harness.ts";
import { declaredPool, HOLD_MS, isConserved, item, items, type Pool } from "./pool-driver.ts";

/** That an item is retired for this reason and nothing brings it back. */
async function staysRetired(pool: Pool, clock: HandClock, id: string, reason: string): Promise<void> {
  const { retired, ...record } = await pool.get(id);
  expect({ id, state: record.state, reason: retired?.reason }).toEqual({ id, state: "retired", reason });
  clock.advance(60_000);
  expect(await pool.put(item(id))).toEqual(["exists"]);
  await pool.sweep();
  expect(await pool.claimIds("late", { where: {} })).not.toContain(id);
  await pool.lose("late");
  expect(await pool.retire(id, "again")).toBe("retired");
  expect((await pool.get(id)).retired).toEqual(retired);
  expect(await pool.state(id)).toBe("retired");
}

export function poolEnds(harness: StoreHarness): void {
  siteCase(harness, "field case 20: retire inside a successful run is not undone", async ({ open }) => {
    const clock = new HandClock();
    const pool = await declaredPool(await open(clock.options), { cooldownMs: 10, maxUses: 1 });
    await pool.put(...items(["a", "b", "c"]));
    const [a, b, c] = await pool.claim("h", { n: 3 });
    if (!a || !b || !c) throw new Error("three were there");
    // The run returns: what it holds is released. Or it throws, and its holder is lost. Or its lease expires.
    await pool.change(a, { do: "retire", note: "banned" });
    expect(await pool.release(a)).toEqual(["lease-lost"]);
    await pool.change(b, { do: "retire", note: "banned" });
    expect(await pool.lose("h")).toBe(1);
    clock.advance(HOLD_MS);
    await pool.sweep();
    expect(await pool.count()).toEqual({ retired: 3 });
    expect((await pool.get("a")).retired).toMatchObject({ reason: "asked", note: "banned" });
    await staysRetired(pool, clock, "a", "asked");
    await staysRetired(pool, clock, "b", "asked");
    await staysRetired(pool, clock, "c", "max-uses");
    expect((await pool.stats()).totals).toMatchObject({ retired: 3, put: 3 });
  });

  siteCase(harness, "whoever is not the holder retires an item in any state", async ({ open }) => {
    const clock = new HandClock();
    const pool = await declaredPool(await open(clock.options));
    await pool.put(...items(["held", "cooling", "free", "other"]));
    const [held, cooling] = await pool.claim("h", { n: 2, autoExtend: true });
    if (!held || !cooling) throw new Error("two were there");
    await pool.change(cooling, { do: "cool", ms: 1000 });
    for (const id of ["held", "cooling", "free"]) expect(await pool.retire(id, `why ${id}`)).toBe("retired");
    expect(await pool.retire("nobody")).toBe("unknown");
    expect(await pool.release(held)).toEqual(["lease-lost"]);
    expect((await pool.keep("h")).held).toEqual([[]]);
    for (const id of ["held", "cooling", "free"]) {
      const retired = { reason: "asked", note: `why ${id}` };
      expect(await pool.get(id)).toMatchObject({ retired, holder: null, coolUntil: null });
    }
    for (const id of ["held", "cooling", "free"]) await staysRetired(pool, clock, id, "asked");
    expect(await pool.count()).toEqual({ retired: 3, free: 1 });
    expect(isConserved(await pool.stats())).toBe(true);
  });

  siteCase(harness, "remove takes an item away in any state, and its id is free again", async ({ open }) => {
    const clock = new HandClock();
    const pool = await declaredPool(await open(clock.options));
    await pool.put(...items(["held", "cooling", "free", "retired"], { tags: { t: ["1"] } }));
    const [held, cooling] = await pool.claim("h", { n: 2 });
    if (!held || !cooling) throw new Error("two were there");
    await pool.change(cooling, { do: "cool", ms: 1000 });
    await pool.retire("retired");
    for (const id of ["held", "cooling", "free", "retired"]) {
      expect(await pool.remove(id)).toBe("removed");
      expect([await pool.remove(id), await pool.state(id)]).toEqual(["unknown", undefined]);
    }
    expect([await pool.count({ t: ["1"] }), await pool.release(held)]).toEqual([{}, ["lease-lost"]]);
    clock.advance(HOLD_MS);
    expect(await pool.sweep()).toEqual({ released: 0, expired: 0, retired: 0, forgotten: 0 });
    const { totals } = await pool.stats();
    expect(totals).toMatchObject({
      put: 4,
      removed: 3,
      retired: 1,
      claimed: 2,
      released: 2,
      leasesExpired: 0,
    });
    expect(await pool.put(...items(["held", "retired"]))).toEqual(["put", "put"]);
    expect(await pool.get("retired")).toMatchObject({ state: "free", retired: null, uses: 0 });
    expect(await pool.count({ t: ["1"] })).toEqual({});
    expect(isConserved(await pool.stats())).toBe(true);
  });

  siteCase(harness, "cool: rests so long, and at least for the pool's cool-down", async ({ open }) => {
    const clock = new HandClock();
    const pool = await declaredPool(await open(clock.options), { cooldownMs: 100 });
    const born = clock.ms;
    await pool.put(...items(["a", "b", "c", "d"]));
    const [a, b, c] = await pool.claim("h", { n: 4 });
    if (!a || !b || !c) throw new Error("four were there");
    expect(await pool.change(a, { do: "cool", ms: 500 })).toEqual({ outcome: "done", until: null, score: 0 });
    await pool.change(b, { do: "cool", ms: 1 });
    await pool.release(c);
    for (const [id, until] of [
      ["a", 500],
      ["b", 100],
      ["c", 100],
    ] as const)
      expect(await pool.get(id)).toMatchObject({ state: "cooling", coolUntil: born + until, holder: null });
    expect(await pool.count()).toEqual({ cooling: 3, held: 1 });
    clock.advance(99);
    expect(await pool.ask("i")).toMatchObject({ outcome: "none", nextFreeAt: born + 100 });
    clock.advance(1);
    expect(await pool.claimIds("i", { n: 2 })).toEqual(["b", "c"]);
    clock.ms = born + 499;
    await pool.sweep();
    expect(await pool.claim("i")).toEqual([]);
    clock.ms = born + 500;
    await pool.sweep();
    expect(await pool.get("a")).toMatchObject({ state: "free", coolUntil: null, lastUsedAt: born });
    // An expired lease cools from its end: `d` until the cool-down after it.
    clock.ms = born + HOLD_MS + 99;
    await pool.sweep();
    expect(await pool.get("d")).toMatchObject({ state: "cooling", coolUntil: born + HOLD_MS + 100 });
    clock.advance(1);
    expect(await pool.claimIds("i", { n: 2 })).toEqual(["a", "d"]);
  });

  siteCase(
    harness,
    "maxUses: retired with the release after so many claims, however it ends",
    async ({ open }) => {
      const clock = new HandClock();
      const pool = await declaredPool(await open(clock.options), { maxUses: 2, cooldownMs: 1 });
      const ends: ((claim: { id: string; token: string }) => Promise<unknown>)[] = [
        (claim) => pool.release(claim),
        (claim) => pool.change(claim, { do: "cool", ms: 5000 }),
        () => pool.lose("h"),
        async () => {
          clock.advance(HOLD_MS);
          await pool.sweep();
        },
      ];
      for (const [i, end] of ends.entries()) {
        await pool.put(item(`i${i}`));
        await pool.release(await pool.claimOne("h"));
        clock.advance(1);
        const second = await pool.claimOne("h");
        expect(second).toMatchObject({ id: `i${i}`, uses: 2 });
        expect(await pool.state(`i${i}`)).toBe("held");
        await end(second);
        expect(await pool.get(`i${i}`)).toMatchObject({ state: "retired", holder: null, coolUntil: null });
        await staysRetired(pool, clock, `i${i}`, "max-uses");
      }
      expect((await pool.stats()).totals).toMatchObject({ put: 4, retired: 4, claimed: 8, leasesExpired: 1 });
    },
  );

  siteCase(harness, "a score is ok minus bad; at the limit the claim's end retires", async ({ open }) => {
    const clock = new HandClock();
    const pool = await declaredPool(await open(clock.options), { retireAtScore: -2 });
    await pool.put(...items(["a", "b"]));
    const report = (what: "ok" | "bad"): HolderChange => ({ do: "report", what });
    const a = await pool.claimOne("h");
    for (const [what, score] of [
      ["ok", 1],
      ["bad", 0],
      ["bad", -1],
    ] as const)
      expect(await pool.change(a, report(what))).toEqual({ outcome: "done", until: a.until, score });
    expect(await pool.change(a, { do: "release" })).toEqual({ outcome: "done", until: null, score: -1 });
    expect(await pool.get("a")).toMatchObject({ state: "free", score: -1 });
    const again = await pool.claimOne("h");
    expect(again).toMatchObject({ id: "a", score: -1 });
    expect(await pool.change(again, report("bad"))).toMatchObject({ score: -2 });
    expect(await pool.get("a")).toMatchObject({ state: "held", score: -2 });
    await pool.change(again, report("bad"));
    await pool.release(again);
    await staysRetired(pool, clock, "a", "score");
    // Without a limit it falls for ever.
    await declaredPool(pool.store, { retireAtScore: null });
    const b = await pool.claimOne("h");
    for (const _ of range(0, 30)) await pool.change(b, report("bad"));
    await pool.release(b);
    expect(await pool.get("b")).toMatchObject({ state: "free", score: -30 });
    // A limit of 0 is a limit: who has none but good reports stays.
    await declaredPool(pool.store, { retireAtScore: 0 });
    await pool.put(item("c"));
    await pool.release(await pool.claimOne("h"));
    expect((await pool.get("b")).retired).toMatchObject({ reason: "score" });
    const c = await pool.claimOne("h");
    await pool.change(c, report("ok"));
    await pool.release(c);
    expect(await pool.state("c")).toBe("free");
  });
}
