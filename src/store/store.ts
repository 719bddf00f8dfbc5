/**
 * The store port: all that Fleet asks of a back end, on one page.
 *
 * Arguments and results are plain data, so a store can also be served over a socket. Answers are given by name, never by a
 * negative number. Every call has a deadline and fails with a `FleetError`: `FLEET_STORE_UNAVAILABLE` (retryable; with
 * `outcome: "unknown"` where the call had been sent), `FLEET_STORE_FAILED`, `FLEET_STORE_BUSY`, `FLEET_CLOSED`.
 * All times are store time in Unix milliseconds: one clock decides leases, TTLs and scores.
 */
import type { ConfigRecord, ConfigVersion } from "../protocol/config.ts";
import type { EntryTemplate } from "../protocol/envelope.ts";
import type { BusEvent } from "../protocol/event.ts";
import type { SlotHealth } from "../protocol/health.ts";
import type { Manifest } from "../protocol/manifest.ts";
import type { Assignments, DesiredAutomation, SlotLease, SlotRef } from "../protocol/spec.ts";
import type { Cordon, DrainWish, SlotStatus, WorkerInfo, WorkerRecord } from "../protocol/status.ts";
import type { DamagedRecord } from "./damage.ts";
import type { EdgeStore } from "./edge-store.ts";
import type { PoolStore } from "./pool-store.ts";
import type { QueueStore } from "./queue-store.ts";
import type { StateStore } from "./state-store.ts";
import type { Watch } from "./watch.ts";

export interface Store {
  readonly traits: StoreTraits;
  /** Prefix of all names and keys, without its colon; empty for none. Two namespaces never meet. */
  readonly namespace: string;
  /** Id of the fleet that lives in this store and namespace; made at the first connection, kept for ever. */
  readonly fleetId: string;
  readonly streams: StreamStore;
  /** See `queue-store.ts`. */
  readonly queues: QueueStore;
  /** See `pool-store.ts`. */
  readonly pools: PoolStore;
  /** Locks, counters, rate limits: see `state-store.ts`. */
  readonly state: StateStore;
  readonly events: EventStore;
  /** Observed use, for the graph: see `edge-store.ts`. */
  readonly edges: EdgeStore;
  readonly registry: Registry;
  /** Store time. */
  now(): Promise<number>;
  /**
   * Records that cannot be read and so count as not there, as this connection found them at its latest looks: what it never looked at is
   * not in the list. Each costs what it is of, and nothing else.
   */
  damaged(): Promise<DamagedRecord[]>;
  /**
   * For those whose right to what they asked for is over while the store is away: what waits for it to come back, and what was sent and has
   * had no answer for a while, fails now, and none of it is done once it is back. Back ends without a link have nothing to let go of.
   */
  letGo?(): void;
  /** Deletes everything of this namespace and nothing else. Answers how many keys or rows went. */
  wipe(): Promise<{ deleted: number }>;
  /** Idempotent. Calls under way may still settle; later ones fail with `FLEET_CLOSED`. */
  close(): Promise<void>;
}

/** How back ends differ, as data: code asks these, never for a back end's name. */
export interface StoreTraits {
  readonly kind: "sqlite" | "redis";
  /** Other processes of this machine can share it. */
  readonly multiProcess: boolean;
  /** Other machines can share it. */
  readonly multiHost: boolean;
  /**
   * How many entries one push should carry at most: few enough that the next call is prepared while the store is at work on this
   * one, and many enough that a call's own cost (a round trip, a transaction) does not show.
   */
  readonly entriesPerPush: number;
}

// ── Streams ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface StreamBounds {
  maxLength: number;
  ttlMs: number;
  maxPayloadBytes: number;
}

/**
 * Delivery class of a stream's pop: **at most once**. Guarantees of every back end:
 *
 * - Order: entries leave in the order in which their push was executed; entries of one push in the order of its array.
 *   Equal payloads are distinct entries.
 * - `pop` is atomic: no two calls ever return the same entry. One whose answer is lost has lost its entries; they are counted
 *   in `popped`.
 * - Bounds are exact after every push: never more than `maxLength` entries, and none of age `ttlMs` or more. An expired entry
 *   is never returned nor counted by `pop`, `peek`, `length`, also when nothing was pushed since.
 * - Conservation: at rest, pushed = popped + trimmed + expired + length. `expired` includes entries that are past their age and
 *   still lie there. An entry that a consumer could not use is counted in `popped` and, by `quarantine`, in `invalid` too.
 *   Counters survive restarts.
 * - The text of an entry is opaque: it comes back byte for byte as `head + ts + tail`.
 */
