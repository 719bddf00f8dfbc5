// Short settings; part of `npm test`. What pools on Redis do where there are many items, or where settings change under them.
import { createClient } from "@redis/client";
import { afterEach, expect, inject, it, onTestFinished } from "vitest";
import { HandClock, range } from "../src/store/conformance/harness.ts";
import { declaredPool, item, items, SETTINGS } from "../src/store/conformance/pool-driver.ts";
import { openStore } from "../src/store/open.ts";
import { FORGET_REFILL_MS } from "../src/store/pool-store.ts";
import { redisKeys } from "../src/store/redis/keys.ts";
import type { Store } from "../src/store/store.ts";
import { freshNamespace } from "./support/stores.ts";

const opened: Store[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
});

async function open(clock: HandClock): Promise<Store> {
  const store = await openStore(inject("redisUrl"), { namespace: freshNamespace(), ...clock.options });
  opened.push(store);
  return store;
}

// More than a page looks at by the sets alone, and more than a claim looks at before it intersects them.
const MANY = 6000;
const tagsOf = (i: number) => ({
  half: [String(i % 2)],
  rare: [i % 1000 === 999 ? "yes" : String(i % 2)],
  all: ["x"],
});

it.each(["lru", "random"] as const)(
  "many items, few that match by two tags: all are found (%s)",
  async (strategy) => {
    const pool = await declaredPool(await open(new HandClock()), { strategy });
    const all = range(0, MANY).map((i) => item(`i${i}`, { tags: tagsOf(i) }));
    await pool.put(...all.slice(0, 2500));
    await pool.put(...all.slice(2500));
    // Each has 3000 items, and no two of these overlap.
    const where = { half: ["1"], rare: ["0"] };
    expect([await pool.count(where), await pool.claim("h", { where })]).toEqual([{}, []]);
    const most = { half: ["1", "2"], rare: ["yes", "0"] };
    const rare = range(0, 6).map((i) => `i${i * 1000 + 999}`);
    expect(await pool.count(most)).toEqual({ free: 6 });
    const claimed = await pool.claimIds("h", { where: most, n: 6 });
    expect(strategy === "lru" ? claimed : claimed.toSorted()).toEqual(
      strategy === "lru" ? rare : rare.toSorted(),
    );
    expect(await pool.ask("h", { where: most })).toMatchObject({ outcome: "none" });
    expect(await pool.count({ all: ["x"] })).toEqual({ free: MANY - 6, held: 6 });
    const free = all.map(({ id }) => id).filter((id) => !rare.includes(id));
    expect(await pool.ids("free", {}, 1700)).toEqual(free);
    expect(await pool.ids("free", { half: ["0"], all: ["x"] }, 1000)).toEqual(
      free.filter((id) => Number(id.slice(1)) % 2 === 0),
    );
    expect(await pool.ids("held", { all: ["x"] }, 4)).toEqual(rare);
  },
);

it("blocks of numbers that are empty are passed over, and forgotten", async () => {
  const store = await open(new HandClock());
  const pool = await declaredPool(store);
  await pool.put(...items(range(0, 3000).map((i) => `i${i}`)));
  for (const i of range(0, 1500)) await pool.remove(`i${i}`);
  expect(await pool.ids("free", {}, 400)).toEqual(range(1500, 3000).map((i) => `i${i}`));
  for (const i of range(1500, 3000)) await pool.remove(`i${i}`);
  expect([await pool.ids("free"), await pool.count()]).toEqual([[], {}]);
  // Nothing is left of them but the pool's settings, the fleet's identity and the index of pools.
  expect(await store.wipe()).toEqual({ deleted: 3 });
});

it("a change of settings reaches all items that are there", async () => {
  const clock = new HandClock();
  const pool = await declaredPool(await open(clock), { strategy: "fifo" });
  const ids = range(0, 1200).map((i) => `i${i}`);
  await pool.put(...items(ids));
  clock.advance(1);
  const first = await pool.claim("h", { n: 600 });
  await pool.release(...first.toReversed());
  await declaredPool(pool.store, { strategy: "lru" });
  expect(await pool.claimIds("h", { n: 1200 })).toEqual([
    ...ids.slice(600),
    ...ids.slice(0, 600).toReversed(),
  ]);
  await pool.lose("h");
  await declaredPool(pool.store, { strategy: "fifo", maxAgeMs: 1000 });
  expect(await pool.claimIds("h", { n: 1200 })).toEqual(ids);
  await pool.lose("h");
  clock.advance(998);
  expect(await pool.sweep()).toMatchObject({ retired: 0 });
  clock.advance(1);
  expect(await pool.sweep()).toMatchObject({ retired: 1200 });
  expect(await pool.store.pools.declare({ pool: "p", settings: SETTINGS, as: "owner" })).toEqual(SETTINGS);
});

