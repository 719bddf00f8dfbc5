import type { Database } from "./database.ts";
import type { OpenPool } from "./pool-book.ts";
import { itemsWhere, selectItems } from "./pool-items.ts";
import { replace } from "./pool-moves.ts";
import { AT_ONCE } from "./pool-sweep.ts";

const FROM = "SELECT renewing FROM pools WHERE id = ?";
const GO_ON = "UPDATE pools SET renewing = ? WHERE id = ?";
const NEXT = itemsWhere(`state = 'free' AND nr > ? ORDER BY nr LIMIT ${AT_ONCE}`);

/** The strategy is another: all free items are to get their places anew, by {@link renew}. */
export function beginRenewal(db: Database, pool: OpenPool): void {
  db.sql(GO_ON).run(0, pool.id);
}

export function isRenewing(db: Database, pool: OpenPool): boolean {
  return renewedUpTo(db, pool) !== null;
}

/**
 * Gives the next free items their places by the present strategy, in the order of their puts. What is put or becomes free meanwhile has its
 * place by it at once. Returns whether there is more to do.
 */
export function renew(db: Database, pool: OpenPool): boolean {
  const from = renewedUpTo(db, pool);
  if (from === null) return false;
  const items = selectItems(db, NEXT, pool.id, from);
  for (const item of items) replace(db, pool, item);
  const more = items.length === AT_ONCE;
  db.sql(GO_ON).run(more ? (items.at(-1)?.nr ?? null) : null, pool.id);
  return more;
}

function renewedUpTo(db: Database, pool: OpenPool): number | null {
  return db.sql(FROM).get<[number | null]>(pool.id)?.[0] ?? null;
}