export interface StreamStore {
  /**
   * Writes a stream's bounds. As `"owner"` they always apply; as `"guest"` only while nobody has declared the stream.
   * Also enters the stream in the index that `list` reads. Returns the bounds that hold now.
   */
  declare(args: { stream: string; bounds: StreamBounds; as: "owner" | "guest" }): Promise<StreamBounds>;

  /**
   * Appends entries in order, then prunes by age and by length, in one atomic step. `"undeclared"` means that nothing was
   * written because the stream has no bounds yet (or the store lost them): declare it and push again.
   *
   * `op` makes a repeat harmless: a `producer` counts its calls to one stream 1, 2, 3, … and has at most one under way; a
   * call whose `seq` was applied already answers `"duplicate"` and writes nothing.
   */
  push(args: {
    stream: string;
    entries: readonly EntryTemplate[];
    op: { producer: string; seq: number };
  }): Promise<PushResult>;

  /** Removes and returns up to `n` oldest entries, oldest first. Never re-sent by itself: a repeat would take more. */
  pop(args: { stream: string; n: number }): Promise<string[]>;

  /**
   * Up to `n` entries, oldest first, without removing them; with `after` only those behind that cursor. A cursor that is none of this
   * back end's is refused with `FLEET_OPTION_INVALID`. With `newest` the last ones of all, in the same order.
   */
  peek(args: { stream: string; n: number; after?: string; newest?: boolean }): Promise<StoredEntry[]>;

  length(args: { stream: string }): Promise<number>;

  /** Undefined for a stream that was never declared. */
  stats(args: { stream: string }): Promise<StreamStats | undefined>;

  /** Names of all declared streams, sorted. */
  list(): Promise<string[]>;

  /**
   * Puts entries that a consumer could not use aside (the newest 1000 are kept) and counts them as `invalid`. Does nothing for a stream
   * that was never declared, or that the store has lost: nothing is left that nobody would ever clear away.
   */
  quarantine(args: { stream: string; entries: readonly QuarantinedEntry[] }): Promise<void>;
  /** The newest quarantined entries, newest first. */
  quarantined(args: { stream: string; n: number }): Promise<QuarantinedEntry[]>;

  /** Frees the memory of expired entries and forgets producers not heard of for an hour. Any process may call it at any time. */
  sweep(args: { stream: string }): Promise<{ expired: number }>;

  /**
   * Calls `onHint` when the stream goes from empty to filled. A hint is no promise: it can be late, doubled or lost, so
   * whoever waits also looks by itself from time to time.
   */
  watch(args: { stream: string }, onHint: () => void): Watch;
}

export type PushResult =
  | { outcome: "pushed"; length: number; trimmed: number; expired: number }
  | { outcome: "duplicate" }
  | { outcome: "undeclared" };

export interface StoredEntry {
  /** Position for `peek({ after })`: opaque, growing with the order of entries. */
  cursor: string;
  raw: string;
}

export interface QuarantinedEntry {
  raw: string;
  reason: string;
}

export interface StreamStats {
  length: number;
  bounds: StreamBounds;
  /** Store time of the oldest entry's push; null when empty. */
  oldestTs: number | null;
  pushed: number;
  popped: number;
  trimmed: number;
  expired: number;
  invalid: number;
}

// ── Events ───────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface NewEvent {
  topic: string;
  source: string;
  /** JSON text. */
  payload: string;
}

/**
 * Delivery class: **at most once, fire and forget**: whoever is not subscribed misses it. Events of one topic arrive in the
 * order of their `seq`; `seq` is taken in the publishing step, counts 1, 2, 3, … per topic, and so tells a subscriber exactly
 * how many it missed. A topic that was swept begins anew at 1.
 */
