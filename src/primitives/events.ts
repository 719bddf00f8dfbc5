import { checkSize, encodePayload } from "../contracts/json.ts";
import { checkTopic, checkTopicPattern } from "../contracts/name.ts";
import type { InferInput, InferOutput, Schema } from "../contracts/schema/standard.ts";
import { isTopicContract, type TopicContract } from "../contracts/topic.ts";
import { check, payloadError } from "../contracts/validate.ts";
import { SILENT, Throttle, type Log } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import { MAX_EVENT_BYTES } from "../protocol/event.ts";
import type { EventStore } from "../store/store.ts";
import { subscribe, type SubscribeOptions, type Subscription } from "./subscription.ts";

/** What may be published to a topic: by its contract, or anything to a plain name. */
export type EventInput<T> = T extends TopicContract<infer S> ? InferInput<S> : unknown;
/** What a subscription yields. */
export type EventOutput<T> = T extends TopicContract<infer S> ? InferOutput<S> : unknown;

/** The event bus. Delivery class: **at most once, fire and forget**; a subscriber learns from `missed` what it did not get. */
export interface Events {
  /**
   * Publishes what the topic's schema takes in (to a plain name: any JSON) of at most 64 KiB. Resolves once the store has handed it
   * out. Throws a `TypeError` for a payload that does not fit.
   */
  publish<T extends string | TopicContract>(topic: T, payload: EventInput<T>): Promise<void>;
  /** A topic, or a pattern, in which `*` stands for any run of characters: `"fleet.slot.*"`. Payloads of a topic are parsed by its schema. */
  subscribe<T extends string | TopicContract>(
    topic: T,
    options?: SubscribeOptions,
  ): Subscription<EventOutput<T>>;
}

export interface EventsParts {
  store: EventStore;
  /** Who publishes, as subscribers see it. */
  source: string;
  signal?: AbortSignal;
  /** Whether topics under `fleet.` may be published: only by the framework itself. */
  own?: boolean;
  /** Told of events that do not fit the subscriber's schema; default nobody. */
  log?: Log;
}

/** How often events of one subscription that do not fit are said. */
const SAY_MS = 5000;

export function eventBus({ store, source, signal, own = false, log = SILENT }: EventsParts): Events {
  return {
    publish: async (topic: string | TopicContract, payload: unknown) => {
      const contract = isTopicContract(topic) ? topic : undefined;
      const name = checkTopic(contract?.name ?? topic, { own });
      const where = `event "${name}"`;
      if (contract !== undefined) {
        const checked = await check(contract.schema, payload);
        if (!checked.ok) throw payloadError(where, checked.issues);
      }
      const json = encodePayload(where, payload);
      checkSize(where, json, contract?.options.maxBytes ?? MAX_EVENT_BYTES);
      await store.publish({ topic: name, source, payload: json });
    },

    subscribe: <T extends string | TopicContract>(topic: T, options?: SubscribeOptions) => {
      const schema: Schema | undefined = isTopicContract(topic) ? topic.schema : undefined;
      const quietly = new Throttle(SAY_MS);
      return subscribe<EventOutput<T>>({
        store,
        pattern: isTopicContract(topic) ? topic.name : checkTopicPattern(topic),
        signal,
        options,
        parse: (payload) =>
          schema === undefined
            ? { ok: true, value: payload as EventOutput<T> }
            : (check(schema, payload) as ReturnType<typeof check<Schema<EventOutput<T>>>>),
        unfit: ({ topic: name, seq, source: from }, issues) =>
          quietly.pass(monotonicMs(), () =>
            log.warn(`event "${name}" does not fit its schema; it is left out`, {
              topic: name,
              seq,
              source: from,
              error: payloadError(`event "${name}"`, issues).message,
            }),
          ),
      });
    },
  };
}
