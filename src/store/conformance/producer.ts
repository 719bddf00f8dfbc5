import { uuidv7 } from "../../internal/uuid.ts";
import { type EntryTemplate, entryTemplate } from "../../protocol/envelope.ts";
import type { PushResult, Store, StreamBounds } from "../store.ts";

export const BOUNDS: StreamBounds = { maxLength: 100_000, ttlMs: 60_000, maxPayloadBytes: 262_144 };

/** Pushes to one stream and counts its calls, as every caller of the port must. */
export class Producer {
  readonly id = uuidv7();
  seq = 0;
  readonly #store: Store;
  readonly #stream: string;

  constructor(store: Store, stream: string) {
    this.#store = store;
    this.#stream = stream;
  }

  /** One call with one entry per payload. */
  push(...payloads: unknown[]): Promise<PushResult> {
    return this.pushEntries(payloads.map((payload) => entry(payload)));
  }

  pushEntries(entries: readonly EntryTemplate[]): Promise<PushResult> {
    this.seq += 1;
    return this.repeat(entries);
  }

  /** The same operation again, as after a lost answer. */
  repeat(entries: readonly EntryTemplate[]): Promise<PushResult> {
    return this.#store.streams.push({
      stream: this.#stream,
      entries,
      op: { producer: this.id, seq: this.seq },
    });
  }
}

export function entry(payload: unknown, slotId: number | null = 0): EntryTemplate {
  return entryTemplate(uuidv7(), slotId, JSON.stringify(payload));
}

export async function declared(
  store: Store,
  stream: string,
  bounds: Partial<StreamBounds> = {},
): Promise<Producer> {
  await store.streams.declare({ stream, bounds: { ...BOUNDS, ...bounds }, as: "owner" });
  return new Producer(store, stream);
}

interface Wire {
  id: string;
  slot_id: number | null;
  ts: number;
  payload: unknown;
}

export const wire = (raw: string) => JSON.parse(raw) as Wire;
export const payloads = (raws: readonly string[]) => raws.map((raw) => wire(raw).payload);

/** All that is left, without removing it. */
export async function peekAll(store: Store, stream: string): Promise<unknown[]> {
  const entries = await store.streams.peek({ stream, n: 200_000 });
  return payloads(entries.map(({ raw }) => raw));
}

/** Asserted by callers: zero at rest when nothing went missing without being counted. */
export async function unaccounted(store: Store, stream: string): Promise<number> {
  const stats = await store.streams.stats({ stream });
  if (stats === undefined) throw new Error(`stream ${stream} was never declared`);
  return stats.pushed - stats.popped - stats.trimmed - stats.expired - stats.length;
}
