// What only this back end has; the port's guarantees are in the conformance suite.
import { afterEach, beforeEach, expect, test } from "vitest";
import { DamageBook } from "../damage.ts";
import { ITEM_STATES, type ItemTags, type NewItem } from "../../protocol/pool.ts";
import { type ClaimArgs, item, SETTINGS } from "../conformance/pool-driver.ts";
import type { PoolSettings, PoolStore } from "../pool-store.ts";
import { type Database, openMemory } from "./database.ts";
import type { SqlValue, Statement } from "./driver.ts";
import { createNotifier } from "./notify.ts";
import { AT_ONCE } from "./pool-sweep.ts";
import { createPools } from "./pools.ts";
import { wipeNamespace } from "./wipe.ts";
import { createWriter } from "./writer.ts";

let db: Database;
/** Texts of all statements that ran, and how many runs and rows that were. */
let ran: Set<string>;
let runs = 0;
let rows = 0;
let now = 1_781_234_567_890;
let asked = 0;
let pools: PoolStore;

beforeEach(async () => {
  ran = new Set();
  db = counting(await openMemory());
  pools = open("");
  await declare();
});
afterEach(() => db.close());

function open(ns: string): PoolStore {
  const writer = createWriter(db, { deadlineMs: 10_000 });
  return createPools({
    db,
    ns,
    clock: () => now,
    writer,
    notifier: createNotifier(db, () => {}),
    damage: new DamageBook(undefined),
  });
}

function counting(inner: Database): Database {
  return { ...inner, sql: (text) => counted(text, inner.sql(text)) };
}

function counted(text: string, statement: Statement): Statement {
  const count = <T>(result: T, of: number): T => {
    ran.add(text);
    runs++;
    rows += of;
    return result;
  };
  return {
    run: (...values) => {
      const result = statement.run(...values);
      return count(result, result.changes);
    },
    get: (...values: SqlValue[]) => count(statement.get(...values), 1) as never,
    all: (...values: SqlValue[]) => {
      const found = statement.all(...values);
      return count(found, found.length) as never;
    },
  };
}

const HOLD_MS = 1000;
const pool = "p";
const declare = (more: Partial<PoolSettings> = {}, on = pools) =>
  on.declare({ pool, settings: { ...SETTINGS, ...more }, as: "owner" });
const put = (items: NewItem[], on = pools) => on.put({ pool, items });
const numbered = (prefix: string, count: number, more: (i: number) => Partial<NewItem> = () => ({})) =>
  Array.from({ length: count }, (_, i) => item(`${prefix}${i}`, more(i)));
function ask(more: Partial<ClaimArgs> = {}, on = pools) {
  const usual = { where: {}, n: 1, holdMs: HOLD_MS, autoExtend: false, request: `r${++asked}` };
  return on.claim({ pool, ...usual, holder: "h", by: "by h", ...more });
}
async function claim(more: Partial<ClaimArgs> = {}, on = pools) {
  const answer = await ask(more, on);
  return answer.outcome === "claimed" ? answer.items : [];
}

