import { ITEM_STATES, type ItemTags, type NewItem, type RetireReason } from "../../protocol/pool.ts";
import type { HolderChange, PoolSettings, PoolStats } from "../pool-store.ts";
import {
  isLapsed,
  isPastLife,
  isReleasedBefore,
  isTooOld,
  matches,
  type ModelItem,
} from "./pool-model-item.ts";

interface Waiter {
  request: string;
  holder: string;
  where: ItemTags;
  n: number;
  since: number;
  until: number;
}

export interface Asking {
  holder: string;
  request: string;
  where: ItemTags;
  n: number;
  holdMs: number;
  autoExtend: boolean;
  patienceMs: number | undefined;
}

/** What may be answered to a claim: what the request had, as many of the items that are free as are asked for, or a position. */
export type Allowed = { had: ModelItem[] } | { free: ModelItem[] } | { position: number | null };

/**
 * What a pool is, in the fewest words: a list of items and a list of those who wait, each gone through from end to end. It follows a store
 * rather than it goes ahead: of the items that may come next the store's choice is claimed here too.
 */
export class PoolModel {
  readonly settings: PoolSettings;
  /** In order of their puts. */
  items: ModelItem[] = [];
  waiters: Waiter[] = [];
  now = 0;
  readonly totals = { put: 0, claimed: 0, released: 0, expired: 0, retired: 0, removed: 0, leasesExpired: 0 };
  #steps = 0;

  constructor(settings: PoolSettings) {
    this.settings = settings;
  }

  find(id: string): ModelItem | undefined {
    return this.items.find((item) => item.given.id === id);
  }

  matching(where: ItemTags): ModelItem[] {
    return this.items.filter((item) => matches(item, where));
  }

  counts(where: ItemTags = {}): PoolStats["counts"] {
    const all = this.matching(where);
    const counted = ITEM_STATES.map((state) => [state, all.filter((item) => item.state === state).length]);
    return Object.fromEntries(counted) as PoolStats["counts"];
  }

  hasLapsed(now: number): boolean {
    return this.items.some((item) => isLapsed(item, this.settings, now));
  }

  put(given: NewItem): "put" | "exists" {
    const there = this.find(given.id);
    if (there !== undefined) {
      const isOver = isPastLife(there, this.now) && there.state !== "held" && there.state !== "retired";
      if (!isOver) return "exists";
      this.#goes(there, "expired");
    }
    this.#steps += 1;
    const { payload, tags, tagsJson } = given;
    const since = { at: this.now, step: this.#steps };
    const fresh = { uses: 0, score: 0, lastUsedAt: null, claim: undefined, coolUntil: null, retired: null };
    this.items.push({ ...fresh, given, payload, tags, tagsJson, state: "free", putAt: this.now, since });
    this.totals.put += 1;
    return "put";
  }

  /** What time has done by now. Answers what `sweep` would. */
  pass(): { released: number; expired: number; retired: number } {
    const { leasesExpired, expired, retired } = this.totals;
    for (const item of this.items.filter((one) => isLapsed(one, this.settings, this.now))) this.#lapse(item);
    this.waiters = this.waiters.filter(({ until }) => until > this.now);
    return {
      released: this.totals.leasesExpired - leasesExpired,
      expired: this.totals.expired - expired,
      retired: this.totals.retired - retired,
    };
  }

  #lapse(item: ModelItem): void {
    if (item.claim !== undefined && item.claim.until <= this.now) this.#end(item, item.claim.until);
    if (item.coolUntil !== null && item.coolUntil <= this.now) {
      item.coolUntil = null;
      item.state = "free";
    }
    if (item.state !== "free" && item.state !== "cooling") return;
    if (isPastLife(item, this.now)) this.#goes(item, "expired");
    else if (isTooOld(item, this.settings, this.now)) this.#retires(item, "max-age", "");
  }

