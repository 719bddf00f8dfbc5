import type { StreamContract } from "../contracts/stream.ts";
import { FleetError } from "../errors.ts";
import { uuidv7 } from "../internal/uuid.ts";
import type { EntryTemplate } from "../protocol/envelope.ts";
import type { Store, StreamBounds, StreamStore } from "../store/store.ts";
import { Gather } from "./gather.ts";

const MAX_BYTES_PER_CALL = 1024 * 1024;
/** A store may be emptied between the declaration and the push; but not time after time. */
const DECLARE_TRIES = 5;
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

export function boundsOf(contract: StreamContract): StreamBounds {
  const { maxLength, ttlSeconds, maxPayloadBytes } = contract.options;
  return { maxLength, ttlMs: Math.max(1, Math.round(ttlSeconds * 1000)), maxPayloadBytes };
}

/**
 * One stream's way in, shared by all slots of a process. Pushes of one tick travel in one call; calls are numbered per
 * producer, so the store can tell a repeat (its answer was lost) from a new one.
 *
 * The stream's bounds are kept in the store: an owner writes its own before its first push, a guest only where there are none.
 */
export class StreamPublisher {
  readonly #store: StreamStore;
  readonly #contract: StreamContract;
  readonly #as: "owner" | "guest";
  readonly #fence: (() => void) | undefined;
  readonly #producer = uuidv7();
  readonly #gather: Gather<EntryTemplate>;
  #seq = 0;
  #declared = false;

  constructor(
    { streams, traits }: Pick<Store, "streams" | "traits">,
    contract: StreamContract,
    as: "owner" | "guest",
    /** Throws when nothing may be written any more: what waited while that changed is refused. */
    fence?: () => void,
  ) {
    this.#store = streams;
    this.#contract = contract;
    this.#as = as;
    this.#fence = fence;
    this.#gather = new Gather({
      send: (entries) => this.#send(entries),
      sizeOf: (entry) => entry.head.length + entry.tail.length,
      maxItems: traits.entriesPerPush,
      maxBytes: MAX_BYTES_PER_CALL,
      maxWaitingBytes: MAX_WAITING_BYTES,
    });
  }

  push(entry: EntryTemplate): Promise<void> {
    return this.#gather.add(entry);
  }

  flushed(): Promise<void> {
    return this.#gather.flushed();
  }

  async #send(entries: readonly EntryTemplate[]): Promise<void> {
    if (this.#as === "owner" && !this.#declared) await this.#declare();
    this.#fence?.();
    const op = { producer: this.#producer, seq: ++this.#seq };
    const stream = this.#contract.name;
    for (let tries = 0; tries < DECLARE_TRIES; tries++) {
      const { outcome } = await this.#store.push({ stream, entries, op });
      if (outcome !== "undeclared") return;
      await this.#declare();
      this.#fence?.();
    }
    throw new FleetError(
      "FLEET_STORE_BUSY",
      `stream "${stream}": its bounds were removed from the store again and again; nothing was written`,
      { retryable: true },
    );
  }

  async #declare(): Promise<void> {
    await this.#store.declare({
      stream: this.#contract.name,
      bounds: boundsOf(this.#contract),
      as: this.#as,
    });
    this.#declared = true;
  }
}
