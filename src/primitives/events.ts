import { checkSize, encodePayload } from "../contracts/json.ts";
import { checkTopic, checkTopicPattern } from "../contracts/name.ts";
import { MAX_EVENT_BYTES } from "../protocol/event.ts";
import type { EventStore } from "../store/store.ts";
import { subscribe, type Subscription } from "./subscription.ts";

/** The event bus. Delivery class: **at most once, fire and forget**; a subscriber learns from `missed` what it did not get. */
export interface Events {
  /** Publishes JSON of at most 64 KiB. Resolves once the store has handed it out. */
  publish(topic: string, payload: unknown): Promise<void>;
  /** `pattern` is a topic, or has `*` for any run of characters: `"fleet.slot.*"`. */
  subscribe(pattern: string): Subscription;
}

export interface EventsParts {
  store: EventStore;
  /** Who publishes, as subscribers see it. */
  source: string;
  signal?: AbortSignal;
  /** Whether topics under `fleet.` may be published: only by the framework itself. */
  own?: boolean;
}

export function eventBus({ store, source, signal, own = false }: EventsParts): Events {
  return {
    publish: async (topic, payload) => {
      checkTopic(topic, { own });
      const where = `event "${topic}"`;
      const json = encodePayload(where, payload);
      checkSize(where, json, MAX_EVENT_BYTES);
      await store.publish({ topic, source, payload: json });
    },
    subscribe: (pattern) => subscribe(store, checkTopicPattern(pattern), signal),
  };
}
