import { expect } from "vitest";
import { ITEM_STATES, type ItemTags } from "../../protocol/pool.ts";
import type { Pool } from "./pool-driver.ts";
import type { PoolModel } from "./pool-model.ts";
import { recordOf } from "./pool-model-item.ts";

const WHERES: readonly ItemTags[] = [{}, { a: ["1", "2"] }, { a: ["1"], b: ["1"] }];

/** `nextFreeAt` is checked where nothing but a lease or a cool-down decides what becomes of an item. */
export function checkNextFree(model: PoolModel, where: ItemTags, nextFreeAt: number | null): void {
  const { maxUses, maxAgeMs, retireAtScore, cooldownMs } = model.settings;
  const resting = model.matching(where).filter(({ state }) => state === "held" || state === "cooling");
  if (resting.length === 0) expect(nextFreeAt).toBeNull();
  if (resting.length === 0 || maxUses > 0 || maxAgeMs > 0 || retireAtScore !== null) return;
  if (resting.some(({ given }) => given.ttlMs > 0)) return;
  const first = Math.min(...resting.map(({ claim, coolUntil }) => claim?.until ?? coolUntil ?? Infinity));
  expect(nextFreeAt).toBeGreaterThanOrEqual(first);
  expect(nextFreeAt).toBeLessThanOrEqual(first + cooldownMs);
}

export async function compareStats(pool: Pool, model: PoolModel): Promise<void> {
  const { counts, totals, waiting } = await pool.stats();
  const waiters = model.waiters
    .filter(({ until }) => until > model.now)
    .map(({ holder, where, n, since }) => ({ by: `by ${holder}`, where, n, since }));
  expect({ counts, totals, waiting }).toEqual({
    counts: model.counts(),
    totals: model.totals,
    waiting: waiters,
  });
}

export async function compareItems(pool: Pool, model: PoolModel): Promise<void> {
  for (const item of model.items) {
    const record = await pool.get(item.given.id);
    expect(record).toMatchObject(recordOf(item));
    expect(
      record.retired === null ? null : { reason: record.retired.reason, note: record.retired.note },
    ).toEqual(item.retired);
  }
  for (const where of WHERES) {
    expect(await pool.store.pools.count({ pool: pool.pool, where })).toEqual(model.counts(where));
    for (const state of ITEM_STATES) {
      const matching = model.matching(where).filter((item) => item.state === state);
      expect({ state, where, ids: await pool.ids(state, where, 3) }).toEqual({
        state,
        where,
        ids: matching.map(({ given }) => given.id),
      });
    }
  }
}
