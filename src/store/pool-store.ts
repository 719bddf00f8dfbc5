import type { ClaimedItem, ItemRecord, ItemState, ItemTags, NewItem } from "../protocol/pool.ts";
import type { Watch } from "./watch.ts";

/** What holds for a whole pool; kept in the store by its owner. */
export interface PoolSettings {
  /** Which free item is given out: the one not used for longest, the one put first, or any. */
  strategy: "lru" | "fifo" | "random";
  /** An item is retired (`max-uses`) with its release once it was claimed so often; 0: no limit. */
  maxUses: number;
  /** An item is retired (`max-age`) so long after it was put; 0: no limit. One that is held is so with its release. */
  maxAgeMs: number;
  /** An item rests so long after each release; 0: not at all. */
  cooldownMs: number;
  /** An item whose score (reports of `ok` minus reports of `bad`) falls to this is retired (`score`); null: never. */
  retireAtScore: number | null;
  maxPayloadBytes: number;
  /** Retired items are kept for so long, and at most so many of them. */
  keepRetiredMs: number;
  keepRetiredCount: number;
}

/**
 * A wish that was not left again for so long, and that nobody waits with in line, is forgotten. Each claim leaves its wish anew, so those of
 * whoever claims once a week stay; whoever comes later leaves it again. Else wishes made of users' data would only grow in number, and what
 * a version before wished for would be made for ever.
 */
export const FORGET_REFILL_MS = 7 * 86_400_000;

/**
 * Delivery class of a claim: **exclusive while the lease holds**. Guarantees of every back end:
 *
 * - Each call is one atomic step. Between two claims of one item the first was released or its lease has expired. Every claim has a token of
 *   its own, greater than all tokens of this pool before (also over a loss of all data, as it is the store's microseconds at least). A call that
 *   bears another token than the present claim's changes nothing and answers `"lease-lost"`.
 *   A claim is over at its `until`, to the millisecond, whether or not anybody has looked: from then on its token is late, also for `keep`.
 * - `where` names values by tag: an item matches when for each tag named it bears at least one of the values. A tag that is not named means any.
 * - A claim takes exactly `n` items or none. By strategy: `lru` the item that was released (or put) longest ago, `fifo` the one put first,
 *   whatever its uses, `random` any with equal chance. For `lru` an item that cooled was released when its claim ended, and one whose lease
 *   expired at that lease's end. Of the same millisecond the one that was put or released by the earlier step comes first (expired leases: in any
 *   order), and of one put the one named first. Cooling and retired items are never given out, nor one past its time to live or its age.
 * - **Fair** per `where`: those who wait with equal `where` are served in the order in which they first asked; a claim with the same `where` that
 *   does not stand in line gets nothing while somebody does. So a claim of five is not starved by a flow of ones. A waiter that is not heard of
 *   for its `patienceMs` is forgotten. Lines of different `where` do not wait for each other.
 * - An explicit retirement is never undone: not by a release, an expiry, a cool-down or a later put of the same id, as long as it is kept. Who
 *   retires what is retired already is answered as if it had done so; reason, note and time stay those of the first.
 * - An expired lease is released in the step that next looks at the pool (a claim, `sweep`), as if it had been released at its end: so it cools
 *   from then on. All other calls show items as they stand. A time is reached when the clock shows it: free at `coolUntil`, gone at `expiresAt`.
 * - When a claim ends, however it does, the first of these that holds decides: the holder's `retire`; past its time to live (gone, `expired`);
 *   claimed `maxUses` times; past `maxAgeMs`; a score at `retireAtScore` or below; else it cools, or is free. It rests for `cooldownMs` or what
 *   `cool` asked for, whichever is longer. Free and cooling items go by time to live and age without a claim, too; retired ones by no time to live.
 * - Conservation, by `PoolStats.totals`: put = free + held + cooling + retired (kept or forgotten) + expired + removed, and
 *   claimed = held + released + leasesExpired. So `released` counts all ends of claims but those by time, and `removed` no item that was
 *   retired: removing such a one forgets it.
 * - A pool that was never declared has no items: what does not answer `"undeclared"` answers as if it were empty.
 * - The cost of a claim does not grow with the number of items where one tag is named; where several are, the rarest leads.
 */
export interface PoolStore {
  /** As `"owner"` always, as `"guest"` only where there are none. Answers the settings that hold now; they count from then on. */
  declare(args: { pool: string; settings: PoolSettings; as: "owner" | "guest" }): Promise<PoolSettings>;
  /** Names of all declared pools, sorted. */
  list(): Promise<string[]>;

  /**
   * Puts items in, all or none, in order. `"exists"`: that id is there already, in whatever state (also twice in one call), and stays as it is.
   * One that is past its time to live and not held is not there, whether or not anybody has looked.
   */
  put(args: {
    pool: string;
    items: readonly NewItem[];
  }): Promise<{ outcome: "done"; items: ("put" | "exists")[] } | { outcome: "undeclared" }>;

