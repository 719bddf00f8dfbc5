import { expect } from "vitest";
import type { ItemTags } from "../../protocol/pool.ts";
import { HandClock, range, siteCase, type StoreHarness } from "./harness.ts";
import { declaredPool, item } from "./pool-driver.ts";
import { matches } from "./pool-model-item.ts";
import { randomOf } from "./pool-random.ts";

export function poolWhere(harness: StoreHarness): void {
  siteCase(harness, "where: one value, one of several, several tags, tags not named", async ({ open }) => {
    const pool = await declaredPool(await open());
    await pool.put(
      item("a", { tags: { site: ["x"], tier: ["1"] } }),
      item("b", { tags: { site: ["x", "y"], tier: ["2"] } }),
      item("c", { tags: { site: ["z"], tier: ["1", "2"], eu: ["true"] } }),
      item("d"),
    );
    for (const [where, ids] of [
      [{}, "abcd"],
      [{ site: ["x"] }, "ab"],
      [{ site: ["y"] }, "b"],
      [{ site: ["y", "z"] }, "bc"],
      [{ site: ["x", "y"] }, "ab"],
      [{ site: ["x"], tier: ["1"] }, "a"],
      [{ site: ["x", "z"], tier: ["1"] }, "ac"],
      [{ site: ["x", "y", "z"], tier: ["1", "2", "3"] }, "abc"],
      [{ eu: ["true"], site: ["z"], tier: ["2"] }, "c"],
      [{ eu: ["true"], site: ["x"] }, ""],
      [{ tier: ["3"] }, ""],
      [{ nothing: ["x"] }, ""],
      [{ site: ["X"] }, ""],
    ] as [ItemTags, string][]) {
      expect({ where, ids: (await pool.ids("free", where)).join("") }).toEqual({ where, ids });
      expect((await pool.count(where)).free ?? 0).toBe(ids.length);
      const claims = ids === "" ? [] : await pool.claim("h", { where, n: ids.length });
      expect({ where, claimed: claims.map(({ id }) => id).join("") }).toEqual({ where, claimed: ids });
      expect(await pool.ask("h", { where, n: 1 })).toMatchObject({ outcome: "none" });
      await pool.release(...claims);
    }
  });

  siteCase(harness, "tags that look alike are told apart", async ({ open }) => {
    const pool = await declaredPool(await open());
    const all: ItemTags[] = [
      { a: ["b:c"] },
      { "a:b": ["c"] },
      { a: ["b"], c: [""] },
      { a: ["b|c"] },
      { a: ["B:C"] },
      { __proto__x: ["1"], constructor: ["prototype"] },
      { "": ["a"] },
      { "a=b": ["c"] },
      { a: ["b=c"] },
      { 'a"': ['"b"'] },
      { a: ["*"] },
      { a: ["é"] },
      { a: ["e\u0301"] },
      { a: ["%", "_"] },
    ];
    await pool.put(...all.map((tags, i) => item(`i${i}`, { tags })));
    for (const [i, where] of all.entries()) {
      expect({ where, ids: await pool.ids("free", where) }).toEqual({ where, ids: [`i${i}`] });
      expect(await pool.claimIds("h", { where })).toEqual([`i${i}`]);
    }
  });

  siteCase(harness, "many items: claims, pages and counts agree with a plain search", async ({ open }) => {
    const pool = await declaredPool(await open(new HandClock().options));
    const random = randomOf(7);
    const some = (of: number, most: number, letter: string) =>
      [
        ...new Set(
          range(0, 1 + Math.floor(random() * most)).map(() => `${letter}${Math.floor(random() * of)}`),
        ),
      ].toSorted();
    const tagged = (most: number): ItemTags => ({
      ...(random() < 0.7 ? { a: some(3, most, "a") } : {}),
      ...(random() < 0.7 ? { b: some(10, most, "b") } : {}),
      ...(random() < 0.4 ? { c: some(40, most, "c") } : {}),
    });
    const all = range(0, 400).map((i) => item(`i${i}`, { tags: tagged(2) }));
    await pool.put(...all);
    const held = new Set<string>();
    for (const _ of range(0, 120)) {
      const where = tagged(3);
      const found = all.filter(({ tags }) => matches({ tags }, where)).map(({ id }) => id);
      const free = found.filter((id) => !held.has(id));
      expect(await pool.count(where)).toEqual({
        ...(free.length > 0 ? { free: free.length } : {}),
        ...(found.length > free.length ? { held: found.length - free.length } : {}),
      });
      expect(await pool.ids("free", where, 7)).toEqual(free);
      const n = 1 + Math.floor(random() * 4);
      const claimed = await pool.claimIds("h", { where, n });
      expect(claimed).toEqual(free.length < n ? [] : free.slice(0, n));
      for (const id of claimed) held.add(id);
    }
    expect(held.size).toBeGreaterThan(60);
  });

  siteCase(harness, "an update counts at once: payload, tags and what is matched", async ({ open }) => {
    const pool = await declaredPool(await open());
    await pool.put(item("a", { tags: { site: ["x"], tier: ["1"] } }), item("b", { tags: { site: ["x"] } }));
    const claim = await pool.claimOne("h", { where: { site: ["x"] } });
    const update = { do: "update" as const, tags: { site: ["y"], eu: ["1"] }, tagsJson: '{"site":"y"}' };
    expect(await pool.change(claim, update)).toEqual({ outcome: "done", until: claim.until, score: 0 });
    expect(await pool.get("a")).toMatchObject({
      tagsJson: '{"site":"y"}',
      payload: '{"id":"a"}',
      state: "held",
    });
    expect(await pool.count({ site: ["x"] })).toEqual({ free: 1 });
    expect(await pool.count({ tier: ["1"] })).toEqual({});
    expect(await pool.count({ site: ["y"], eu: ["1"] })).toEqual({ held: 1 });
    await pool.change(claim, { do: "update", payload: "[2]" });
    await pool.release(claim);
    expect(await pool.claimIds("h", { where: { site: ["x"] } })).toEqual(["b"]);
    expect(await pool.claimOne("h", { where: { site: ["y"] } })).toMatchObject({
      id: "a",
      payload: "[2]",
      tagsJson: '{"site":"y"}',
    });
    expect(await pool.claimIds("h", { where: { tier: ["1"] } })).toEqual([]);
  });
}
