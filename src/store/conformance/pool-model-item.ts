import type { ItemRecord, ItemState, ItemTags, NewItem, RetireReason } from "../../protocol/pool.ts";
import type { PoolSettings } from "../pool-store.ts";

export interface ModelItem {
  readonly given: NewItem;
  payload: string;
  tags: ItemTags;
  tagsJson: string;
  state: ItemState;
  uses: number;
  score: number;
  readonly putAt: number;
  lastUsedAt: number | null;
  claim: ModelClaim | undefined;
  coolUntil: number | null;
  retired: { reason: RetireReason; note: string } | null;
  /** By what `lru` goes: when, and by which step; undefined for the end of a lease, which no step made. */
  since: { at: number; step: number | undefined };
}

export interface ModelClaim {
  token: string;
  holder: string;
  request: string;
  since: number;
  until: number;
  holdMs: number;
  autoExtend: boolean;
}

/** Whether for each tag named it bears one of the values. */
export function matches({ tags }: { tags: ItemTags }, where: ItemTags): boolean {
  return Object.entries(where).every(([name, values]) => values.some((value) => tags[name]?.includes(value)));
}

export function isPastLife({ given, putAt }: ModelItem, now: number): boolean {
  return given.ttlMs > 0 && putAt + given.ttlMs <= now;
}

export function isTooOld({ putAt }: ModelItem, { maxAgeMs }: PoolSettings, now: number): boolean {
  return maxAgeMs > 0 && putAt + maxAgeMs <= now;
}

/** Whether time has done something to an item that nobody has looked at yet. */
export function isLapsed(item: ModelItem, settings: PoolSettings, now: number): boolean {
  if (item.state === "retired") return false;
  if (item.claim !== undefined) return item.claim.until <= now;
  return (item.coolUntil ?? Infinity) <= now || isPastLife(item, now) || isTooOld(item, settings, now);
}

/** Whether by `lru` the first has to be given out before the second. */
export function isReleasedBefore({ since: one }: ModelItem, { since: other }: ModelItem): boolean {
  if (one.at !== other.at) return one.at < other.at;
  return (one.step ?? Infinity) < (other.step ?? -Infinity);
}

/** As `get` tells it; `retired.at` is left to the store, and when a retired item would have expired is nothing. */
export function recordOf(item: ModelItem): Partial<ItemRecord> {
  const { given, state, payload, tagsJson, uses, score, putAt, lastUsedAt, claim, coolUntil } = item;
  const holder = claim && { by: `by ${claim.holder}`, since: claim.since, until: claim.until };
  const record = { id: given.id, state, payload, tagsJson, uses, score, putAt, lastUsedAt, coolUntil };
  const expiresAt = given.ttlMs > 0 ? putAt + given.ttlMs : null;
  return { ...record, holder: holder ?? null, ...(state === "retired" ? {} : { expiresAt }) };
}
