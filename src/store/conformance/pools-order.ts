import { expect } from "vitest";
import { HandClock, range, siteCase, type StoreHarness } from "./harness.ts";
import { declaredPool, HOLD_MS, item, items, type Pool } from "./pool-driver.ts";

/** Claims one by one what is free, until nothing is. */
async function drain(pool: Pool): Promise<string> {
  let ids = "";
  for (;;) {
    const [id] = await pool.claimIds("drain");
    if (id === undefined) return ids;
    ids += id;
  }
}

export function poolOrder(harness: StoreHarness): void {
  siteCase(
    harness,
    "lru: the item released or put longest ago, also within one millisecond",
    async ({ open }) => {
      const clock = new HandClock();
      const pool = await declaredPool(await open(clock.options), { strategy: "lru" });
      await pool.put(...items(["d", "c"]));
      await pool.put(item("a"), item("b"));
      const [d, c] = await pool.claim("h", { n: 2 });
      if (!d || !c) throw new Error("two were there");
      await pool.release(c, d);
      await pool.put(item("e"));
      const again = [await pool.claimOne("h"), await pool.claimOne("h"), await pool.claimOne("h")];
      expect(again.map(({ id }) => id)).toEqual(["a", "b", "c"]);
      await pool.release(...again.toReversed());
      clock.advance(1);
      await pool.put(item("f"));
      expect(await drain(pool)).toBe("decbaf");
    },
  );

  siteCase(
    harness,
    "lru: expired leases count from their end, cool-downs from their beginning",
    async ({ open }) => {
      const clock = new HandClock();
      const pool = await declaredPool(await open(clock.options), { strategy: "lru" });
      await pool.put(...items(["a", "b", "c", "d", "e", "f"]));
      const [a, b, c, d, e, f] = await pool.claim("h", { n: 6 });
      if (!a || !b || !c || !d || !e || !f) throw new Error("six were there");
      await pool.change(a, { do: "extend", holdMs: 12_000 });
      await pool.change(e, { do: "extend", holdMs: 14_000 });
      clock.advance(1000);
      await pool.change(b, { do: "cool", ms: 16_000 });
      clock.advance(1000);
      await pool.change(c, { do: "cool", ms: 5000 });
      await pool.change(f, { do: "extend", holdMs: 60_000 });
      // At 10 s the lease of `d` is over, at 12 s that of `a`, at 14 s that of `e`; `f` is released at 13 s.
      clock.advance(11_000);
      await pool.release(f);
      clock.advance(5000);
      expect(await drain(pool)).toBe("bcdafe");
    },
  );

  siteCase(harness, "fifo: the item put first, whatever became of it", async ({ open }) => {
    const clock = new HandClock();
    const pool = await declaredPool(await open(clock.options), { strategy: "fifo" });
    await pool.put(...items(["c", "a", "d"]));
    await pool.put(item("b"));
    const [c, a] = await pool.claim("h", { n: 2 });
    if (!c || !a) throw new Error("two were there");
    await pool.release(a);
    await pool.change(c, { do: "cool", ms: 100 });
    const next = await pool.claimOne("h");
    expect(next.id).toBe("a");
    clock.advance(100);
    const first = await pool.claimOne("h");
    expect(first).toMatchObject({ id: "c", uses: 2 });
    await pool.release(next, first);
    clock.advance(100);
    expect(await drain(pool)).toBe("cadb");
    clock.advance(HOLD_MS);
    expect(await drain(pool)).toBe("cadb");
  });

  siteCase(harness, "random: each free item with equal chance, none twice", async ({ open }) => {
    const pool = await declaredPool(await open(), { strategy: "random" });
    const tags = { t: ["1"], u: ["1"] };
    await pool.put(...range(0, 8).map((i) => item(`i${i}`, { tags })), item("held", { tags }), item("no"));
    await pool.claimOne("h", { where: { t: ["1"] } });
    const held = (await pool.ids("held"))[0] ?? "";
    const seen: Record<string, number> = {};
    const pairs = new Set<string>();
    for (const i of range(0, 400)) {
      const where: Record<string, string[]> = i % 2 === 0 ? { t: ["1"] } : { t: ["1"], u: ["1", "2"] };
      const claims = await pool.claim("h", { where, n: 2 });
      const [one, two] = claims.map(({ id }) => id);
      expect(one).not.toBe(two);
      pairs.add(`${one} ${two}`);
      for (const { id } of claims) seen[id] = (seen[id] ?? 0) + 1;
      await pool.release(...claims);
    }
    // 100 of each are expected, with a standard deviation of 9.
    expect(Object.keys(seen)).toHaveLength(8);
    expect(seen).not.toHaveProperty(held);
    expect(Object.values(seen).filter((n) => n < 45 || n > 155)).toEqual([]);
    expect(pairs.size).toBeGreaterThan(28);
  });

  siteCase(harness, "what was tagged anew or matches by several tags keeps its turn", async ({ open }) => {
    const clock = new HandClock();
    const pool = await declaredPool(await open(clock.options), { strategy: "lru" });
    const tags = { a: ["1"], b: ["2"] };
    await pool.put(item("x"), item("y", { tags }), item("z", { tags: { a: ["1", "3"], b: ["2", "4"] } }));
    const x = await pool.claimOne("h");
    await pool.change(x, { do: "update", tags, tagsJson: "{}" });
    await pool.release(x);
    const where = { a: ["1", "3"], b: ["2", "4"] };
    const ids = [];
    for (const _ of range(0, 6)) {
      const claim = await pool.claimOne("h", { where });
      ids.push(claim.id);
      await pool.release(claim);
      clock.advance(1);
    }
    expect(ids.join("")).toBe("yzxyzx");
  });
}
