import type { ClaimedItem, ItemRecord, ItemState, ItemTags, NewItem } from "../../protocol/pool.ts";
import type { ClaimResult, HolderChange, PoolSettings, PoolStats, PoolStore } from "../pool-store.ts";
import type { Store } from "../store.ts";

export const SETTINGS: PoolSettings = {
  strategy: "fifo",
  maxUses: 0,
  maxAgeMs: 0,
  cooldownMs: 0,
  retireAtScore: null,
  maxPayloadBytes: 262_144,
  keepRetiredMs: 3_600_000,
  keepRetiredCount: 10_000,
};

export const HOLD_MS = 10_000;

export type ClaimArgs = Parameters<PoolStore["claim"]>[0];
type Claim = Pick<ClaimedItem, "id" | "token">;

let asked = 0;

/** A request that nobody made before. */
export function newRequest(): string {
  asked += 1;
  return `r${asked}`;
}

/** One pool as seen by one connection: the port's calls with what most cases leave alone filled in. */
export class Pool {
  readonly store: Store;
  readonly pool: string;

  constructor(store: Store, pool = "p") {
    this.store = store;
    this.pool = pool;
  }

  async put(...items: NewItem[]): Promise<("put" | "exists")[]> {
    const answer = await this.store.pools.put({ pool: this.pool, items });
    if (answer.outcome !== "done") throw new Error("the pool is undeclared");
    return answer.items;
  }

  /** One attempt to claim one item of any kind, unless `more` says otherwise. */
  ask(holder: string, more: Partial<ClaimArgs> = {}): Promise<ClaimResult> {
    const usual = { where: {}, n: 1, holdMs: HOLD_MS, autoExtend: false, request: newRequest() };
    return this.store.pools.claim({ pool: this.pool, ...usual, holder, by: `by ${holder}`, ...more });
  }

  /** What an attempt got: nothing, or `n` items. */
  async claim(holder: string, more: Partial<ClaimArgs> = {}): Promise<ClaimedItem[]> {
    const answer = await this.ask(holder, more);
    return answer.outcome === "claimed" ? answer.items : [];
  }

  async claimIds(holder: string, more: Partial<ClaimArgs> = {}): Promise<string[]> {
    return (await this.claim(holder, more)).map(({ id }) => id);
  }

  async claimOne(holder: string, more: Partial<ClaimArgs> = {}): Promise<ClaimedItem> {
    const [item] = await this.claim(holder, more);
    if (item === undefined) throw new Error(`nothing to claim for ${holder}`);
    return item;
  }

  change({ id, token }: Claim, change: HolderChange) {
    return this.store.pools.change({ pool: this.pool, id, token, change });
  }

  /** Releases what is held; answers how each went. */
  async release(...claims: Claim[]): Promise<("done" | "lease-lost")[]> {
    const answers: ("done" | "lease-lost")[] = [];
    for (const claim of claims) answers.push((await this.change(claim, { do: "release" })).outcome);
    return answers;
  }

  leave(request: string): Promise<void> {
    return this.store.pools.leave({ pool: this.pool, request });
  }

  retire(id: string, note = ""): Promise<"retired" | "unknown"> {
    return this.store.pools.retire({ pool: this.pool, id, note });
  }

  remove(id: string): Promise<"removed" | "unknown"> {
    return this.store.pools.remove({ pool: this.pool, id });
  }

  keep(...holders: string[]) {
    return this.store.pools.keep({ pool: this.pool, holders });
  }

  async lose(...holders: string[]): Promise<number> {
    return (await this.store.pools.lose({ pool: this.pool, holders })).released;
  }

  find(id: string): Promise<ItemRecord | undefined> {
    return this.store.pools.get({ pool: this.pool, id });
  }

  async get(id: string): Promise<ItemRecord> {
    const record = await this.find(id);
    if (record === undefined) throw new Error(`item ${id} is not there`);
    return record;
  }

  async state(id: string): Promise<ItemState | undefined> {
    return (await this.find(id))?.state;
  }

  async stats(): Promise<PoolStats> {
    const stats = await this.store.pools.stats({ pool: this.pool });
    if (stats === undefined) throw new Error(`pool ${this.pool} was never declared`);
    return stats;
  }

  /** How many items that match are in each state that has some. */
  async count(where: ItemTags = {}): Promise<Partial<Record<ItemState, number>>> {
    const counts = await this.store.pools.count({ pool: this.pool, where });
    return Object.fromEntries(Object.entries(counts).filter(([, n]) => n > 0));
  }

  /** Ids of all items of one state that match, over all pages. */
  async ids(state: ItemState, where: ItemTags = {}, n = 100): Promise<string[]> {
    const ids: string[] = [];
    let cursor: string | undefined;
    do {
      const more = cursor === undefined ? {} : { cursor };
      const page = await this.store.pools.page({ pool: this.pool, state, where, n, ...more });
      ids.push(...page.items.map(({ id }) => id));
      cursor = page.next;
    } while (cursor !== undefined);
    return ids;
  }

  /** Sweeps until nothing is left to do. */
  async sweep(): Promise<{ released: number; expired: number; retired: number; forgotten: number }> {
    const sum = { released: 0, expired: 0, retired: 0, forgotten: 0 };
    for (;;) {
      const { more, ...swept } = await this.store.pools.sweep({ pool: this.pool });
      for (const what of ["released", "expired", "retired", "forgotten"] as const) sum[what] += swept[what];
      if (!more) return sum;
    }
  }
}

export async function declaredPool(
  store: Store,
  settings: Partial<PoolSettings> = {},
  pool = "p",
): Promise<Pool> {
  await store.pools.declare({ pool, settings: { ...SETTINGS, ...settings }, as: "owner" });
  return new Pool(store, pool);
}

export function item(id: string, more: Partial<NewItem> = {}): NewItem {
  const tags = more.tags ?? {};
  return { id, payload: JSON.stringify({ id }), tags, tagsJson: JSON.stringify(tags), ttlMs: 0, ...more };
}

/** Items of these ids that differ in nothing else. */
export const items = (ids: readonly string[], more: Partial<NewItem> = {}) => ids.map((id) => item(id, more));

/** Every change that a holder can make. */
export const CHANGES: readonly HolderChange[] = [
  { do: "release" },
  { do: "cool", ms: 60_000 },
  { do: "retire", note: "late" },
  { do: "extend", holdMs: 3_600_000 },
  { do: "report", what: "bad" },
  { do: "report", what: "ok" },
  { do: "update", payload: '"late"', tags: { late: ["1"] }, tagsJson: '{"late":1}' },
];

/** That no item was lost or made up, by the totals. */
export function isConserved({ counts, totals }: PoolStats): boolean {
  const { free, held, cooling } = counts;
  return (
    totals.put === free + held + cooling + totals.retired + totals.expired + totals.removed &&
    totals.claimed === held + totals.released + totals.leasesExpired
  );
}
