import type { DamageBook, Place } from "../damage.ts";
import type { PoolStore, Refill } from "../pool-store.ts";
import { refill as readRefill } from "../records.ts";
import type { Database } from "./database.ts";
import type { OpenPool, PoolBook } from "./pool-book.ts";
import { lineOf } from "./pool-tags.ts";
import type { Writer } from "./writer.ts";

const GET = "SELECT refill FROM pool_refills WHERE pool_id = ? AND line = ?";
const PUT = "INSERT OR REPLACE INTO pool_refills (pool_id, line, refill) VALUES (?, ?, ?)";
const ALL = "SELECT line, refill FROM pool_refills WHERE pool_id = ? ORDER BY line";

/** The wishes of how many items there should be. */
export function createPoolRefills(parts: {
  db: Database;
  writer: Writer;
  book: PoolBook;
  damage: DamageBook;
}): Pick<PoolStore, "putRefill" | "refills"> {
  const { db, writer, book, damage } = parts;

  function isThere(pool: OpenPool, refill: Refill): boolean {
    return db.sql(GET).get<[string]>(pool.id, lineOf(refill.where))?.[0] === JSON.stringify(refill);
  }

  function put(pool: OpenPool, refill: Refill): void {
    db.sql(PUT).run(pool.id, lineOf(refill.where), JSON.stringify(refill));
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