export interface EventStore {
  /** Never re-sent by itself. */
  publish(event: NewEvent): Promise<{ seq: number; ts: number }>;
  /** Several in one step, in this order: all of them go out or none. Answered for each. Never re-sent by itself either. */
  publishMany(args: { events: readonly NewEvent[] }): Promise<{ seq: number; ts: number }[]>;
  /** Forgets the numbers of topics with this prefix ("" for all) that nobody has published to for so long; of many, in several steps. */
  sweep(args: { prefix: string; silentMs: number }): Promise<{ forgotten: number }>;
  /**
   * `pattern` is a topic, or has `*` for any run of characters. Cuts are healed by the store; events of the time in between
   * are missed. `baselines` resolves, after `ready`, to the last `seq` of every matching topic as of `ready`: whatever is published once
   * it has resolved is delivered or shows as a gap. It costs one number for a topic, and steps between other calls for a pattern, however
   * many topics there are.
   */
  subscribe(
    args: { pattern: string },
    onEvent: (event: BusEvent) => void,
  ): Watch & { readonly baselines: Promise<ReadonlyMap<string, number>> };
}

// ── Registry ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Who lives, what is wanted, who runs what. `revision` grows with every change of workers, manifests, desired state or
 * assignments, by one, so that a watcher reads the whole view only when something changed. It begins at the store's milliseconds, also
 * after a loss of all data: then it is past the time of whatever was read before, which it never is else.
 *
 * A slot lease is exclusive: between two claims of one slot the first has expired or was released. Its token is the store's
 * microseconds at the claim and greater than every token given out before (also over a loss of all data).
 */
export interface Registry {
  /**
   * Enters a worker. `"taken"` when another incarnation of that id is alive (its last beat is younger than its ttl).
   * Also puts `manifests` in place of those that this worker published before. `replaces` names an incarnation
   * that the caller knows to be dead: it does not count as alive, and its slot leases end in the same step. `generation` is what
   * this incarnation counted as before, for a store that has lost it: it never goes back.
   */
  register(args: {
    worker: WorkerInfo;
    manifests: readonly Manifest[];
    ttlMs: number;
    replaces?: string;
    generation?: number;
  }): Promise<RegisterResult>;

  /**
   * One call per interval keeps all that a worker holds: its own record and its slot leases; it also reports the slots.
   * A lease is in `lost` when it expired and somebody else claimed it, or is not there any more; an expired lease that
   * nobody claimed is renewed. `"unknown"` when the store does not know this incarnation: register again.
   */
  beat(args: {
    workerId: string;
    incarnation: string;
    ttlMs: number;
    leaseMs: number;
    leases: readonly HeldLease[];
    /** Left out: as last time. */
    slots?: readonly SlotStatus[];
  }): Promise<BeatResult>;

  /**
   * Leaves: the record goes offline at once, as of when it was last seen, which tells it from one whose time ran out; its leases are released.
   * Unknown incarnations are ignored; to a late beat of this one the answer is `"unknown"`.
   */
  deregister(args: { workerId: string; incarnation: string }): Promise<void>;

  /**
   * Removes records of workers offline for longer than `offlineMs`, and what was asked of them, except to be cordoned. Slot leases that ended
   * so long ago go too, whoever's they were: those of slots that nobody wants any more would stay in the view for ever.
   */
  pruneWorkers(args: { offlineMs: number }): Promise<{ removed: number }>;

  /** Removes the record of an offline worker at once, and all that was asked of it. A live one is left alone. */
  removeWorker(args: { workerId: string }): Promise<"removed" | "alive" | "unknown">;

  /**
   * Keeps what is asked of a worker, or with null takes it back. It is kept by the worker's id, whether or not there is a record of it, and
   * shown in the view with that; a drain only with the incarnation that it is meant for. The same again is `"unchanged"`.
   */
  setWish(args: WishChange): Promise<"stored" | "unchanged">;

  /** Claims each slot that is free or expired, in one atomic step; the answer lists only those granted. */
  claimSlots(args: {
    workerId: string;
    incarnation: string;
    leaseMs: number;
    slots: readonly SlotRef[];
  }): Promise<HeldLease[]>;

  /** Releases leases that still bear these tokens; others are left alone. */
  releaseSlots(args: { leases: readonly HeldLease[] }): Promise<void>;

  /** Everything that placement and status need, read in one step (on a cluster: one slot, so one step too). */
  view(): Promise<FleetView>;
  revision(): Promise<number>;

  /** Manifests by worker id. */
  manifests(): Promise<Record<string, Manifest[]>>;

