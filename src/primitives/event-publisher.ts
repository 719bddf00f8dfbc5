import type { EventStore, NewEvent } from "../store/store.ts";
import { Gather } from "./gather.ts";

/** Few enough that the next call is prepared while the store is at work on this one. */
const MAX_PER_CALL = 128;
const MAX_BYTES_PER_CALL = 1024 * 1024;
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

/** An event on its way. */
interface Publish {
  event: NewEvent;
  fence: (() => void) | undefined;
  /** Why it was left out when the others were sent. */
  refused: Error | undefined;
}

/**
 * The way out for all events of a process: those of one tick travel in one call, in their order. A call is never sent again, so where its
 * answer is lost each of its events may or may not have gone out.
 */
export class EventPublisher {
  readonly #store: EventStore;
  readonly #gather: Gather<Publish>;

  constructor(store: EventStore) {
    this.#store = store;
    this.#gather = new Gather({
      send: (all) => this.#send(all),
      sizeOf: ({ event }) => event.payload.length,
      maxItems: MAX_PER_CALL,
      maxBytes: MAX_BYTES_PER_CALL,
      maxWaitingBytes: MAX_WAITING_BYTES,
    });
  }

  /**
   * `fence` throws when nothing of whoever publishes may go out any more: what waited while that changed is refused. `published` is called
   * once the event has gone out.
   */
  publish(event: NewEvent, fence?: () => void, published?: () => void): Promise<void> {
    const one: Publish = { event, fence, refused: undefined };
    const sent = this.#gather.add(one);
    // Without these there is nothing of its own to tell.
    if (fence === undefined && published === undefined) return sent;
    return sent.then(() => {
      if (one.refused !== undefined) throw one.refused;
      published?.();
    });
  }

  /** Resolves once everything accepted so far has settled. */
  flushed(): Promise<void> {
    return this.#gather.flushed();
  }

  async #send(all: readonly Publish[]): Promise<void> {
    const events: NewEvent[] = [];
    for (const one of all) {
      try {
        one.fence?.();
        events.push(one.event);
      } catch (error) {
        one.refused = error as Error;
      }
    }
    if (events.length > 0) await this.#store.publishMany({ events });
  }
}

const known = new WeakMap<EventStore, EventPublisher>();

/** The one of this process and store. */
export function publisherOf(store: EventStore): EventPublisher {
  let publisher = known.get(store);
  if (publisher === undefined) known.set(store, (publisher = new EventPublisher(store)));
  return publisher;
}
