import type { Database } from "./database.ts";
import type { OpenPool } from "./pool-book.ts";
import { endClaim } from "./pool-ends.ts";
import { type Item, itemAt, itemsWhere, selectItems, UP_TO } from "./pool-items.ts";
import { change, dropItem, goneBy, isOver } from "./pool-moves.ts";
import { allCounts } from "./pool-tags.ts";
import { forgetWaiters } from "./pool-line.ts";

/** Items of each kind that one step moves at most: the lock is held for some milliseconds only. */
export const AT_ONCE = 500;

const LEASE_OVER = "state = 'held' AND lease_until <= ?";
const RESTED = "state = 'cooling' AND cool_until <= ?";
const TTL_OVER = "state IN ('free', 'cooling') AND expires_at IS NOT NULL AND expires_at <= ?";
const TOO_OLD = "state IN ('free', 'cooling') AND put_at <= ?";

interface Kind {
  first: string;
  select: string;
  step: (db: Database, pool: OpenPool, item: Item) => void;
  /** Those are due whose time is not after this. */
  until: (pool: OpenPool) => number;
}

function kind(where: string, order: string, step: Kind["step"], until = (pool: OpenPool) => pool.now): Kind {
  return {
    first: `SELECT 1 FROM pool_items WHERE pool_id = ? AND ${where} LIMIT 1`,
    select: itemsWhere(`${where} ORDER BY ${order} LIMIT ${AT_ONCE}`),
    step,
    until,
  };
}

/** In this order: what a lease leaves may rest no more, and be past its time. */
const KINDS: readonly Kind[] = [
  kind(LEASE_OVER, "lease_until, token", endClaim),
  kind(RESTED, "cool_until, turn", wake),
  kind(TTL_OVER, "expires_at", expire),
  kind(TOO_OLD, "put_at", retireByAge, ({ now, settings }) =>
    settings.maxAgeMs > 0 ? now - settings.maxAgeMs : Number.MIN_SAFE_INTEGER,
  ),
];

function wake(db: Database, pool: OpenPool, item: Item): void {
  change(db, pool, item, { state: "free" });
}

function expire(db: Database, pool: OpenPool, item: Item): void {
  dropItem(db, pool, item, "expired");
}

function retireByAge(db: Database, pool: OpenPool, item: Item): void {
  change(db, pool, item, { state: "retired", retired: { reason: "max-age", note: "", at: pool.now } });
}

/** Does what time asks for, up to {@link AT_ONCE} of each kind. Returns whether there may be more. */
export function tidy(db: Database, pool: OpenPool): { more: boolean } {
  let more = forgetWaiters(db, pool);
  for (const { select, step, until } of KINDS) {
    const items = selectItems(db, select, pool.id, until(pool));
    for (const item of items) step(db, pool, item);
    more ||= items.length === AT_ONCE;
  }
  return { more };
}

/** Whether {@link tidy} would change an item. */
export function isTidy(db: Database, pool: OpenPool): boolean {
  return KINDS.every(({ first, until }) => db.sql(first).get(pool.id, until(pool)) === undefined);
}

/** The same for one item. */
export function tidyItem(db: Database, pool: OpenPool, item: Item): void {
  if (item.state === "held") {
    if (!isOver(pool, item.leaseUntil)) return;
    endClaim(db, pool, item);
    // Where it went with its claim, there is nothing left of it.
    const left = itemAt(db, item.seq);
    if (left !== undefined) tidyItem(db, pool, left);
    return;
  }
  if (item.state === "cooling" && (item.coolUntil ?? 0) <= pool.now) wake(db, pool, item);
  if (expireItem(db, pool, item) || item.state === "retired") return;
  if (goneBy(pool, item, pool.now)) retireByAge(db, pool, item);
}

/** Takes an item out that is past its time to live and not held; whether it was. */
export function expireItem(db: Database, pool: OpenPool, item: Item): boolean {
  const isAlive = item.expiresAt === null || item.expiresAt > pool.now;
  if (isAlive || item.state === "held" || item.state === "retired") return false;
  expire(db, pool, item);
  return true;
}

const RETIRED = itemsWhere(`state = 'retired' AND retired_at <= ? ORDER BY retired_at, seq ${UP_TO}`);

/** Forgets retired items beyond what is kept, up to {@link AT_ONCE}, the oldest first. */
export function forget(db: Database, pool: OpenPool): { forgotten: number; more: boolean } {
  const { keepRetiredMs, keepRetiredCount } = pool.settings;
  const old = pool.now - keepRetiredMs;
  const surplus = allCounts(db, pool).retired - keepRetiredCount;
  const until = surplus > 0 ? Number.MAX_SAFE_INTEGER : old;
  const goes = selectItems(db, RETIRED, pool.id, until, AT_ONCE).filter(
    (item, index) => (item.retired?.at ?? 0) <= old || index < surplus,
  );
  for (const item of goes) dropItem(db, pool, item, "removed");
  return { forgotten: goes.length, more: goes.length === AT_ONCE };
}
