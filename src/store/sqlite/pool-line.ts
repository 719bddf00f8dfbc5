import type { ItemTags } from "../../protocol/pool.ts";
import type { PoolStats, PoolStore } from "../pool-store.ts";
import type { Database } from "./database.ts";
import type { OpenPool } from "./pool-book.ts";
import { lineOf } from "./pool-tags.ts";

type ClaimArgs = Parameters<PoolStore["claim"]>[0];

/** Waiters that are forgotten at most in one step. */
const AT_ONCE = 500;

const PLACE =
  "SELECT place, until, n FROM pool_waiters WHERE pool_id = ? AND request = ? AND line = ? AND until > ?";
const BEFORE = "SELECT count(*) FROM pool_waiters WHERE pool_id = ? AND line = ? AND place < ? AND until > ?";
const ENTER = `INSERT OR REPLACE INTO pool_waiters (pool_id, request, line, place, n, holder, asked_by, since, until)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const CONFIRM = "UPDATE pool_waiters SET until = ?, n = ? WHERE pool_id = ? AND request = ?";
const LEAVE = "DELETE FROM pool_waiters WHERE pool_id = ? AND request = ?";
const LOSE = "DELETE FROM pool_waiters WHERE pool_id = ? AND holder = ?";
const FORGOTTEN = `SELECT request FROM pool_waiters WHERE pool_id = ? AND until <= ? ORDER BY until LIMIT ${AT_ONCE}`;
const WAITING = `SELECT asked_by, line, n, since FROM pool_waiters WHERE pool_id = ? AND +until > ? ORDER BY place LIMIT 100`;
const ANY = "SELECT 1 FROM pool_waiters WHERE pool_id = ? AND holder = ? LIMIT 1";
const STANDS = "SELECT 1 FROM pool_waiters WHERE pool_id = ? AND request = ?";

/** Who asks, and where that is in the line of those with an equal wish. */
export interface Standing {
  line: string;
  /** Undefined where it does not stand in line. */
  place: { place: number; until: number; n: number } | undefined;
  /** How many stand before it, or before the place that it would have. */
  before: number;
}

export function standingOf(db: Database, pool: OpenPool, { request, where }: ClaimArgs): Standing {
  const line = lineOf(where);
  const row = db.sql(PLACE).get<[number, number, number]>(pool.id, request, line, pool.now);
  const place = row === undefined ? undefined : { place: row[0], until: row[1], n: row[2] };
  const [before = 0] =
    db.sql(BEFORE).get<[number]>(pool.id, line, place?.place ?? Number.MAX_SAFE_INTEGER, pool.now) ?? [];
  return { line, place, before };
}

/** Takes a place in line, says that it is still wanted, or gives it up with a last look. */
export function stand(db: Database, pool: OpenPool, args: ClaimArgs, standing: Standing): void {
  if (isConfirmed(pool, args, standing)) return;
  if (args.waitFor === undefined) {
    leaveLine(db, pool, args.request);
    return;
  }
  const until = pool.now + args.waitFor.patienceMs;
  const { request, n, holder, by } = args;
  if (standing.place !== undefined) db.sql(CONFIRM).run(until, n, pool.id, request);
  else db.sql(ENTER).run(pool.id, request, standing.line, ++pool.lastTurn, n, holder, by, pool.now, until);
}

/** Whether {@link stand} would change nothing. */
export function isConfirmed(
  pool: OpenPool,
  { waitFor, n }: Pick<ClaimArgs, "waitFor" | "n">,
  { place }: Standing,
): boolean {
  if (waitFor === undefined) return place === undefined;
  return place !== undefined && place.n === n && place.until === pool.now + waitFor.patienceMs;
}

/** Whether there was a place to give up. The line moves. */
export function leaveLine(db: Database, pool: OpenPool, request: string): boolean {
  return moved(pool, db.sql(LEAVE).run(pool.id, request).changes);
}

export function loseWaiters(db: Database, pool: OpenPool, holder: string): void {
  moved(pool, db.sql(LOSE).run(pool.id, holder).changes);
}

export function waitsFor(db: Database, pool: OpenPool, holder: string): boolean {
  return db.sql(ANY).get(pool.id, holder) !== undefined;
}

export function standsInLine(db: Database, pool: OpenPool, request: string): boolean {
  return db.sql(STANDS).get(pool.id, request) !== undefined;
}

/** Forgets who was not heard of in time. Returns whether there may be more. */
export function forgetWaiters(db: Database, pool: OpenPool): boolean {
  const requests = db.sql(FORGOTTEN).all<[string]>(pool.id, pool.now);
  for (const [request] of requests) leaveLine(db, pool, request);
  return requests.length === AT_ONCE;
}

/** The first who wait. */
export function waitingIn(db: Database, pool: OpenPool): PoolStats["waiting"] {
  return db
    .sql(WAITING)
    .all<[string, string, number, number]>(pool.id, pool.now)
    .map(([by, line, n, since]) => ({ by, where: JSON.parse(line) as ItemTags, n, since }));
}

function moved(pool: OpenPool, changes: number): boolean {
  if (changes > 0) pool.moving = true;
  return changes > 0;
}
