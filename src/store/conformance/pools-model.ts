import * as fc from "fast-check";
import { expect } from "vitest";
import type { ItemTags } from "../../protocol/pool.ts";
import { siteCase, type StoreHarness } from "./harness.ts";
import { checkNextFree, compareItems, compareStats } from "./pool-compare.ts";
import { declaredPool, HOLD_MS, item, newRequest, Pool, SETTINGS } from "./pool-driver.ts";
import { type Asking, PoolModel } from "./pool-model.ts";
import type { ModelItem } from "./pool-model-item.ts";
import { type Op, OPS, SETTING } from "./pool-ops.ts";

const RUNS = 60;
const FOR_EVER_MS = 86_400_000;
/** So that there is something from the first step on. */
const TAGS: readonly ItemTags[] = [{}, { a: ["1"] }, { a: ["1", "2"], b: ["1"] }];
const START = TAGS.map((tags) => ({ again: undefined, tags, ttlMs: 0 }));

/** Connections whose clocks are apart. */
class Clocks {
  ms = 1_781_234_567_890;
  offsets: readonly number[] = [0, 0, 0];

  of(connection: number): number {
    return this.ms + (this.offsets[connection] ?? 0);
  }
}

/** One sequence of calls, made to a store and to the model side by side. */
interface Walk {
  pools: readonly Pool[];
  model: PoolModel;
  clock: Clocks;
  /** All claims ever made, and all that was ever asked, the newest last. */
  claims: { id: string; token: string }[];
  asked: Asking[];
  put: number;
  /** How many late tokens were tried. */
  late: number;
}

export function poolModel(harness: StoreHarness): void {
  siteCase(
    harness,
    "never two holders: any sequence of calls does what a plain list of items would do",
    async ({ open }) => {
      const clock = new Clocks();
      const stores = await Promise.all([0, 1, 2].map((i) => open({ frozenNow: () => clock.of(i) })));
      const seen = { runs: 0, steps: 0, late: 0, ends: {} as Record<string, number> };
      const property = fc.asyncProperty(SETTING, OPS, async ({ some, offsets }, ops) => {
        seen.runs += 1;
        const pools = stores.map((store) => new Pool(store, `p${seen.runs}`));
        const settings = { ...SETTINGS, ...some };
        await declaredPool(pools[0]?.store ?? never(), settings, `p${seen.runs}`);
        clock.offsets = harness.connections === "one" ? [0, 0, 0] : offsets;
        const walk = { pools, model: new PoolModel(settings), clock, claims: [], asked: [], put: 0, late: 0 };
        await follow(walk, ops);
        seen.steps += ops.length;
        seen.late += walk.late;
        for (const [what, n] of Object.entries(walk.model.totals))
          seen.ends[what] = (seen.ends[what] ?? 0) + n;
      });
      // Where it fails, the message names the seed to run it again by.
      await fc.assert(property, { numRuns: RUNS });
      // The walks led somewhere.
      expect(seen.steps).toBeGreaterThan(RUNS * 15);
      expect(seen.late).toBeGreaterThan(RUNS / 4);
      expect(Object.entries(seen.ends).filter(([, n]) => n < 10)).toEqual([]);
    },
    60_000,
  );
}

function never(): never {
  throw new Error("never");
}

async function follow(walk: Walk, ops: readonly Op[]): Promise<void> {
  const { model, clock } = walk;
  const first = walk.pools[0] ?? never();
  model.now = clock.of(0);
  await put(walk, first, START);
  for (const op of ops) {
    model.now = clock.of(op.by);
    await step(walk, walk.pools[op.by] ?? never(), op);
    model.now = clock.of(0);
    const latest = Math.max(...[0, 1, 2].map((i) => clock.of(i)));
    // What time has done shows with the next claim or sweep; which one it is must not matter.
    if (!model.hasLapsed(latest)) await compareStats(first, model);
  }
  model.now = clock.of(0);
  await sweep(first, model);
  await compareStats(first, model);
  await compareItems(first, model);
}

