import { expect, it } from "vitest";
import { SILENT } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import type { PoolStore } from "../store/pool-store.ts";
import { LeaseBook } from "./lease-book.ts";
import { PoolHold } from "./pool-lease.ts";

/** The hold on an item that nobody extends; over after `ms`. */
function held(book: LeaseBook, ms: number): PoolHold {
  return new PoolHold({
    pool: "p",
    item: { id: "i", token: "1", until: 0, payload: "1", tagsJson: "{}", uses: 1, score: 0 },
    holdMs: 1,
    untilMs: monotonicMs() + ms,
    store: {} as PoolStore,
    log: SILENT,
    keeper: undefined,
    books: [book],
  });
}

it("keeps no more than twice what is held of what was forgotten", () => {
  const book = new LeaseBook();
  const live = Array.from({ length: 150 }, () => held(book, 60_000));
  for (let i = 0; i < 10_000; i++) held(book, -1);
  expect(book.size).toBeLessThanOrEqual(2 * live.length);
  for (const hold of live) expect(hold.signal.aborted).toBe(false);
});

it("aborts a signal at the end of its lease, and one that is looked at only then is aborted already", async () => {
  const book = new LeaseBook();
  const watched = held(book, 30);
  const aborted = new Promise((resolve) => watched.signal.addEventListener("abort", resolve));
  const late = held(book, 30);
  await aborted;
  expect(book.size).toBe(1);
  await new Promise((resolve) => setTimeout(resolve, 40));
  expect(late.signal.aborted).toBe(true);
  expect(late.signal).toBe(late.signal);
  expect((late.signal.reason as { code: string }).code).toBe("FLEET_LEASE_LOST");
  expect(book.size).toBe(0);
});
