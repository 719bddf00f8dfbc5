import { setMaxListeners } from "node:events";
import { checkTopicPattern } from "../contracts/name.ts";
import { eventBus } from "../primitives/events.ts";
import type { ReceivedEvent } from "../primitives/subscription.ts";
import { isNews, matchesTopic } from "../protocol/event.ts";
import type { EventStore } from "../store/store.ts";

export interface FollowEventsArgs {
  /** Topics, or patterns with `*`. An event that several match comes once. */
  patterns: readonly string[];
  /** Most events that wait for a slow reader, by pattern; older ones go, and are counted in `missed`. Default: that of a subscription. */
  buffer?: number;
  /** The same in bytes of payloads. Default: no such bound. */
  bufferBytes?: number;
  signal: AbortSignal;
}

/**
 * Several subscriptions as one: ends with `signal`, when the loop over it is left, and with any of them. Throws at once `FLEET_NAME_INVALID`
 * for what is no pattern.
 */
export function followEvents(
  store: EventStore,
  { patterns, buffer, bufferBytes, signal }: FollowEventsArgs,
): AsyncIterableIterator<ReceivedEvent, undefined> & { readonly ready: Promise<void> } {
  // Each subscription listens to it while it lasts; more than ten are no leak.
  setMaxListeners(0, signal);
  const bus = eventBus({
    store,
    source: "follower",
    signal,
    ...(bufferBytes === undefined ? {} : { bufferBytes }),
  });
  const different = [...new Set(patterns)].map(checkTopicPattern);
  const subscriptions = different.map((pattern) =>
    bus.subscribe(pattern, buffer === undefined ? {} : { buffer }),
  );
  /** What the subscriptions have answered; at most one each, as each is asked again only when that was taken. */
  const arrived: { at: number; result: IteratorResult<ReceivedEvent, undefined> }[] = [];
  let failure: { error: unknown } | undefined;
  let over = false;
  let wake: () => void = () => undefined;
  const ask = (at: number) => {
    subscriptions[at]?.next().then(
      (result) => {
        arrived.push({ at, result });
        wake();
      },
      (error: unknown) => {
        failure ??= { error };
        wake();
      },
    );
  };
  for (const at of subscriptions.keys()) ask(at);

  async function closeAll(): Promise<void> {
    over = true;
    wake();
    await Promise.all(subscriptions.map((one) => one.close()));
  }

  const next = async (): Promise<IteratorResult<ReceivedEvent, undefined>> => {
    for (;;) {
      const first = arrived.shift();
      if (failure !== undefined) {
        await closeAll();
        throw failure.error;
      }
      if (over || first?.result.done === true) {
        await closeAll();
        return { done: true, value: undefined };
      }
      if (first === undefined) {
        await new Promise<void>((resolve) => (wake = resolve));
        continue;
      }
      ask(first.at);
      const { topic } = first.result.value;
      const elsewhere = different.slice(0, first.at).some((pattern) => matchesTopic(pattern, topic));
      if (!elsewhere && isNews(topic, different)) return first.result;
    }
  };
  const ready = Promise.all(subscriptions.map((one) => one.ready)).then(() => undefined);
  ready.catch(() => undefined);
  return {
    ready,
    next,
    return: async () => {
      await closeAll();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
