/**
 * An item of a pool and its life:
 *
 *     put ──► free ──claim──► held ──release, expiry──► free (or cooling, where the pool has a cool-down)
 *              ▲               │ ├── cool ──► cooling ──(time)──► free
 *              │               │ └── retire, maxUses, maxAge, score ──► retired
 *              └───────────────┘            remove, ttl: gone
 */
export const ITEM_STATES = ["free", "held", "cooling", "retired"] as const;
export type ItemState = (typeof ITEM_STATES)[number];

/** Why an item is retired. `"asked"` is somebody's explicit wish, with words of their own in `note`; it is never undone. */
export const RETIRE_REASONS = ["asked", "max-uses", "max-age", "score"] as const;
export type RetireReason = (typeof RETIRE_REASONS)[number];

/** Tag name → its values, as text; sorted, at least one each. */
export type ItemTags = Readonly<Record<string, readonly string[]>>;

export interface NewItem {
  /** Unique within its pool; the same id put again changes nothing. */
  id: string;
  /** JSON text: opaque. */
  payload: string;
  /** What is matched. */
  tags: ItemTags;
  /** JSON text of the tags as they were given: opaque. */
  tagsJson: string;
  /** 0: no limit. */
  ttlMs: number;
}

export interface ClaimedItem {
  id: string;
  payload: string;
  tagsJson: string;
  /** Fencing token of this claim. */
  token: string;
  /** How often it was claimed, this time included. */
  uses: number;
  score: number;
  until: number;
}

export interface ItemRecord {
  id: string;
  state: ItemState;
  payload: string;
  tagsJson: string;
  uses: number;
  score: number;
  putAt: number;
  /** When its time to live is over; null for never. */
  expiresAt: number | null;
  /** When its last claim ended; null where none has ended yet. */
  lastUsedAt: number | null;
  /** While held: who, since when, until when. */
  holder: { by: string; since: number; until: number } | null;
  /** While cooling: until when. */
  coolUntil: number | null;
  retired: { reason: RetireReason; note: string; at: number } | null;
}