/** Every kind of call, on a pool in which there is something of every kind. */
async function everything(on = pools): Promise<void> {
  const tags = { a: ["1", "2"], b: ["3"], c: ["4"] };
  await declare({ strategy: "lru", cooldownMs: 1 }, on);
  await put([...numbered("i", 10, () => ({ tags })), item("short", { ttlMs: 1 }), item("old")], on);
  const wheres: ItemTags[] = [{}, { a: ["1"] }, { a: ["1", "2"] }, { a: ["1"], b: ["3"] }, tags];
  for (const where of wheres) await ask({ where, autoExtend: true }, on);
  await ask({ request: "granted", n: 2 }, on);
  await ask({ request: "waits", n: 99, waitFor: { patienceMs: 10 } }, on);
  await ask({ request: "waits", n: 98, waitFor: { patienceMs: 10 } }, on);
  await ask({ request: "leaves", n: 99, waitFor: { patienceMs: 10 } }, on);
  await on.leave({ pool, request: "granted" });
  await on.leave({ pool, request: "leaves" });
  const { held } = await on.keep({ pool, holders: ["h"] });
  const [one, two] = held[0] ?? [];
  const change = (of: typeof one, what: Parameters<PoolStore["change"]>[0]["change"]) =>
    on.change({ pool, id: of?.id ?? "", token: of?.token ?? "", change: what });
  await change(one, { do: "report", what: "ok" });
  await change(one, { do: "extend", holdMs: 5000 });
  await change(one, { do: "update", payload: "2", tags: { a: ["9"] }, tagsJson: "{}" });
  await change(one, { do: "cool", ms: 5 });
  await change(two, { do: "release" });
  await on.retire({ pool, id: "i9", note: "n" });
  await on.remove({ pool, id: "i8" });
  await on.get({ pool, id: "i1" });
  for (const state of ITEM_STATES) {
    await on.page({ pool, state, where: {}, n: 1 });
    for (const where of wheres) await on.page({ pool, state, where, n: 1 });
  }
  for (const where of wheres) await on.count({ pool, where });
  await on.stats({ pool });
  await on.list();
  const terms = { below: 3, queue: "q", payload: "{}", maxAttempts: 1, timeoutMs: 0 };
  await on.putRefill({ pool, refill: { where: tags, ...terms } });
  await on.refills({ pool });
  now += 2;
  await ask({}, on);
  await on.lose({ pool, holders: ["h"] });
  for (const strategy of ["fifo", "random"] as const) {
    await declare({ strategy, maxAgeMs: 60_000 }, on);
    now += 10;
    for (const where of wheres) await ask({ where }, on);
  }
  now += 2 * HOLD_MS;
  await on.sweep({ pool });
  await put([item("late"), item("retired")], on);
  await on.retire({ pool, id: "retired", note: "" });
  await ask({ n: 99, waitFor: { patienceMs: 10 } }, on);
}

test("every statement walks an index, and no call but a page or a count by several tags all items", async () => {
  await everything();
  const plans = [...ran]
    .filter((sql) => /\bpool(s|_\w+)\b/.test(sql) && !sql.startsWith("INSERT"))
    .map((sql) => {
      const steps = db.sql(`EXPLAIN QUERY PLAN ${sql}`).all<[number, number, number, string]>();
      return { sql, plan: steps.map(([, , , step]) => step).join("; ") };
    });
  expect(plans.length).toBeGreaterThan(40);
  const matching = (plan: RegExp) => plans.filter((one) => plan.test(one.plan)).map(({ sql }) => sql);
  // The values of a wish are a list of their own.
  expect(matching(/SCAN (?!w VIRTUAL|v VIRTUAL)/)).toEqual([]);
  expect(matching(/TEMP B-TREE/)).toEqual([expect.stringContaining("SELECT DISTINCT a.seq")]);
  // By the pool alone, these lead to all its items.
  expect(matching(/pool_item_tags[^;]* \(pool_id=\?\)(;|$)/)).toEqual([]);
  expect(matching(/autoindex_pool_items_1 \(pool_id=\?\)(;|$)/)).toEqual([]);
});

test("a call costs the same with a hundred items in the pool and with a hundred thousand", async () => {
  async function cost(what: () => Promise<unknown>): Promise<number> {
    const before = runs + rows;
    await what();
    return runs + rows - before;
  }
  async function costs(mine: string): Promise<Record<string, number>> {
    const where = { mine: [mine] };
    const tags = { all: ["1"], mine: [mine] };
    const puts = await cost(() => put(numbered(mine, 10, () => ({ tags }))));
    let items = await claim({ where });
    const take = (more: Partial<ClaimArgs>) => cost(async () => items.push(...(await claim(more))));
    const claimed = await take({ where });
    const both = await take({ where: { ...where, all: ["1"] } });
    const either = await take({ where: { mine: [mine, "none"] }, n: 2 });
    expect(new Set(items.map(({ id }) => id)).size).toBe(5);
    const counted = await cost(() => pools.count({ pool, where: { all: ["1"] } }));
    const looked = await cost(() => pools.stats({ pool }));
    const kept = await cost(() => pools.keep({ pool, holders: ["h"] }));
    const { id, token } = items[0]!;
    const released = await cost(() => pools.change({ pool, id, token, change: { do: "release" } }));
    const lost = await cost(() => pools.lose({ pool, holders: ["h"] }));
    items = await claim({ where, n: 10 });
    expect(items).toHaveLength(10);
    const nothing = await cost(() => ask({ where }));
    const listed = await cost(() => pools.page({ pool, state: "free", where: {}, n: 10 }));
    const swept = await cost(() => pools.sweep({ pool }));
    await pools.lose({ pool, holders: ["h"] });
    return { puts, claimed, both, either, counted, looked, kept, released, lost, nothing, listed, swept };
  }
  async function byStrategy(mine: string): Promise<Record<string, number>[]> {
    const all = [];
    for (const strategy of ["random", "lru", "fifo"] as const) {
      await declare({ strategy });
      all.push(await costs(`${mine}-${strategy}`));
      // Of the crowd itself: the first, or one that is drawn, which misses some times.
      const most = strategy === "random" ? 1000 : all[0]!["claimed"]!;
      expect(await cost(() => claim({ where: { all: ["1"] } }))).toBeLessThanOrEqual(most);
      await pools.lose({ pool, holders: ["h"] });
    }
    return all;
  }
  const crowd = (from: number, to: number) =>
    numbered(`crowd${from}-`, to - from, (i) => ({ tags: { all: ["1"] }, ttlMs: i % 4 === 0 ? 60_000 : 0 }));
  await put(crowd(0, 100));
  const few = await byStrategy("a");
  for (let from = 100; from < 100_000; from += 5000) await put(crowd(from, Math.min(from + 5000, 100_000)));
  expect((await pools.count({ pool, where: { all: ["1"] } })).free).toBe(100_030);
  expect(await byStrategy("b")).toEqual(few);
}, 120_000);

