import type { ClaimedItem } from "../../protocol/pool.ts";
import type { ClaimResult, PoolStore } from "../pool-store.ts";
import type { Database } from "./database.ts";
import type { OpenPool, PoolBook } from "./pool-book.ts";
import { endClaim } from "./pool-ends.ts";
import { findFree, findOverdue, nextFreeAt } from "./pool-find.ts";
import { type Item, itemAt, itemsWhere, selectItems, textsOf } from "./pool-items.ts";
import { isConfirmed, leaveLine, stand, standingOf, standsInLine } from "./pool-line.ts";
import { change, goneBy, isOver } from "./pool-moves.ts";
import { AT_ONCE, isTidy, tidy, tidyItem } from "./pool-sweep.ts";
import { type Want, wantsOf } from "./pool-tags.ts";
import type { Writer } from "./writer.ts";

type ClaimArgs = Parameters<PoolStore["claim"]>[0];

const GRANTED = itemsWhere("request = ? AND state = 'held' ORDER BY token");

/** What those call who want items. Where nothing is to be had and nothing to be done, a claim only reads, and waits for no lock. */
export function createPoolClaims(parts: {
  db: Database;
  writer: Writer;
  book: PoolBook;
}): Pick<PoolStore, "claim" | "leave"> {
  const { db, writer, book } = parts;

  /** What this request was granted before and still has. */
  function granted(pool: OpenPool, request: string): Item[] {
    return selectItems(db, GRANTED, pool.id, request).filter(({ leaseUntil }) => !isOver(pool, leaseUntil));
  }

  function claimed(pool: OpenPool, items: readonly Item[]): ClaimResult {
    return { outcome: "claimed", items: items.map((item) => toClaimed(db, item)), now: pool.now };
  }

  function none(pool: OpenPool, args: ClaimArgs, wants: readonly Want[]): ClaimResult {
    const { place, before } = standingOf(db, pool, args);
    const position = place === undefined ? null : before;
    return { outcome: "none", position, nextFreeAt: nextFreeAt(db, pool, wants), now: pool.now };
  }

  /** An answer that changes nothing, where there is one. */
  function idle(pool: OpenPool, args: ClaimArgs): ClaimResult | undefined {
    if (!isTidy(db, pool)) return undefined;
    const before = granted(pool, args.request);
    if (before.length > 0) return claimed(pool, before);
    const standing = standingOf(db, pool, args);
    if (!isConfirmed(pool, args, standing)) return undefined;
    const wants = wantsOf(args.where);
    if (standing.before === 0 && findFree(db, pool, wants, args.n).length === args.n) return undefined;
    return none(pool, args, wants);
  }

  function claim(pool: OpenPool, args: ClaimArgs): ClaimResult {
    const { more } = tidy(db, pool);
    const before = granted(pool, args.request);
    if (before.length > 0) return claimed(pool, before);
    const wants = wantsOf(args.where);
    const standing = standingOf(db, pool, args);
    if (standing.before === 0) {
      if (more) for (const item of findOverdue(db, pool, wants, args.n)) tidyItem(db, pool, item);
      const items = findAlive(pool, wants, args.n);
      if (items.length === args.n) return grant(pool, args, items);
    }
    stand(db, pool, args, standing);
    return none(pool, args, wants);
  }

  /** Free items that match, or fewer. What is past its time is met where more of it is left than one tidy-up ends. */
  function findAlive(pool: OpenPool, wants: readonly Want[], n: number): Item[] {
    for (let left = AT_ONCE; left > 0;) {
      const items = findFree(db, pool, wants, n).flatMap((seq) => itemAt(db, seq) ?? []);
      const gone = items.filter((item) => goneBy(pool, item, pool.now));
      if (gone.length === 0) return items;
      for (const item of gone) tidyItem(db, pool, item);
      left -= gone.length;
    }
    return [];
  }

  function grant(pool: OpenPool, args: ClaimArgs, items: readonly Item[]): ClaimResult {
    leaveLine(db, pool, args.request);
    for (const item of items) {
      change(db, pool, item, {
        state: "held",
        uses: item.uses + 1,
        holder: args.holder,
        heldBy: args.by,
        heldSince: pool.now,
        leaseUntil: pool.now + args.holdMs,
        holdMs: args.holdMs,
        autoExtend: args.autoExtend,
        token: book.nextToken(pool),
        request: args.request,
      });
    }
    pool.totals.claimed += items.length;
    return claimed(pool, items);
  }

  function leave(pool: OpenPool, request: string): void {
    leaveLine(db, pool, request);
    for (const item of selectItems(db, GRANTED, pool.id, request)) endClaim(db, pool, item);
  }

  return {
    claim(args) {
      const undeclared = (): ClaimResult => ({ outcome: "undeclared" });
      return writer.write(() => book.change(args.pool, (pool) => claim(pool, args), undeclared), {
        weight: Math.max(1, args.n),
        shortcut: () => book.look(args.pool, (pool) => idle(pool, args), undeclared),
      });
    },

    async leave({ pool: name, request }) {
      const nothing = () => {};
      await writer.write<boolean>(
        () => {
          book.change(name, (pool) => leave(pool, request), nothing);
          return true;
        },
        {
          shortcut: () =>
            book.look<true | undefined>(
              name,
              (pool) => {
                const has =
                  standsInLine(db, pool, request) || selectItems(db, GRANTED, pool.id, request).length > 0;
                return has ? undefined : true;
              },
              () => true,
            ),
        },
      );
    },
  };
}

function toClaimed(db: Database, item: Item): ClaimedItem {
  const { id, token, uses, score, leaseUntil } = item;
  return { id, ...textsOf(db, item.seq), token: String(token), uses, score, until: leaseUntil ?? 0 };
}
