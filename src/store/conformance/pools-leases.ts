import { expect } from "vitest";
import type { ClaimedItem } from "../../protocol/pool.ts";
import { HandClock, range, siteCase, type StoreHarness } from "./harness.ts";
import { CHANGES, declaredPool, HOLD_MS, isConserved, item, items, type Pool } from "./pool-driver.ts";
import { isGrowing } from "./queue-driver.ts";

/** That nothing a holder can ask for does anything with this token. */
async function isLate(pool: Pool, claim: ClaimedItem): Promise<void> {
  const before = [await pool.find(claim.id), await pool.stats()];
  for (const change of CHANGES)
    expect({ change, ...(await pool.change(claim, change)) }).toEqual({ change, outcome: "lease-lost" });
  expect([await pool.find(claim.id), await pool.stats()]).toEqual(before);
}

export function poolLeases(harness: StoreHarness): void {
  siteCase(
    harness,
    "field case 18: a lease is not silently acquired again after its end",
    async ({ open }) => {
      const clock = new HandClock();
      const [pool, other] = [
        await declaredPool(await open(clock.options)),
        await declaredPool(await open(clock.options)),
      ];
      await pool.put(item("a"));
      const a = await pool.claimOne("A", { holdMs: 1000 });
      clock.advance(3000);
      const b = await other.claimOne("B", { holdMs: 1000 });
      await isLate(pool, a);
      expect(await other.release(b)).toEqual(["done"]);
      await isLate(pool, a);
      expect((await pool.keep("A")).held).toEqual([[]]);
      const next = await pool.claimOne("A", { holdMs: 1000 });
      expect(isGrowing([a.token, b.token, next.token])).toBe(true);
      await isLate(pool, a);
      await isLate(pool, b);
      expect(await pool.release(next)).toEqual(["done"]);
    },
  );

  siteCase(harness, "a claim is over at its end, also where nobody has looked", async ({ open }) => {
    const clock = new HandClock();
    const pool = await declaredPool(await open(clock.options));
    await pool.put(...items(["a", "b"]));
    const a = await pool.claimOne("h", { autoExtend: true });
    clock.advance(HOLD_MS - 1);
    expect(await pool.ask("i", { n: 2 })).toMatchObject({ outcome: "none", nextFreeAt: a.until });
    expect(await pool.change(a, { do: "report", what: "ok" })).toEqual({
      outcome: "done",
      until: a.until,
      score: 1,
    });
    clock.advance(1);
    await isLate(pool, a);
    expect((await pool.keep("h")).held).toEqual([[]]);
    await isLate(pool, a);
    expect(await pool.sweep()).toEqual({ released: 1, expired: 0, retired: 0, forgotten: 0 });
    expect(await pool.get("a")).toMatchObject({ state: "free", holder: null, lastUsedAt: a.until, score: 1 });
    expect((await pool.stats()).totals).toMatchObject({ claimed: 1, released: 0, leasesExpired: 1 });
    await isLate(pool, a);
  });

  siteCase(harness, "extend gives more time from now on, never less", async ({ open }) => {
    const clock = new HandClock();
    const pool = await declaredPool(await open(clock.options));
    await pool.put(item("a"));
    const a = await pool.claimOne("h");
    clock.advance(HOLD_MS - 1);
    const until = clock.ms + 5000;
    expect(await pool.change(a, { do: "extend", holdMs: 5000 })).toEqual({
      outcome: "done",
      until,
      score: 0,
    });
    expect(await pool.change(a, { do: "extend", holdMs: 10 })).toEqual({ outcome: "done", until, score: 0 });
    expect((await pool.get("a")).holder).toEqual({ by: "by h", since: clock.ms - HOLD_MS + 1, until });
    clock.ms = until - 1;
    expect(await pool.claim("i")).toEqual([]);
    clock.ms = until;
    const b = await pool.claimOne("i");
    expect(b).toMatchObject({ uses: 2, until: until + HOLD_MS });
    await isLate(pool, a);
  });

  for (const [how, end] of [
    ["released", (pool: Pool, claim: ClaimedItem) => pool.release(claim)],
    ["cooled", (pool: Pool, claim: ClaimedItem) => pool.change(claim, { do: "cool", ms: 1 })],
    [
      "retired by its holder",
      (pool: Pool, claim: ClaimedItem) => pool.change(claim, { do: "retire", note: "n" }),
    ],
    ["retired by somebody else", (pool: Pool, { id }: ClaimedItem) => pool.retire(id, "n")],
    ["removed", (pool: Pool, { id }: ClaimedItem) => pool.remove(id)],
    [
      "removed and put anew",
      async (pool: Pool, { id }: ClaimedItem) => {
        await pool.remove(id);
        await pool.put(item(id));
      },
    ],
    ["left", (pool: Pool) => pool.leave("left")],
    ["lost with its holder", (pool: Pool) => pool.lose("h")],
  ] as const)
    siteCase(harness, `a late token changes nothing: ${how}`, async ({ open }) => {
      const clock = new HandClock();
      const pool = await declaredPool(await open(clock.options));
      await pool.put(item("a"));
      const claim = await pool.claimOne("h", { request: "left" });
      await end(pool, claim);
      await isLate(pool, claim);
      clock.advance(1);
      const [next] = await pool.claim("i");
      await isLate(pool, claim);
      if (next !== undefined) expect(await pool.release(next)).toEqual(["done"]);
      expect(isConserved(await pool.stats())).toBe(true);
      expect(
        ["retired", "removed"].some((word) => how.startsWith(word) && how !== "removed and put anew"),
      ).toBe(next === undefined);
    });

  siteCase(harness, "a token counts for its own item alone", async ({ open }) => {
    const pool = await declaredPool(await open());
    await pool.put(...items(["a", "b"]));
    const [a, b] = await pool.claim("h", { n: 2 });
    if (!a || !b) throw new Error("two were there");
    await isLate(pool, { ...a, token: b.token });
    await isLate(pool, { ...a, id: "nobody" });
    for (const token of ["", "0", "x", `${a.token}0`, `-${a.token}`]) await isLate(pool, { ...a, token });
    expect(await pool.release(a, b)).toEqual(["done", "done"]);
  });

  siteCase(harness, "tokens grow with each claim, also over a loss of all data", async ({ open }) => {
    const clock = new HandClock();
    const [store, other] = [await open(clock.options), await open(clock.options)];
    const tokens: string[] = [];
    for (const _ of range(0, 2)) {
      for (const pool of [await declaredPool(store), await declaredPool(other)]) {
        await pool.put(...items(["a", "b", "c"]));
        const claims = await pool.claim("h", { n: 3 });
        tokens.push(...claims.map(({ token }) => token));
        await pool.release(...claims);
      }
      await store.wipe();
      clock.advance(1);
    }
    expect(tokens).toHaveLength(12);
    expect(isGrowing(tokens)).toBe(true);
    expect(BigInt(tokens[0] ?? "")).toBeGreaterThanOrEqual(BigInt(clock.ms - 2) * 1000n);
  });

  siteCase(
    harness,
    "many leases that end at once are all released, by claims or by a sweep",
    async ({ open }) => {
      const clock = new HandClock();
      const pool = await declaredPool(await open(clock.options), { strategy: "lru" });
      const ids = range(0, 700).map((i) => `i${i}`);
      await pool.put(...items(ids));
      expect(await pool.claim("h", { n: 700 })).toHaveLength(700);
      clock.advance(HOLD_MS);
      for (const _ of range(0, 7)) expect(await pool.claim("i", { n: 100 })).toHaveLength(100);
      clock.advance(HOLD_MS);
      expect(await pool.sweep()).toMatchObject({ released: 700 });
      expect(await pool.count()).toEqual({ free: 700 });
      expect(isConserved(await pool.stats())).toBe(true);
    },
  );
}