test("nothing writes where nothing is to be done", async () => {
  await put([item("a", { tags: { t: ["1"] } }), item("b", { ttlMs: 9000 })]);
  const [a] = await claim({ where: { t: ["1"] }, request: "first" });
  const refill = { where: {}, below: 1, queue: "q", payload: "1", maxAttempts: 1, timeoutMs: 0 };
  const waits = { n: 3, request: "waits", waitFor: { patienceMs: 100 } };
  await ask(waits);
  await pools.putRefill({ pool, refill });
  await pools.retire({ pool, id: "b", note: "" });
  const changed = () => db.sql("SELECT total_changes()").get<[number]>()?.[0] ?? 0;
  const before = changed();
  expect(await claim({ where: { t: ["1"] }, request: "first" })).toEqual([a]);
  await ask({ where: { t: ["1"] } });
  await ask({ n: 3 });
  await ask(waits);
  await pools.leave({ pool, request: "other" });
  await pools.keep({ pool, holders: ["h", "other"] });
  await pools.lose({ pool, holders: ["other"] });
  await pools.sweep({ pool });
  await pools.putRefill({ pool, refill });
  await pools.retire({ pool, id: "b", note: "again" });
  await pools.remove({ pool, id: "other" });
  await pools.change({ pool, id: "a", token: "1", change: { do: "release" } });
  await put([item("a")]);
  await declare();
  expect(changed()).toBe(before);
  await pools.lose({ pool, holders: ["h"] });
  expect(changed()).toBeGreaterThan(before);
});

test("what is left of an untidy crowd hides nothing that matches, and is never given out", async () => {
  const many = 3 * AT_ONCE;
  await put(numbered("held", many));
  expect(await claim({ n: many, holdMs: 10 })).toHaveLength(many);
  await put([item("wanted", { tags: { t: ["1"] } })]);
  expect(await claim({ where: { t: ["1"] }, holdMs: 20 })).toHaveLength(1);
  await put(numbered("old", 3 * AT_ONCE, () => ({ ttlMs: 10, tags: { old: ["1"] } })));
  now += 20;
  expect((await claim({ where: { t: ["1"] } })).map(({ id }) => id)).toEqual(["wanted"]);
  // That claim has tidied up a part only.
  expect((await pools.count({ pool, where: {} })).held).toBe(many - AT_ONCE + 1);
  expect((await pools.count({ pool, where: { old: ["1"] } })).free).toBe(2 * AT_ONCE);
  expect(await claim({ where: { old: ["1"] } })).toEqual([]);
  while ((await pools.sweep({ pool })).more);
  expect(await pools.count({ pool, where: {} })).toMatchObject({ free: many, held: 1 });
});

