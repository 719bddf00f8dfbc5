import { checkSize, encodePayload } from "../contracts/json.ts";
import { checkTopic, checkTopicPattern } from "../contracts/name.ts";
import type { InferInput, InferOutput, Schema } from "../contracts/schema/standard.ts";
import { isTopicContract, type TopicContract } from "../contracts/topic.ts";
import { check, payloadError, type Checked } from "../contracts/validate.ts";
import { SILENT, Throttle, type Log } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import { MAX_EVENT_BYTES } from "../protocol/event.ts";
import type { EventStore } from "../store/store.ts";
import { publisherOf } from "./event-publisher.ts";
import type { OnUse } from "./on-use.ts";
import { subscribe, type SubscribeOptions, type Subscription } from "./subscription.ts";

/** What may be published to a topic: by its contract, or anything to a plain name. */
export type EventInput<T> = T extends TopicContract<infer S> ? InferInput<S> : unknown;
/** What a subscription yields. */
export type EventOutput<T> = T extends TopicContract<infer S> ? InferOutput<S> : unknown;

/** The event bus. Delivery class: **at most once, fire and forget**; a subscriber learns from `missed` what it did not get. */
export interface Events {
  /**
   * Publishes what the topic's schema takes in (to a plain name: any JSON) of at most 64 KiB. Resolves once the store has handed it
   * out; publishes of one tick travel in one call, in their order. Throws a `TypeError` for a payload that does not fit.
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
  /** Throws when nothing of whoever publishes may go out any more. */
  fence?: () => void;
  /** Most bytes of payloads that wait in one subscription for a slow reader; default no bound but the number of events. */
  bufferBytes?: number;
  /** Default nobody. */
  onUse?: OnUse | undefined;
}

/** To a plain name, anything may be published. */
const FITS: Checked<unknown> = { ok: true, value: undefined };
/** How often events of one subscription that do not fit are said. */
const SAY_MS = 5000;

export function eventBus(parts: EventsParts): Events {
  const { store, source, signal, own = false, log = SILENT, fence, onUse, bufferBytes } = parts;
  const publisher = publisherOf(store);
  const send = (topic: string, payload: unknown, checked: Checked<unknown>, maxBytes: number) => {
    const where = `event "${topic}"`;
    if (!checked.ok) throw payloadError(where, checked.issues);
    const json = encodePayload(where, payload);
    checkSize(where, json, maxBytes);
    const published = onUse === undefined ? undefined : () => onUse("publish", topic, 1);
    return publisher.publish({ topic, source, payload: json }, fence, published);
  };
  return {
    // Not `async`: with two promises fewer a call costs less, and what needs no waiting is sent in the order of its calls.
    publish: (topic: string | TopicContract, payload: unknown) => {
      try {
        const contract = isTopicContract(topic) ? topic : undefined;
        const name = checkTopic(contract?.name ?? topic, { own });
        const checking = contract === undefined ? FITS : check(contract.schema, payload);
        const maxBytes = contract?.options.maxBytes ?? MAX_EVENT_BYTES;
        return checking instanceof Promise
          ? checking.then((checked) => send(name, payload, checked, maxBytes))
          : send(name, payload, checking, maxBytes);
      } catch (error) {
        return Promise.reject(error);
      }
    },

    subscribe: <T extends string | TopicContract>(topic: T, options?: SubscribeOptions) => {
      const schema: Schema | undefined = isTopicContract(topic) ? topic.schema : undefined;
      const pattern = isTopicContract(topic) ? topic.name : checkTopicPattern(topic);
      const quietly = new Throttle(SAY_MS);
      onUse?.("subscribe", pattern, 0);
      return subscribe<EventOutput<T>>({
        store,
        pattern,
        signal,
        options,
        maxBytes: bufferBytes,
        parse: (payload) => {
          onUse?.("subscribe", pattern, 1);
          return schema === undefined
            ? { ok: true, value: payload as EventOutput<T> }
            : (check(schema, payload) as ReturnType<typeof check<Schema<EventOutput<T>>>>);
        },
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
