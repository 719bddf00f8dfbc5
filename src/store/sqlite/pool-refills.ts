import type { PoolStore, Refill } from "../pool-store.ts";
import type { Database } from "./database.ts";
import type { OpenPool, PoolBook } from "./pool-book.ts";
import { lineOf } from "./pool-tags.ts";
import type { Writer } from "./writer.ts";

const GET = "SELECT refill FROM pool_refills WHERE pool_id = ? AND line = ?";
const PUT = "INSERT OR REPLACE INTO pool_refills (pool_id, line, refill) VALUES (?, ?, ?)";
const ALL = "SELECT refill FROM pool_refills WHERE pool_id = ? ORDER BY line";

/** The wishes of how many items there should be. */
export function createPoolRefills(parts: {
  db: Database;
  writer: Writer;
  book: PoolBook;
}): Pick<PoolStore, "putRefill" | "refills"> {
  const { db, writer, book } = parts;

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
        db
          .sql(ALL)
          .all<[string]>(pool.id)
          .map(([refill]) => JSON.parse(refill) as Refill);
      return writer.read(() => book.look<Refill[]>(name, all, () => []));
    },
  };
}
