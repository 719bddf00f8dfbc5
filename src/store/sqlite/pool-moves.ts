import { randomInt } from "node:crypto";
import type { NewItem } from "../../protocol/pool.ts";
import type { Database } from "./database.ts";
import type { OpenPool } from "./pool-book.ts";
import { deleteItem, insertItem, type Item, writeItem } from "./pool-items.ts";
import { reshelve, type Shelf } from "./pool-tags.ts";

/** What a step sets; all else follows from the state. */
export type Change = Partial<
  Omit<Item, "seq" | "id" | "nr" | "since" | "rank" | "putAt" | "expiresAt" | "turn">
>;

/** Ranks of a pool with the strategy `random` lie evenly below this. */
export const LUCK = 2 ** 47;
/** In place of a time that does not come. */
export const NEVER = Number.MAX_SAFE_INTEGER;

const NO_CLAIM = {
  holder: null,
  heldBy: null,
  heldSince: null,
  leaseUntil: null,
  holdMs: null,
  autoExtend: false,
  token: null,
  request: null,
} satisfies Change;
const UNUSED = {
  ...NO_CLAIM,
  state: "free",
  since: 0,
  rank: 0,
  uses: 0,
  score: 0,
  lastUsedAt: null,
  releasedAt: null,
  coolUntil: null,
  retired: null,
} as const;

/**
 * The one way in which a stored item changes. Its place in the index, counts and hints follow, so they cannot part from the items: what is
 * not held has no claim, and what is retired stays so.
 */
export function change(db: Database, pool: OpenPool, item: Item, changes: Change): void {
  const before: Shelf & Pick<Item, "leaseUntil"> = { ...item };
  if (before.state === "retired") return;
  Object.assign(item, changes);
  if (item.state !== "held") {
    Object.assign(item, NO_CLAIM);
    if (before.state === "held") {
      item.turn = ++pool.lastTurn;
      countEnd(pool, before.leaseUntil);
    }
  }
  if (item.state !== "cooling") item.coolUntil = null;
  if (item.state === "retired") pool.totals.retired++;
  if (item.state === "free" && before.state !== "free") pool.moving = true;
  Object.assign(item, placeOf(pool, item));
  writeItem(db, item);
  reshelve(db, pool, item.seq, before, item);
}

/** False where the id is known. */
export function putItem(db: Database, pool: OpenPool, given: NewItem): boolean {
  const { id, tags, ttlMs, payload, tagsJson } = given;
  const nr = pool.lastTurn + 1;
  const expiresAt = ttlMs === 0 ? null : pool.now + Math.ceil(ttlMs);
  const item: Omit<Item, "seq"> = { ...UNUSED, id, nr, turn: nr, tags, putAt: pool.now, expiresAt };
  Object.assign(item, placeOf(pool, item));
  const seq = insertItem(db, pool.id, item, { payload, tagsJson });
  if (seq === undefined) return false;
  pool.lastTurn = nr;
  pool.totals.put++;
  pool.moving = true;
  reshelve(db, pool, seq, undefined, item);
  return true;
}

/** Counts the end of a claim: by its time, or in whatever other way. */
function countEnd(pool: OpenPool, leaseUntil: number | null): void {
  pool.totals[isOver(pool, leaseUntil) ? "leasesExpired" : "released"]++;
}

/** A claim is over at its end, also while nobody has looked. */
export function isOver({ now }: Pick<OpenPool, "now">, leaseUntil: number | null): boolean {
  return (leaseUntil ?? 0) <= now;
}

/** Takes an item out for good. A retired one was counted when it was retired. */
export function dropItem(db: Database, pool: OpenPool, item: Item, as: "expired" | "removed"): void {
  if (item.state === "held") countEnd(pool, item.leaseUntil);
  if (item.state !== "retired") pool.totals[as]++;
  reshelve(db, pool, item.seq, item, undefined);
  deleteItem(db, item.seq);
}

function placeOf(pool: OpenPool, item: Omit<Item, "seq">): Pick<Item, "since" | "rank"> {
  switch (item.state) {
    case "free":
      return freePlace(pool, item);
    case "held":
      return { since: freeAgainAt(pool, item), rank: 0 };
    case "cooling": {
      const until = item.coolUntil ?? NEVER;
      return { since: goneBy(pool, item, until) ? NEVER : until, rank: item.turn };
    }
    case "retired":
      return { since: item.retired?.at ?? 0, rank: item.nr };
    default:
      return item.state satisfies never;
  }
}

function freePlace(pool: OpenPool, item: Omit<Item, "seq">): Pick<Item, "since" | "rank"> {
  const { strategy } = pool.settings;
  if (strategy === "fifo") return { since: 0, rank: item.nr };
  if (strategy === "random") return { since: 0, rank: randomInt(LUCK) };
  return { since: item.releasedAt ?? item.putAt, rank: item.turn };
}

/** When a held item is free at the latest, unless its claim is extended. */
function freeAgainAt(pool: OpenPool, item: Omit<Item, "seq">): number {
  const { settings } = pool;
  const end = item.leaseUntil ?? NEVER;
  const spent = settings.maxUses > 0 && item.uses >= settings.maxUses;
  const bad = settings.retireAtScore !== null && item.score <= settings.retireAtScore;
  const until = end + settings.cooldownMs;
  return spent || bad || goneBy(pool, item, until) ? NEVER : until;
}

/** Whether its time to live, or what its pool allows, is over by then. */
export function goneBy(
  { settings }: OpenPool,
  item: Pick<Item, "expiresAt" | "putAt">,
  time: number,
): boolean {
  if (item.expiresAt !== null && item.expiresAt <= time) return true;
  return settings.maxAgeMs > 0 && item.putAt + settings.maxAgeMs <= time;
}

/** Gives a free item its place anew, where the strategy is another. */
export function replace(db: Database, pool: OpenPool, item: Item): void {
  const before: Shelf = { ...item };
  Object.assign(item, placeOf(pool, item));
  writeItem(db, item);
  reshelve(db, pool, item.seq, before, item);
}
