import { expect } from "vitest";
import { HandClock, openThree, range, siteCase, type StoreHarness } from "./harness.ts";
import { declaredPool, HOLD_MS, isConserved, item, items, newRequest, Pool } from "./pool-driver.ts";

const PATIENCE = { patienceMs: 60_000 };

export function poolHolders(harness: StoreHarness): void {
  siteCase(
    harness,
    "keep renews what is asked to extend itself, and tells all that is held",
    async ({ open }) => {
      const clock = new HandClock();
      const [pool, other] = [
        await declaredPool(await open(clock.options)),
        new Pool(await open(clock.options)),
      ];
      await pool.put(...items(["auto", "plain", "long", "others", "free"]));
      const auto = await pool.claimOne("h", { autoExtend: true });
      const plain = await pool.claimOne("h");
      const long = await pool.claimOne("h", { autoExtend: true, holdMs: 1000 });
      await pool.change(long, { do: "extend", holdMs: 50_000 });
      const others = await pool.claimOne("i", { autoExtend: true });
      clock.advance(HOLD_MS - 1);
      const { held, at } = await other.keep("h", "nobody", "i");
      const now = clock.ms;
      const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
      expect(held.map((list) => list.toSorted(byId))).toEqual([
        [
          { id: "auto", token: auto.token, until: now + HOLD_MS },
          { id: "long", token: long.token, until: now - HOLD_MS + 1 + 50_000 },
          { id: "plain", token: plain.token, until: plain.until },
        ],
        [],
        [{ id: "others", token: others.token, until: now + HOLD_MS }],
      ]);
      for (const { token } of [auto, plain, long, others]) expect(BigInt(at)).toBeGreaterThan(BigInt(token));
      const next = await pool.claimOne("h");
      expect(BigInt(at)).toBeLessThanOrEqual(BigInt(next.token));
      expect((await pool.get("auto")).holder).toMatchObject({ until: now + HOLD_MS });
      clock.advance(1);
      expect(await pool.sweep()).toMatchObject({ released: 1 });
      expect((await pool.keep("h")).held[0]?.map(({ id }) => id).toSorted()).toEqual([
        "auto",
        "free",
        "long",
      ]);
      await pool.release(auto);
      expect((await pool.keep("h")).held[0]?.map(({ id }) => id).toSorted()).toEqual(["free", "long"]);
      expect((await pool.keep()).held).toEqual([]);
      // As long as somebody keeps it, it is held.
      await pool.keep("i");
      for (const _ of range(0, 5)) {
        clock.advance(HOLD_MS - 1);
        await pool.keep("i");
      }
      expect(await pool.release(others)).toEqual(["done"]);
      await pool.sweep();
      expect((await pool.stats()).totals).toMatchObject({ claimed: 5, released: 2, leasesExpired: 3 });
    },
  );

  siteCase(harness, "keep does not shorten an extension, and goes on after an update", async ({ open }) => {
    const clock = new HandClock();
    const pool = await declaredPool(await open(clock.options));
    await pool.put(item("a"));
    const a = await pool.claimOne("h", { autoExtend: true, holdMs: 1000 });
    await pool.change(a, { do: "extend", holdMs: 3000 });
    const until = clock.ms + 3000;
    clock.advance(500);
    expect((await pool.keep("h")).held).toEqual([[{ id: "a", token: a.token, until }]]);
    await pool.change(a, { do: "update", payload: "[1]" });
    clock.advance(2499);
    expect((await pool.keep("h")).held).toEqual([[{ id: "a", token: a.token, until: until + 999 }]]);
    expect(await pool.claim("i")).toEqual([]);
  });

  siteCase(
    harness,
    "what a lost holder held is released at once, and its places in line end",
    async (site) => {
      const clock = new HandClock();
      const stores = await openThree(site, clock.options);
      const pool = await declaredPool(stores[0], { cooldownMs: 5 });
      const [second, third] = [new Pool(stores[1]), new Pool(stores[2])];
      await pool.put(...items(["a", "b", "c", "d"]));
      const mine = await pool.claim("h", { n: 2, autoExtend: true });
      await pool.claim("i");
      const theirs = await pool.claimOne("j");
      const line = (holder: string) => ({ request: `${holder}'s`, n: 3, waitFor: PATIENCE });
      for (const holder of ["h", "k", "i"]) await pool.ask(holder, line(holder));
      expect((await pool.stats()).waiting).toHaveLength(3);
      const losses = [second, third, second].map((by) => by.lose("h", "i", "nobody"));
      const released = await Promise.all(losses);
      expect(released.toSorted((one, two) => one - two)).toEqual([0, 0, 3]);
      expect(await pool.count()).toEqual({ cooling: 3, held: 1 });
      expect(await pool.release(...mine)).toEqual(["lease-lost", "lease-lost"]);
      expect((await pool.stats()).waiting).toMatchObject([{ by: "by k", n: 3 }]);
      clock.advance(5);
      expect(await pool.claimIds("k", line("k"))).toEqual(["a", "b", "c"]);
      expect(await pool.release(theirs)).toEqual(["done"]);
      expect(await pool.lose("nobody")).toBe(0);
      expect((await pool.stats()).totals).toMatchObject({ claimed: 7, released: 4, leasesExpired: 0 });
      expect(isConserved(await pool.stats())).toBe(true);
    },
  );

  siteCase(
    harness,
    "leave releases what the request was granted meanwhile, and nothing else",
    async ({ open }) => {
      const pool = await declaredPool(await open());
      await pool.put(...items(["a", "b", "c"]));
      const [request, other] = [newRequest(), newRequest()];
      const claims = await pool.claim("h", { request, n: 2 });
      const kept = await pool.claimOne("h", { request: other });
      await pool.leave(request);
      expect(await pool.count()).toEqual({ free: 2, held: 1 });
      expect(await pool.release(...claims)).toEqual(["lease-lost", "lease-lost"]);
      const next = await pool.claimOne("i");
      await pool.leave(request);
      await pool.leave("nobody's");
      expect(await pool.release(next, kept)).toEqual(["done", "done"]);
      await pool.leave(other);
      expect(await pool.count()).toEqual({ free: 3 });
      expect((await pool.stats()).totals).toMatchObject({ claimed: 4, released: 4 });
    },
  );
}
