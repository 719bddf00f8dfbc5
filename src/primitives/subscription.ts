import type { BusEvent } from "../protocol/event.ts";
import type { EventStore } from "../store/store.ts";
import { Gaps } from "./gaps.ts";

/** Most events that wait for a slow reader; beyond it the oldest are dropped and counted in the next one's `missed`. */
const BUFFER = 10_000;

export interface ReceivedEvent<T = unknown> {
  topic: string;
  payload: T;
  /** Store time of the publish, Unix milliseconds. */
  ts: number;
  source: string;
  /** Counts the topic's events from 1. */
  seq: number;
  /** How many events of this topic this subscription did not get since the one before. */
  missed: number;
}

/** Delivery class: at most once. Ends when closed, on shutdown, or when the loop over it is left. */
export interface Subscription extends AsyncIterableIterator<ReceivedEvent, undefined>, AsyncDisposable {
  /** Resolves once nothing published from then on goes by without being delivered or counted. */
  readonly ready: Promise<void>;
  close(): Promise<void>;
}

export function subscribe(store: EventStore, pattern: string, signal: AbortSignal | undefined): Subscription {
  const waiting: BusEvent[] = [];
  /** All calls of `next` that wait; each looks again by itself. */
  const asleep: (() => void)[] = [];
  const wake = () => {
    for (const resolve of asleep.splice(0)) resolve();
  };
  const state: { closed: boolean; failure?: { error: unknown } } = { closed: false };
  const inner = store.subscribe({ pattern }, (event) => {
    if (waiting.push(event) > BUFFER) waiting.shift();
    wake();
  });
  // Baselines and events come on different ways; events wait until the baselines are known.
  const gaps = inner.baselines.then((baselines) => new Gaps(baselines));
  const ready = inner.baselines.then(() => undefined);
  // Whoever does not await them must not die of an unhandled rejection; whoever does sees the error.
  for (const promise of [ready, inner.ready]) promise.catch(() => undefined);
  // Without baselines nothing can be told: whoever reads learns it now, and not only when an event comes.
  gaps.catch((error: unknown) => {
    state.failure = { error };
    wake();
  });

  const close = async () => {
    if (state.closed) return;
    state.closed = true;
    signal?.removeEventListener("abort", onAbort);
    wake();
    await inner.close();
  };
  const onAbort = () => void close();
  if (signal?.aborted === true) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });

  const next = async (): Promise<IteratorResult<ReceivedEvent, undefined>> => {
    while (!state.closed && state.failure === undefined && waiting.length === 0) {
      await new Promise<void>((resolve) => asleep.push(resolve));
    }
    if (state.closed) return { done: true, value: undefined };
    if (state.failure !== undefined) {
      await close();
      throw state.failure.error;
    }
    const tracker = await gaps.catch(() => undefined);
    const event = tracker === undefined ? undefined : waiting.shift();
    if (tracker === undefined || event === undefined) return next();
    const { topic, payload, ts, source, seq } = event;
    return { done: false, value: { topic, payload, ts, source, seq, missed: tracker.observe(topic, seq) } };
  };
  return {
    ready,
    close,
    next,
    return: async () => {
      await close();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
    [Symbol.asyncDispose]: close,
  };
}
