import type { InferInput, InferOutput, Schema } from "../contracts/schema/standard.ts";
import type { Where } from "../contracts/pool-tags.ts";
import type { ItemState, RetireReason } from "../protocol/pool.ts";
import type { PoolStats } from "../store/pool-store.ts";

export interface ItemToPut<P extends Schema = Schema, T extends Schema = Schema> {
  payload: InferInput<P>;
  /** By which it is found; defaults of the schema apply. */
  tags?: InferInput<T>;
  /** The item is gone so long after it was put, unless it is held then: it is gone with its release. 0 (default): never. */
  ttlSeconds?: number;
  /** Its id, 1 to 128 characters; default a new UUIDv7. Putting an id that is there changes nothing, whatever state it is in. */
  id?: string;
}

export interface ClaimOptions {
  /** How long the lease holds unless it is extended, in seconds; above 0 to a day, default 30. */
  holdSeconds?: number;
  /** How long to wait, in line, until there are as many as asked for; 0 (default) only looks, `Infinity` waits for ever. */
  waitSeconds?: number;
  /** Renews the lease by itself until it ends by one of its calls; default false. */
  autoExtend?: boolean;
}

export interface PeekItems {
  /** 1 to 1000, default 1. */
  n?: number;
  /** Default `"free"`. */
  state?: ItemState;
}

/** An item as it stands. The payload is in its input form, as it was put. */
export interface PoolItem<P extends Schema = Schema, T extends Schema = Schema> {
  id: string;
  state: ItemState;
  payload: InferInput<P>;
  tags: InferOutput<T>;
  /** How often it was claimed. */
  uses: number;
  /** Reports of `"ok"` minus reports of `"bad"`. */
  score: number;
  putAt: number;
  /** When its time to live is over; null for never. */
  expiresAt: number | null;
  lastUsedAt: number | null;
  /** While held: who, since when, until when. */
  holder: { by: string; since: number; until: number } | null;
  coolUntil: number | null;
  retired: { reason: RetireReason; note: string; at: number } | null;
}

/**
 * An item that is held, exclusively. All calls fail with `FLEET_LEASE_LOST` once the lease has ended, by whatever: its time, a call that ends
 * it, or somebody who took it away.
 */
export interface Lease<P extends Schema = Schema, T extends Schema = Schema> extends AsyncDisposable {
  readonly id: string;
  readonly payload: InferOutput<P>;
  readonly tags: InferOutput<T>;
  /** Fencing token: greater than those of all claims of this pool before. For systems that can refuse a smaller one. */
  readonly token: string;
  /** How often it was claimed, this time included. */
  readonly uses: number;
  /** Aborts when the lease is lost (not when it is given back), before anybody else can hold the item. */
  readonly signal: AbortSignal;
  /** Holds it for so long from now, unless it holds longer already. */
  extend(seconds: number): Promise<void>;
  /** Gives it back. */
  release(): Promise<void>;
  /** Takes it out of use for ever. */
  retire(reason?: string): Promise<void>;
  /** Gives it back, to be given out again after so long only. */
  cool(seconds: number): Promise<void>;
  /** Says how it went; answers the score. */
  report(what: "ok" | "bad"): Promise<number>;
  /** Changes what it holds from the next claim on. `tags` take the place of all of its tags. */
  update(change: { payload?: InferInput<P>; tags?: InferInput<T> }): Promise<void>;
}

/** The items that bear certain tags. */
export interface PoolSelection<P extends Schema = Schema, T extends Schema = Schema> {
  /** One of them, or null when none is free (within `waitSeconds`). */
  claim(options?: ClaimOptions): Promise<Lease<P, T> | null>;
  /** Exactly `n` of them, or null. 1 to 1000. */
  claimMany(n: number, options?: ClaimOptions): Promise<Lease<P, T>[] | null>;
  /** How many there are: in this state, or in any but `"retired"`. */
  count(state?: ItemState): Promise<number>;
  /** Those put first, without taking them. */
  peek(options?: PeekItems): Promise<PoolItem<P, T>[]>;
}

/**
 * A pool from its users' side. Delivery class: **exclusive while the lease holds**; an item is not used up by being claimed.
 */
export interface PoolHandle<P extends Schema = Schema, T extends Schema = Schema> extends PoolSelection<
  P,
  T
> {
  /** Resolves with its id once the store has it. Throws a `TypeError` for what does not fit. */
  put(item: ItemToPut<P, T>): Promise<string>;
  /** All of them or none, in this order; at most 1000. */
  putMany(items: readonly ItemToPut<P, T>[]): Promise<string[]>;
  /** Those that bear one of the values of each tag named; a tag that is not named means any. */
  where(tags?: Where<InferOutput<T>>): PoolSelection<P, T>;
  get(id: string): Promise<PoolItem<P, T> | undefined>;
  remove(id: string): Promise<"removed" | "unknown">;
  /** Takes an item out of use for ever, whoever holds it. */
  retire(id: string, reason?: string): Promise<"retired" | "unknown">;
  /** Counts by state, who waits and since when, totals. Undefined for a pool that nobody has used yet. */
  stats(): Promise<PoolStats | undefined>;
}
