import type { StreamContract } from "../contracts/stream.ts";
import { FleetError } from "../errors.ts";
import { uuidv7 } from "../internal/uuid.ts";
import type { EntryTemplate } from "../protocol/envelope.ts";
import type { Store, StreamBounds, StreamStore } from "../store/store.ts";
import { Gather } from "./gather.ts";
import { repeatLost } from "./repeat-lost.ts";

const MAX_BYTES_PER_CALL = 1024 * 1024;
/** A store may be emptied between the declaration and the push; but not time after time. */
const DECLARE_TRIES = 5;
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

/** An entry on its way, and the slot it comes from; null from outside of slots. */
interface Push {
  entry: EntryTemplate;
  slotId: number | null;
  /** Why it was left out when the others were sent. */
  refused: Error | undefined;
}

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
  readonly #fence: ((slotId: number) => void) | undefined;
  readonly #producer = uuidv7();
  readonly #gather: Gather<Push>;
  #seq = 0;
  #declared = false;

  constructor(
    { streams, traits }: Pick<Store, "streams" | "traits">,
    contract: StreamContract,
    as: "owner" | "guest",
    /** Throws when nothing of a slot may be written any more: what waited while that changed is refused. */
    fence?: (slotId: number) => void,
  ) {
    this.#store = streams;
    this.#contract = contract;
    this.#as = as;
    this.#fence = fence;
    this.#gather = new Gather({
      send: (pushes) => this.#send(pushes),
      sizeOf: ({ entry }) => entry.head.length + entry.tail.length,
      maxItems: traits.entriesPerPush,
      maxBytes: MAX_BYTES_PER_CALL,
      maxWaitingBytes: MAX_WAITING_BYTES,
    });
  }

  /** `pushed` is called once the store has the entry; what it answers is the promise's value. */
  push<T>(entry: EntryTemplate, slotId: number | null, pushed: () => T): Promise<T> {
    const push: Push = { entry, slotId, refused: undefined };
    return this.#gather.add(push).then(() => {
      if (push.refused !== undefined) throw push.refused;
      return pushed();
    });
  }

  flushed(): Promise<void> {
    return this.#gather.flushed();
  }

  async #send(pushes: readonly Push[]): Promise<void> {
    if (this.#as === "owner" && !this.#declared) await this.#declare();
    const op = { producer: this.#producer, seq: ++this.#seq };
    const stream = this.#contract.name;
    for (let tries = 0; tries < DECLARE_TRIES; tries++) {
      const outcome = await repeatLost(async () => {
        const entries = this.#allowed(pushes);
        return entries.length === 0 ? "none left" : (await this.#store.push({ stream, entries, op })).outcome;
      });
      if (outcome !== "undeclared") return;
      await this.#declare();
    }
    throw new FleetError(
      "FLEET_STORE_BUSY",
      `stream "${stream}": its bounds were removed from the store again and again; nothing was written`,
      { retryable: true },
    );
  }

  /** What may be written of these. The others of the same call are not held up by one whose slot has lost its lease. */
  #allowed(pushes: readonly Push[]): EntryTemplate[] {
    const fence = this.#fence;
    if (fence === undefined) return pushes.map(({ entry }) => entry);
    return pushes.flatMap((push) => {
      try {
        if (push.slotId !== null) fence(push.slotId);
        return [push.entry];
      } catch (error) {
        push.refused = error as Error;
        return [];
      }
    });
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
