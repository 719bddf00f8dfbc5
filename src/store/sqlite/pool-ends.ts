import type { RetireReason } from "../../protocol/pool.ts";
import type { Database } from "./database.ts";
import type { OpenPool } from "./pool-book.ts";
import type { Item } from "./pool-items.ts";
import { change, dropItem } from "./pool-moves.ts";

/**
 * Ends the claim of a held item, now or when its lease was over, and leads the item to where its uses, its age, its score and its rest bring it.
 * `restMs`: how long it rests, where that is longer than the pool's cool-down.
 */
export function endClaim(db: Database, pool: OpenPool, item: Item, restMs = 0): void {
  const at = Math.min(pool.now, item.leaseUntil ?? pool.now);
  const end = { lastUsedAt: at, releasedAt: at };
  if (item.expiresAt !== null && item.expiresAt <= at) return dropItem(db, pool, item, "expired");
  const reason = reasonToRetire(pool, item, at);
  if (reason !== undefined) {
    return change(db, pool, item, { ...end, state: "retired", retired: { reason, note: "", at } });
  }
  const rest = Math.ceil(Math.max(restMs, pool.settings.cooldownMs));
  if (rest > 0) return change(db, pool, item, { ...end, state: "cooling", coolUntil: at + rest });
  change(db, pool, item, { ...end, state: "free" });
}

/** Somebody's explicit wish, which nothing undoes. */
export function retireAsked(db: Database, pool: OpenPool, item: Item, note: string): void {
  const end = item.state === "held" ? { lastUsedAt: pool.now, releasedAt: pool.now } : {};
  change(db, pool, item, { ...end, state: "retired", retired: { reason: "asked", note, at: pool.now } });
}

function reasonToRetire({ settings }: OpenPool, item: Item, at: number): RetireReason | undefined {
  if (settings.maxUses > 0 && item.uses >= settings.maxUses) return "max-uses";
  if (settings.maxAgeMs > 0 && at >= item.putAt + settings.maxAgeMs) return "max-age";
  if (settings.retireAtScore !== null && item.score <= settings.retireAtScore) return "score";
  return undefined;
}