  #goes(item: ModelItem, how: "expired" | "removed"): void {
    this.items = this.items.filter((one) => one !== item);
    this.totals[how] += 1;
  }

  #retires(item: ModelItem, reason: RetireReason, note: string): void {
    item.state = "retired";
    item.coolUntil = null;
    item.retired = { reason, note };
    this.totals.retired += 1;
  }

  /** Ends a claim: by its lease, or by the step that is under way. */
  #end(item: ModelItem, leaseEnd?: number, rest: { coolMs?: number; note?: string } = {}): void {
    const at = leaseEnd ?? this.now;
    item.claim = undefined;
    item.lastUsedAt = at;
    item.since = { at, step: leaseEnd === undefined ? this.#steps : undefined };
    this.totals[leaseEnd === undefined ? "released" : "leasesExpired"] += 1;
    const { maxUses, retireAtScore, cooldownMs } = this.settings;
    const pause = Math.max(cooldownMs, rest.coolMs ?? 0);
    if (rest.note !== undefined) this.#retires(item, "asked", rest.note);
    else if (isPastLife(item, at)) this.#goes(item, "expired");
    else if (maxUses > 0 && item.uses >= maxUses) this.#retires(item, "max-uses", "");
    else if (isTooOld(item, this.settings, at)) this.#retires(item, "max-age", "");
    else if (retireAtScore !== null && item.score <= retireAtScore) this.#retires(item, "score", "");
    else {
      item.state = pause > 0 ? "cooling" : "free";
      item.coolUntil = pause > 0 ? at + pause : null;
    }
  }

  /** To be called with `pass` done; what `free` allows is taken by `claimed`. */
  ask({ holder, request, where, n, patienceMs }: Asking): Allowed {
    const had = this.items.filter(({ claim }) => claim?.request === request);
    if (had.length > 0) return { had };
    const same = (one: Waiter) => JSON.stringify(one.where) === JSON.stringify(where);
    const line = this.waiters.filter((one) => same(one));
    const place = line.findIndex((one) => one.request === request);
    const isNext = place === 0 || line.length === 0;
    const free = this.matching(where).filter(({ state }) => state === "free");
    if (isNext && free.length >= n) return { free };
    const until = this.now + (patienceMs ?? 0);
    const waiter = line[place];
    if (patienceMs === undefined) {
      this.waiters = this.waiters.filter((one) => one !== waiter);
      return { position: null };
    }
    if (waiter !== undefined) waiter.until = until;
    else this.waiters.push({ request, holder, where, n, since: this.now, until });
    return { position: waiter === undefined ? line.length : place };
  }

  claimed(items: readonly { id: string; token: string }[], asking: Asking): void {
    this.waiters = this.waiters.filter(({ request }) => request !== asking.request);
    const { holder, request, holdMs, autoExtend } = asking;
    for (const { id, token } of items) {
      const item = this.find(id);
      if (item?.state !== "free") throw new Error(`${id} is not free`);
      item.state = "held";
      item.uses += 1;
      item.claim = { token, holder, request, holdMs, autoExtend, since: this.now, until: this.now + holdMs };
    }
    this.totals.claimed += items.length;
  }

  /** Whether of two items the first has to be given out before the second. */
  isBefore(one: ModelItem, other: ModelItem): boolean {
    const { strategy } = this.settings;
    if (strategy === "fifo") return this.items.indexOf(one) < this.items.indexOf(other);
    return strategy === "lru" && isReleasedBefore(one, other);
  }

  change(
    id: string,
    token: string,
    change: HolderChange,
  ): { until: number | null; score: number } | undefined {
    const item = this.find(id);
    const claim = item?.claim;
    if (item === undefined || claim?.token !== token || claim.until <= this.now) return undefined;
    this.#steps += 1;
    if (change.do === "extend") claim.until = Math.max(claim.until, this.now + change.holdMs);
    else if (change.do === "report") item.score += change.what === "ok" ? 1 : -1;
    else if (change.do === "cool") this.#end(item, undefined, { coolMs: change.ms });
    else if (change.do === "retire") this.#end(item, undefined, { note: change.note });
    else if (change.do === "release") this.#end(item);
    else {
      item.payload = change.payload ?? item.payload;
      item.tags = change.tags ?? item.tags;
      item.tagsJson = change.tagsJson ?? item.tagsJson;
    }
    return { until: item.claim?.until ?? null, score: item.score };
  }

  /** Releases what is held so, and ends places in line; answers how many claims. */
  lose(isMeant: (one: { holder: string; request: string }) => boolean): number {
    this.#steps += 1;
    const held = this.items.filter(({ claim }) => claim !== undefined && isMeant(claim));
    for (const item of held) this.#end(item);
    this.waiters = this.waiters.filter((one) => !isMeant(one));
    return held.length;
  }

  retire(id: string, note: string): "retired" | "unknown" {
    const item = this.find(id);
    if (item === undefined) return "unknown";
    if (item.claim !== undefined) this.#end(item, undefined, { note });
    else if (item.state !== "retired") this.#retires(item, "asked", note);
    return "retired";
  }

  remove(id: string): "removed" | "unknown" {
    const item = this.find(id);
    if (item === undefined) return "unknown";
    if (item.claim !== undefined) this.totals.released += 1;
    if (item.state !== "retired") this.#goes(item, "removed");
    else this.items = this.items.filter((one) => one !== item);
    return "removed";
  }

  keep(holder: string): { id: string; token: string; until: number }[] {
    return this.items.flatMap(({ given, claim }) => {
      if (claim?.holder !== holder || claim.until <= this.now) return [];
      if (claim.autoExtend) claim.until = Math.max(claim.until, this.now + claim.holdMs);
      return [{ id: given.id, token: claim.token, until: claim.until }];
    });
  }
}
