import type { DamageBook, Place } from "../damage.ts";
import { FORGET_REFILL_MS, type PoolStore, type Refill } from "../pool-store.ts";
import { refill as readRefill } from "../records.ts";
import type { Database } from "./database.ts";
import type { OpenPool, PoolBook } from "./pool-book.ts";
import { AT_ONCE } from "./pool-sweep.ts";
import { lineOf } from "./pool-tags.ts";
import type { Writer } from "./writer.ts";

const GET = "SELECT refill, left_at FROM pool_refills WHERE pool_id = ? AND line = ?";
const PUT = "INSERT OR REPLACE INTO pool_refills (pool_id, line, refill, left_at) VALUES (?, ?, ?, ?)";
const ALL = "SELECT line, refill FROM pool_refills WHERE pool_id = ? ORDER BY line";
const OLD = `SELECT line, EXISTS (SELECT 1 FROM pool_waiters w WHERE w.pool_id = r.pool_id AND w.line = r.line)
  FROM pool_refills r WHERE pool_id = ? AND left_at <= ? ORDER BY left_at LIMIT ${AT_ONCE}`;
const LEFT_AGAIN = "UPDATE pool_refills SET left_at = ? WHERE pool_id = ? AND line = ?";
const DROP = "DELETE FROM pool_refills WHERE pool_id = ? AND line = ?";

/** Forgets wishes that were not left again for long, up to {@link AT_ONCE}. Returns whether there may be more. */
export function forgetRefills(db: Database, pool: OpenPool): boolean {
  const old = db.sql(OLD).all<[line: string, waitedFor: 0 | 1]>(pool.id, pool.now - FORGET_REFILL_MS);
  for (const [line, waitedFor] of old) {
    if (waitedFor === 1) db.sql(LEFT_AGAIN).run(pool.now, pool.id, line);
    else db.sql(DROP).run(pool.id, line);
  }
  return old.length === AT_ONCE;
}

/** The wishes of how many items there should be. */
export function createPoolRefills(parts: {
  db: Database;
  writer: Writer;
  book: PoolBook;
  damage: DamageBook;
}): Pick<PoolStore, "putRefill" | "refills"> {
  const { db, writer, book, damage } = parts;

  function isThere(pool: OpenPool, refill: Refill): boolean {
    const [text, leftAt] = db.sql(GET).get<[string, number]>(pool.id, lineOf(refill.where)) ?? [];
    return text === JSON.stringify(refill) && leftAt === pool.now;
  }

  function put(pool: OpenPool, refill: Refill): void {
    db.sql(PUT).run(pool.id, lineOf(refill.where), JSON.stringify(refill), pool.now);
  }

  return {
    async putRefill({ pool: name, refill }) {
      await writer.write<boolean>(
        () => {
          book.look(
            name,
            (pool) => put(pool, refill),
            () => {},
          );
          return true;
        },
        {
          shortcut: () =>
            book.look<true | undefined>(
              name,
              (pool) => (isThere(pool, refill) ? true : undefined),
              () => true,
            ),
        },
      );
    },
    refills({ pool: name }) {
      const all = (pool: OpenPool) =>
        damage
          .look(refillPlace(pool), db.sql(ALL).all<[line: string, refill: string]>(pool.id), readRefill)
          .good.map(([, refill]) => refill);
      return writer.read(() => book.look<Refill[]>(name, all, () => []));
    },
  };
}

function refillPlace({ name, id }: OpenPool): Place {
  return {
    kind: "refill",
    of: name,
    where: (line) => ({
      where: `table pool_refills, pool ${name}, line ${line}`,
      remove: `DELETE FROM pool_refills WHERE pool_id = ${id} AND line = '${line.replaceAll("'", "''")}'`,
    }),
  };
}