test("drawn from many, all have the same chance, also who bears two of the values", async () => {
  await declare({ strategy: "random" });
  await put(numbered("i", 200, (i) => ({ tags: { t: i % 2 === 0 ? ["1"] : ["1", "2"] } })));
  const seen = new Map<string, number>();
  let odd = 0;
  for (let i = 0; i < 1000; i++) {
    const where: ItemTags = i % 2 === 0 ? { t: ["1"] } : { t: ["1", "2"] };
    const [first, second] = await claim({ where, n: 2 });
    for (const one of [first!, second!]) {
      seen.set(one.id, (seen.get(one.id) ?? 0) + 1);
      if (Number(one.id.slice(1)) % 2 === 1) odd++;
    }
    await pools.lose({ pool, holders: ["h"] });
  }
  // 1000 of 2000 are expected, with a standard deviation of 22; 10 of each, with one of 3.2.
  expect(Math.abs(odd - 1000)).toBeLessThan(110);
  expect(seen.size).toBeGreaterThan(190);
  expect(Math.max(...seen.values())).toBeLessThan(33);
}, 30_000);

test("after a change of the strategy, items are given out as the new one says", async () => {
  await put(["a", "b", "c"].map((id) => item(id, { tags: { t: ["1"] } })));
  const order = async () => {
    const ids = (await claim({ n: 3, where: { t: ["1"] } })).map(({ id }) => id).join("");
    await pools.lose({ pool, holders: ["h"] });
    return ids;
  };
  const [a] = await claim();
  await pools.change({ pool, id: "a", token: a!.token, change: { do: "release" } });
  await declare({ strategy: "lru" });
  expect(await order()).toBe("bca");
  await declare({ strategy: "random" });
  expect((await order()).split("").toSorted().join("")).toBe("abc");
  await declare({ strategy: "fifo" });
  expect(await order()).toBe("abc");
});

test("a change of the strategy goes in steps, between which others' calls come in", async () => {
  await put(numbered("i", 4 * AT_ONCE, () => ({ tags: { t: ["1"] } })));
  await declare({ strategy: "lru" });
  const places = () =>
    db.sql("SELECT count(*) FROM pool_items WHERE since = 0 AND rank = nr").get<[number]>()?.[0];
  expect(places()).toBe(0);
  const declared = declare({ strategy: "fifo" });
  // Each look is a call of its own, behind the step that stands in line already.
  const seen: (number | undefined)[] = [];
  for (let i = 0; i < 4; i++) {
    await pools.list();
    seen.push(places());
  }
  await declared;
  expect(seen.some((count) => count !== 0 && count !== 4 * AT_ONCE)).toBe(true);
  expect(places()).toBe(4 * AT_ONCE);
});

test("a change of the strategy that was cut short goes on with the next declaration, whoever's", async () => {
  await put(numbered("i", 3 * AT_ONCE));
  await declare({ strategy: "lru" });
  await declare({ strategy: "fifo" });
  // As if its process had died after the first step.
  db.exec(`UPDATE pools SET renewing = ${AT_ONCE}`);
  db.exec(`UPDATE pool_items SET since = 1000000 - nr, rank = 0 WHERE nr > ${AT_ONCE}`);
  db.exec(`UPDATE pool_item_tags SET (since, rank) =
    (SELECT i.since, i.rank FROM pool_items i WHERE i.seq = pool_item_tags.seq)`);
  await pools.declare({ pool, settings: { ...SETTINGS, strategy: "lru" }, as: "guest" });
  expect((await claim({ n: 3 * AT_ONCE })).map(({ id }) => id)).toEqual(
    numbered("i", 3 * AT_ONCE).map(({ id }) => id),
  );
});

test("a wipe takes all rows of its namespace's pools, and no other's", async () => {
  const other = open("other");
  await everything(other);
  const tables = db
    .sql("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'pool%'")
    .all<[string]>()
    .map(([name]) => name);
  const counts = () =>
    Object.fromEntries(
      tables.map((name) => [name, db.sql(`SELECT count(*) FROM ${name}`).get<[number]>()?.[0] ?? 0]),
    );
  expect(tables).toHaveLength(7);
  wipeNamespace(db, "");
  const others = counts();
  for (const table of tables) expect([table, others[table]]).not.toEqual([table, 0]);
  await everything();
  wipeNamespace(db, "");
  expect(counts()).toEqual(others);
  wipeNamespace(db, "other");
  expect(Object.values(counts()).every((count) => count === 0)).toBe(true);
});