  /**
   * Claims `n` items. `request` is new for each attempt: a repeat with the same one, after a lost answer, is answered with the claims it had, as
   * long as they hold; where none of them does any more, it is a new attempt.
   * `waitFor` keeps (or takes) a place in line where nothing was claimed; without it a place that the request had is given up.
   */
  claim(args: {
    pool: string;
    where: ItemTags;
    n: number;
    holdMs: number;
    /** The supervisor renews it with `keep`, by `holdMs` at a time, until it is released. */
    autoExtend: boolean;
    request: string;
    holder: string;
    /** For people: `automation/slot on worker`. */
    by: string;
    waitFor?: { patienceMs: number };
  }): Promise<ClaimResult>;

  /** Gives up a place in line, and releases what the request was granted meanwhile. */
  leave(args: { pool: string; request: string }): Promise<void>;

  /**
   * One change of a claimed item by its holder. All but `extend`, `report` and `update` end the claim; then `until` is null. `extend`: from now on
   * `holdMs` more, unless it holds longer already. `update`: what is left out stays, and what is given counts from this step on.
   */
  change(args: {
    pool: string;
    id: string;
    token: string;
    change: HolderChange;
  }): Promise<{ outcome: "done"; until: number | null; score: number } | { outcome: "lease-lost" }>;

  /** By somebody who does not hold it: an operator, whoever knows that it is dead. A holder loses it. What was removed may be put anew. */
  retire(args: { pool: string; id: string; note: string }): Promise<"retired" | "unknown">;
  remove(args: { pool: string; id: string }): Promise<"removed" | "unknown">;

  /** Renews (as `extend`) what these holders hold with `autoExtend`, and tells all that each holds; `at` as with queues. */
  keep(args: {
    pool: string;
    holders: readonly string[];
  }): Promise<{ held: { id: string; token: string; until: number }[][]; at: string }>;
  /** These holders are gone: what they held is released, their places in line end. */
  lose(args: { pool: string; holders: readonly string[] }): Promise<{ released: number }>;

  get(args: { pool: string; id: string }): Promise<ItemRecord | undefined>;
  /** Items of one state, oldest put first; `where` as with `claim`. What does not change meanwhile is on exactly one page. */
  page(args: {
    pool: string;
    state: ItemState;
    where: ItemTags;
    n: number;
    cursor?: string;
  }): Promise<{ items: ItemRecord[]; next?: string }>;
  /** How many items that match are in each state; exact. */
  count(args: { pool: string; where: ItemTags }): Promise<Record<ItemState, number>>;
  stats(args: { pool: string }): Promise<PoolStats | undefined>;

  /**
   * Releases what has expired, ends cool-downs and times to live, retires by age, forgets retired items beyond what is kept (the oldest
   * retirements first), waiters whose patience is over and wishes that nobody has any more (`FORGET_REFILL_MS`). `released`: expired leases, whatever became of their items; `expired` and `retired`: all
   * that went so in this step. `more`: there was more than one step should do; call again.
   */
  sweep(args: {
    pool: string;
  }): Promise<{ released: number; expired: number; retired: number; forgotten: number; more: boolean }>;

  /** A wish to have at least `below` items (free, held or cooling) that match; the leader submits what is missing. Replaces one of equal `where`. Left again from time to time, or forgotten. */
  putRefill(args: { pool: string; refill: Refill }): Promise<void>;
  refills(args: { pool: string }): Promise<Refill[]>;

  /** Hint: something may be free, or the line has moved. */
  watch(args: { pool: string }, onHint: () => void): Watch;
}

export type ClaimResult =
  | { outcome: "claimed"; items: ClaimedItem[]; now: number }
  /**
   * `position` counts those before it in line, from 0; null where it does not stand in line. `nextFreeAt`: when one that matches and is held or
   * cooling will be free at the latest; null where there is none such.
   */
  | { outcome: "none"; position: number | null; nextFreeAt: number | null; now: number }
  | { outcome: "undeclared" };

export type HolderChange =
  | { do: "release" }
  | { do: "cool"; ms: number }
  | { do: "retire"; note: string }
  | { do: "extend"; holdMs: number }
  | { do: "report"; what: "ok" | "bad" }
  | { do: "update"; payload?: string; tags?: ItemTags; tagsJson?: string };

export interface PoolStats {
  settings: PoolSettings;
  counts: Record<ItemState, number>;
  /** Who waits, of all lines, in order of their first asking (`since`); at most 100. Those whose patience is over are left out. */
  waiting: { by: string; where: ItemTags; n: number; since: number }[];
  totals: {
    put: number;
    claimed: number;
    released: number;
    expired: number;
    retired: number;
    removed: number;
    leasesExpired: number;
  };
}

export interface Refill {
  where: ItemTags;
  below: number;
  queue: string;
  /** JSON text: the payload of each task. */
  payload: string;
  maxAttempts: number;
  timeoutMs: number;
}