  /**
   * Stores desired state when `expected` is its present generation (0: there is none yet). With `record`, what it says of config enters
   * the automation's history in the same step, with the store's time; the newest `CONFIG_HISTORY` changes are kept.
   */
  putDesired(args: {
    name: string;
    desired: DesiredAutomation;
    expected: number;
    record?: ConfigRecord;
  }): Promise<"stored" | "conflict">;

  /** Up to `limit` changes of an automation's config, newest first; with `before` only those of lower generations. */
  configHistory(args: { name: string; limit: number; before?: number }): Promise<ConfigVersion[]>;

  /**
   * Takes or renews the leader lease. The token fences what a leader writes; it stays the same until somebody else leads or it resigns, also
   * where the lease has ended meanwhile. A candidate of higher `rank` (default 0) takes the lead over
   * from one of lower rank at once, under a token of its own: masters lead where there are any.
   */
  lead(args: {
    candidate: string;
    leaseMs: number;
    rank?: 0 | 1;
  }): Promise<{ leading: boolean; token: string; leader: string }>;
  resign(args: { candidate: string }): Promise<void>;

  /** Replaces all assignments; refused when `token` is not the present leader's. */
  putAssignments(args: { assignments: Assignments; token: string }): Promise<"stored" | "not-leader">;

  /**
   * Takes a turn to take slots of an automation down for a planned move, so that not all workers do so together: `"taken"` while fewer
   * than `most` others hold one, else `"full"`. Asked for again by its holder it is renewed, whatever `most` is. It ends after
   * `ttlMs`, so that of one that died it comes free by itself.
   */
  takeTurn(args: {
    automation: string;
    holder: string;
    most: number;
    ttlMs: number;
  }): Promise<"taken" | "full">;
  endTurn(args: { automation: string; holder: string }): Promise<void>;

  /** A slot's durable value (JSON text), or undefined. */
  getState(args: SlotRef): Promise<string | undefined>;
  /** Null removes it. Refused when the slot's lease does not bear `token` any more. */
  setState(args: SlotRef & { token: string; value: string | null }): Promise<"stored" | "lease-lost">;

  /** Health of all slots that ever needed healing, by `automation/slot`. */
  slotHealth(): Promise<Record<string, SlotHealth>>;
  /** Refused when the slot's lease does not bear `token` any more. */
  setSlotHealth(args: SlotRef & { token: string; health: SlotHealth }): Promise<"stored" | "lease-lost">;

  /** Calls `onHint` when `revision` has grown; as with streams, a hint can be lost. */
  watch(onHint: () => void): Watch;
}

export interface HeldLease extends SlotRef {
  token: string;
}

export type WishChange =
  | { workerId: string; kind: "cordon"; wish: Cordon | null }
  | { workerId: string; kind: "drain"; wish: DrainWish | null };

export type RegisterResult =
  | { outcome: "registered"; generation: number; now: number }
  | { outcome: "taken"; by: WorkerInfo; lastSeenAt: number };

export type BeatResult =
  | { outcome: "ok"; now: number; revision: number; lost: HeldLease[] }
  | { outcome: "unknown" };

export interface FleetView {
  now: number;
  revision: number;
  workers: WorkerRecord[];
  desired: Record<string, DesiredAutomation>;
  assignments: Assignments;
  leases: SlotLease[];
  /** Candidate that leads at present, or null. */
  leader: string | null;
  /**
   * What of all this stands in the store and cannot be read: it is left out. Where that is the assignments, those here are made of the
   * leases.
   */
  damaged: DamagedRecord[];
}

// ── Opening ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface StoreOptions {
  /** Prefix that keeps fleets on one store apart; default none. */
  namespace?: string;
  /** Longest time that one call may take, in seconds; 0.05 to 60, default 5. */
  deadlineSeconds?: number;
  /** What opens a store that is served by a master (`http://…`, `https://…`). */
  token?: string;
  /** For tests: milliseconds added to the store's clock in every script and statement of this connection. */
  clockOffsetMs?: number;
  /** For tests: how a frozen clock reads; with it the store's own clock is not asked. */
  frozenNow?: () => number;
  log?: (level: "info" | "warn" | "error", message: string, fields?: Record<string, unknown>) => void;
}
