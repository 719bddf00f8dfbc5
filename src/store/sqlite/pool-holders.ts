import type { HolderChange, PoolStore } from "../pool-store.ts";
import type { Database } from "./database.ts";
import type { OpenPool, PoolBook } from "./pool-book.ts";
import { endClaim, retireAsked } from "./pool-ends.ts";
import { type Item, itemsWhere, readItem, selectItems, textsOf, writeTexts } from "./pool-items.ts";
import { loseWaiters, waitsFor } from "./pool-line.ts";
import { change, isOver } from "./pool-moves.ts";
import type { Writer } from "./writer.ts";

type Changed = Awaited<ReturnType<PoolStore["change"]>>;

const HELD = itemsWhere("holder = ? AND state = 'held' ORDER BY token");
const LOST = { outcome: "lease-lost" } as const;

/** What holders of claims call, and those who look after them. */
export function createPoolHolders(parts: {
  db: Database;
  writer: Writer;
  book: PoolBook;
}): Pick<PoolStore, "change" | "keep" | "lose"> {
  const { db, writer, book } = parts;

  function heldWith(pool: OpenPool, id: string, token: string): Item | undefined {
    const item = readItem(db, pool.id, id);
    if (item?.state !== "held" || String(item.token) !== token) return undefined;
    return isOver(pool, item.leaseUntil) ? undefined : item;
  }

  function apply(pool: OpenPool, item: Item, what: HolderChange): void {
    switch (what.do) {
      case "release":
        return endClaim(db, pool, item);
      case "cool":
        return endClaim(db, pool, item, what.ms);
      case "retire":
        return retireAsked(db, pool, item, what.note);
      case "extend":
        return extend(pool, item, what.holdMs);
      case "report":
        return change(db, pool, item, { score: item.score + (what.what === "ok" ? 1 : -1) });
      case "update": {
        const texts = textsOf(db, item.seq);
        const { payload = texts.payload, tagsJson = texts.tagsJson, tags } = what;
        if (payload !== texts.payload || tagsJson !== texts.tagsJson)
          writeTexts(db, item.seq, { payload, tagsJson });
        if (tags !== undefined) change(db, pool, item, { tags });
        return;
      }
      default:
        return what satisfies never;
    }
  }

  /** From now on so long, unless it holds longer already. */
  function extend(pool: OpenPool, item: Item, holdMs: number): void {
    const until = pool.now + holdMs;
    if (until > (item.leaseUntil ?? 0)) change(db, pool, item, { leaseUntil: until });
  }

  function alive(pool: OpenPool, holder: string): Item[] {
    return selectItems(db, HELD, pool.id, holder).filter(({ leaseUntil }) => !isOver(pool, leaseUntil));
  }

  function answer(name: string, pool: OpenPool, held: readonly (readonly Item[])[]) {
    return {
      held: held.map((items) =>
        items.map(({ id, token, leaseUntil }) => ({ id, token: String(token), until: leaseUntil ?? 0 })),
      ),
      at: String(book.tokenBound(name, pool)),
    };
  }

  function lose(pool: OpenPool, holders: readonly string[]): { released: number } {
    const before = pool.totals.released;
    for (const holder of holders) {
      loseWaiters(db, pool, holder);
      for (const item of selectItems(db, HELD, pool.id, holder)) endClaim(db, pool, item);
    }
    return { released: pool.totals.released - before };
  }

  return {
    change({ pool: name, id, token, change: what }) {
      const changed = (pool: OpenPool): Changed => {
        const item = heldWith(pool, id, token);
        if (item === undefined) return LOST;
        apply(pool, item, what);
        const goesOn = what.do === "extend" || what.do === "report" || what.do === "update";
        return { outcome: "done", until: goesOn ? item.leaseUntil : null, score: item.score };
      };
      const late = (pool: OpenPool) => (heldWith(pool, id, token) === undefined ? LOST : undefined);
      return writer.write(() => book.change<Changed>(name, changed, () => LOST), {
        bytes: what.do === "update" ? (what.payload?.length ?? 0) : 0,
        shortcut: () => book.look<Changed | undefined>(name, late, () => LOST),
      });
    },

    keep({ pool: name, holders }) {
      const nothing = () => ({ held: holders.map(() => []), at: String(book.tokenBound(name)) });
      const renewed = (pool: OpenPool) => {
        const held = holders.map((holder) => alive(pool, holder));
        for (const item of held.flat()) if (item.autoExtend) extend(pool, item, item.holdMs ?? 0);
        return answer(name, pool, held);
      };
      const unchanged = (pool: OpenPool) => {
        const held = holders.map((holder) => alive(pool, holder));
        return held.flat().some(({ autoExtend }) => autoExtend) ? undefined : answer(name, pool, held);
      };
      return writer.write(() => book.change(name, renewed, nothing), {
        shortcut: () => book.look<ReturnType<typeof renewed> | undefined>(name, unchanged, nothing),
      });
    },

    lose({ pool: name, holders }) {
      const nothing = () => ({ released: 0 });
      const without = (pool: OpenPool) => {
        const any = holders.some(
          (holder) => waitsFor(db, pool, holder) || selectItems(db, HELD, pool.id, holder).length > 0,
        );
        return any ? undefined : nothing();
      };
      return writer.write(() => book.change(name, (pool) => lose(pool, holders), nothing), {
        shortcut: () => book.look<{ released: number } | undefined>(name, without, nothing),
      });
    },
  };
}
