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
 * Delivery class of a claim: **exclusive while the lease holds**. Guarantees of every back end:
 *
 * - Each call is one atomic step. Between two claims of one item the first was released or its lease has expired. Every claim has a token of
 *   its own, greater than all tokens of this pool before (also over a loss of all data, as it is the store's microseconds at least). A call that
 *   bears another token than the present claim's changes nothing and answers `"lease-lost"`.
 * - `where` names values by tag: an item matches when for each tag named it bears at least one of the values. A tag that is not named means any.
 * - A claim takes exactly `n` items or none. By strategy: `lru` the item that was released (or put) longest ago, `fifo` the one put first,
 *   whatever its uses, `random` any with equal chance. Cooling and retired items are never given out, nor one past its time to live.
 * - **Fair** per `where`: those who wait with equal `where` are served in the order in which they first asked; a claim with the same `where` that
 *   does not stand in line gets nothing while somebody does. So a claim of five is not starved by a flow of ones. A waiter that is not heard of
 *   for its `patienceMs` is forgotten.
 * - An explicit retirement is never undone: not by a release, an expiry, a cool-down or a later put of the same id.
 * - An expired lease is released in the step that next looks at the pool (a claim, `sweep`), as if it had been released at its end.
 * - Conservation: put = free + held + cooling + retired (kept or forgotten) + expired + removed.
 * - The cost of a claim does not grow with the number of items where one tag is named; where several are, the rarest leads.
 */
export interface PoolStore {
  declare(args: { pool: string; settings: PoolSettings; as: "owner" | "guest" }): Promise<PoolSettings>;
  list(): Promise<string[]>;

  /** Puts items in, all or none, in order. `"exists"`: that id is there already, in whatever state. */
  put(args: {
    pool: string;
    items: readonly NewItem[];
  }): Promise<{ outcome: "done"; items: ("put" | "exists")[] } | { outcome: "undeclared" }>;

  /**
   * Claims `n` items. `request` is new for each attempt: a repeat with the same one, after a lost answer, is answered with the claims it had.
   * `waitFor` keeps (or takes) a place in line where nothing was claimed.
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

  /** Gives up a place in line, and what the request was granted meanwhile. */
  leave(args: { pool: string; request: string }): Promise<void>;

  /** One change of a claimed item by its holder. All but `extend`, `report` and `update` end the claim. */
  change(args: {
    pool: string;
    id: string;
    token: string;
    change: HolderChange;
  }): Promise<{ outcome: "done"; until: number | null; score: number } | { outcome: "lease-lost" }>;

  /** By somebody who does not hold it: an operator, whoever knows that it is dead. A holder loses it. */
  retire(args: { pool: string; id: string; note: string }): Promise<"retired" | "unknown">;
  remove(args: { pool: string; id: string }): Promise<"removed" | "unknown">;

  /** Renews what these holders hold with `autoExtend`, and tells all that each holds; `at` as with queues. */
  keep(args: {
    pool: string;
    holders: readonly string[];
  }): Promise<{ held: { id: string; token: string; until: number }[][]; at: string }>;
  /** These holders are gone: what they held is released, their places in line end. */
  lose(args: { pool: string; holders: readonly string[] }): Promise<{ released: number }>;

  get(args: { pool: string; id: string }): Promise<ItemRecord | undefined>;
  /** Items of one state, oldest put first; `where` as with `claim`. */
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

  /** Releases what has expired, ends cool-downs and times to live, retires by age, forgets retired items beyond what is kept. */
  sweep(args: {
    pool: string;
  }): Promise<{ released: number; expired: number; retired: number; forgotten: number; more: boolean }>;

  /** A wish to have at least `below` items (free, held or cooling) that match; the leader submits what is missing. Replaces one of equal `where`. */
  putRefill(args: { pool: string; refill: Refill }): Promise<void>;
  refills(args: { pool: string }): Promise<Refill[]>;

  /** Hint: something may be free, or the line has moved. */
  watch(args: { pool: string }, onHint: () => void): Watch;
}

export type ClaimResult =
  | { outcome: "claimed"; items: ClaimedItem[]; now: number }
  /** `position` counts those before it in line, from 0; null where it does not stand in line. `nextFreeAt`: when one that matches is free at the latest, or null. */
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
  /** Who waits, in order of their first asking; at most 100. */
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