it("long payloads are kept apart, whatever replaces them", async () => {
  const store = await open(new HandClock());
  const pool = await declaredPool(store, { keepRetiredCount: 0 });
  const [long, longer] = [JSON.stringify("é".repeat(5000)), JSON.stringify("x".repeat(100_000))];
  await pool.put(item("a", { payload: long }), item("b", { payload: "1" }));
  const [a, b] = await pool.claim("h", { n: 2 });
  if (!a || !b) throw new Error("two were there");
  expect(a.payload).toBe(long);
  await pool.change(a, { do: "update", payload: "2" });
  await pool.change(b, { do: "update", payload: longer });
  expect([(await pool.get("a")).payload, (await pool.get("b")).payload]).toEqual(["2", longer]);
  await pool.change(b, { do: "update", tags: { t: ["1"] }, tagsJson: "{}" });
  await pool.change(b, { do: "update", payload: long });
  await pool.release(a, b);
  expect((await pool.claim("h", { n: 2 })).map(({ payload }) => payload)).toEqual(["2", long]);
  await pool.retire("b");
  expect(await pool.sweep()).toMatchObject({ forgotten: 1 });
  await pool.remove("a");
  expect(await store.wipe()).toEqual({ deleted: 3 });
});

it("any item, while others are claimed by a tag: the one not used for longest", async () => {
  const pool = await declaredPool(await open(new HandClock()), { strategy: "lru" });
  const ids = range(0, 2000).map((i) => `i${i}`);
  await pool.put(...ids.map((id, i) => item(id, { tags: { site: [i % 3 === 0 ? "a" : "b"] } })));
  const order = [...ids];
  const claimed = async (where: Record<string, string[]>, fits: (id: string) => boolean) => {
    const expected = order.find((id) => fits(id)) as string;
    const claim = await pool.claimOne("h", { where });
    expect(claim.id).toBe(expected);
    order.splice(order.indexOf(expected), 1);
    return claim;
  };
  // Blocks whose first items are claimed by a tag, all of a block, and items that come back.
  for (const i of range(0, 300)) {
    const held = [
      await claimed({ site: ["a"] }, (id) => Number(id.slice(1)) % 3 === 0),
      await claimed({}, () => true),
    ];
    if (i % 3 === 0) continue;
    for (const one of held) {
      await pool.release(one);
      order.push(one.id);
    }
  }
  expect(await pool.claimIds("h", { n: order.length })).toEqual(order);
  expect(await pool.claimIds("h", {})).toEqual([]);
});

it("any item at random among many: each of them once, the last ones too", async () => {
  const pool = await declaredPool(await open(new HandClock()), { strategy: "random" });
  const ids = range(0, 2600).map((i) => `i${i}`);
  await pool.put(...items(ids));
  const got = await pool.claimIds("h", { n: 1 });
  // One by one, in small and in large numbers: more than half of what is free, and all that is left.
  for (const n of [1, 1, 700, 700, 900, 297]) got.push(...(await pool.claimIds("h", { n })));
  expect(got).not.toEqual(ids.slice(0, got.length));
  expect(got.toSorted()).toEqual(ids.toSorted());
  expect(await pool.count()).toEqual({ held: 2600 });
});

it("ids are found again, however many were put and removed", async () => {
  const store = await open(new HandClock());
  const pool = await declaredPool(store);
  const ids = range(0, 3000).map((i) => (i % 2 === 0 ? `i${i}` : crypto.randomUUID()));
  for (const at of [0, 1000, 2000]) await pool.put(...items(ids.slice(at, at + 1000)));
  for (const id of ids) expect((await pool.get(id)).id).toBe(id);
  expect(await pool.put(...items(ids.slice(0, 500)))).toEqual(range(0, 500).map(() => "exists"));
  for (const id of ids) expect(await pool.remove(id)).toBe("removed");
  expect(await store.wipe()).toEqual({ deleted: 3 });
});

it("a wish of a version that kept no time of it is forgotten so long after it was first seen", async () => {
  const clock = new HandClock();
  const store = await open(clock);
  const pool = await declaredPool(store);
  const terms = { below: 1, queue: "q", payload: "1", maxAttempts: 1, timeoutMs: 0 };
  await store.pools.putRefill({ pool: pool.pool, refill: { where: { t: ["1"] }, ...terms } });
  const client = createClient({ url: inject("redisUrl") });
  await client.connect();
  onTestFinished(() => client.close());
  expect(await client.del(redisKeys(store.namespace).pool(pool.pool).left)).toBe(1);
  const wishes = async () => {
    await pool.sweep();
    return (await store.pools.refills({ pool: pool.pool })).length;
  };
  clock.advance(FORGET_REFILL_MS);
  expect(await wishes()).toBe(1);
  clock.advance(FORGET_REFILL_MS - 1);
  expect(await wishes()).toBe(1);
  clock.advance(1);
  expect(await wishes()).toBe(0);
});