async function step(walk: Walk, pool: Pool, op: Op): Promise<void> {
  const { model } = walk;
  switch (op.do) {
    case "put":
      return put(walk, pool, op.items);
    case "claim": {
      const { holder, where, n, autoExtend } = op;
      const areApart = walk.clock.offsets.some((offset) => offset !== 0);
      const patienceMs = op.patienceMs !== undefined && areApart ? FOR_EVER_MS : op.patienceMs;
      const asking = { holder, where, n, autoExtend, patienceMs, request: newRequest(), holdMs: HOLD_MS };
      walk.asked.push(asking);
      return claim(walk, pool, asking);
    }
    case "again": {
      const asking = picked(walk.asked, op.pick);
      if (asking === undefined) return;
      return claim(walk, pool, { ...asking, patienceMs: op.stays ? asking.patienceMs : undefined });
    }
    case "change": {
      const live = walk.claims.filter(({ id, token }) => model.find(id)?.claim?.token === token);
      const one = picked(op.late ? walk.claims : live, op.pick);
      if (one === undefined) return;
      const expected = model.change(one.id, one.token, op.change);
      if (expected === undefined) walk.late += 1;
      const answer = await pool.change(one, op.change);
      expect({ op, ...answer }).toEqual({
        op,
        ...(expected ? { outcome: "done", ...expected } : { outcome: "lease-lost" }),
      });
      return;
    }
    case "retire":
    case "remove": {
      const id = idOf(walk, op.pick);
      // Somebody who steers looks at what he steers.
      if (model.hasLapsed(model.now)) await sweep(pool, model);
      const expected = op.do === "retire" ? model.retire(id, "steered") : model.remove(id);
      expect(await (op.do === "retire" ? pool.retire(id, "steered") : pool.remove(id))).toBe(expected);
      return;
    }
    case "keep":
      return keep(walk, pool, op.holder);
    case "lose":
      await sweep(pool, model);
      expect(await pool.lose(op.holder)).toBe(model.lose((one) => one.holder === op.holder));
      return;
    case "leave": {
      const asking = picked(walk.asked, op.pick);
      if (asking === undefined) return;
      await sweep(pool, model);
      await pool.leave(asking.request);
      model.lose((one) => one.request === asking.request);
      return;
    }
    case "sweep":
      return sweep(pool, model);
    case "advance":
      walk.clock.ms += op.ms;
      return;
  }
}

function picked<T>(among: readonly T[], pick: number): T | undefined {
  return among[pick % Math.max(1, among.length)];
}

/** An id that was put, or the next that was not. */
function idOf({ put }: Walk, pick: number): string {
  return `i${pick % (put + 1)}`;
}

async function put(walk: Walk, pool: Pool, wanted: Extract<Op, { do: "put" }>["items"]): Promise<void> {
  const { model } = walk;
  const given = wanted.map(({ again, tags, ttlMs }) => {
    const id = idOf(walk, again ?? walk.put);
    const isNew = id === `i${walk.put}`;
    if (isNew) walk.put += 1;
    return item(id, { tags, ttlMs, payload: JSON.stringify([walk.put, ttlMs]) });
  });
  const answers = await pool.put(...given);
  expect(answers).toEqual(given.map((one) => model.put(one)));
}

async function claim(walk: Walk, pool: Pool, asking: Asking): Promise<void> {
  const { model } = walk;
  const { patienceMs, ...more } = asking;
  const waitFor = patienceMs === undefined ? {} : { waitFor: { patienceMs } };
  model.pass();
  const allowed = model.ask(asking);
  const answer = await pool.ask(asking.holder, { ...more, ...waitFor });
  if (answer.outcome === "undeclared") throw new Error("it was declared");
  expect(answer.now).toBe(model.now);
  if ("position" in allowed) {
    expect(answer).toMatchObject({ outcome: "none", position: allowed.position });
    if (answer.outcome === "none") checkNextFree(model, asking.where, answer.nextFreeAt);
    return;
  }
  if (answer.outcome !== "claimed") throw new Error(`nothing for ${JSON.stringify(asking)}`);
  if ("had" in allowed) {
    const had = allowed.had.map((one) => ({
      id: one.given.id,
      token: one.claim?.token,
      until: one.claim?.until,
    }));
    const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
    const told = answer.items.map(({ id, token, until }) => ({ id, token, until }));
    expect(told.toSorted(byId)).toEqual(had.toSorted(byId));
    return;
  }
  expect(answer.items).toHaveLength(asking.n);
  const left = new Set<ModelItem>(allowed.free);
  for (const { id, token } of answer.items) {
    const chosen = [...left].find(({ given }) => given.id === id);
    if (chosen === undefined) throw new Error(`${id} is not free`);
    const before = [...left].filter((one) => model.isBefore(one, chosen)).map(({ given }) => given.id);
    expect({ id, before }).toEqual({ id, before: [] });
    left.delete(chosen);
    for (const last of walk.claims.slice(-1)) expect(BigInt(token)).toBeGreaterThan(BigInt(last.token));
    walk.claims.push({ id, token });
  }
  model.claimed(answer.items, asking);
  for (const { id, uses, score, payload, tagsJson, until } of answer.items)
    expect(model.find(id)).toMatchObject({ uses, score, payload, tagsJson, claim: { until } });
}

async function keep({ model, claims }: Walk, pool: Pool, holder: string): Promise<void> {
  const { held, at } = await pool.keep(holder);
  const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
  expect(held.map((list) => list.toSorted(byId))).toEqual([model.keep(holder).toSorted(byId)]);
  for (const { token } of claims.slice(-1)) expect(BigInt(at)).toBeGreaterThan(BigInt(token));
}

async function sweep(pool: Pool, model: PoolModel): Promise<void> {
  expect(await pool.sweep()).toEqual({ ...model.pass(), forgotten: 0 });
}
