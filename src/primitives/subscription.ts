import { checkOptions, integer, oneOf, type OptionRules } from "../contracts/options.ts";
import type { Checked } from "../contracts/validate.ts";
import type { BusEvent } from "../protocol/event.ts";
import type { EventStore } from "../store/store.ts";
import { Gaps } from "./gaps.ts";
import { WaitingEvents } from "./waiting-events.ts";

export interface SubscribeOptions {
  /** Most events that wait for a slow reader; 1 to 1 000 000, default 10 000. What is dropped is counted in a later one's `missed`. */
  buffer?: number;
  /** What goes when the buffer is full: `"drop-oldest"` (default), or `"drop-newest"`: what comes. */
  whenFull?: "drop-oldest" | "drop-newest";
}

const DEFAULTS: Required<SubscribeOptions> = { buffer: 10_000, whenFull: "drop-oldest" };
const RULES: OptionRules<Required<SubscribeOptions>> = {
  buffer: integer({ min: 1, max: 1_000_000 }),
  whenFull: oneOf(["drop-oldest", "drop-newest"]),
};

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
export interface Subscription<T = unknown>
  extends AsyncIterableIterator<ReceivedEvent<T>, undefined>, AsyncDisposable {
  /** Resolves once nothing published from then on goes by without being delivered or counted. */
  readonly ready: Promise<void>;
  close(): Promise<void>;
}

export interface SubscribeParts<T> {
  store: EventStore;
  pattern: string;
  signal?: AbortSignal | undefined;
  options?: SubscribeOptions | undefined;
  /** Parses what arrives; what does not fit is told to `unfit` and counted as missed. */
  parse: (payload: unknown) => Checked<T> | Promise<Checked<T>>;
  /** Most bytes of payloads that wait, about; one event waits in any case. Default: no bound but the number of events. */
  maxBytes?: number | undefined;
  unfit?: (event: BusEvent, issues: Extract<Checked<T>, { ok: false }>["issues"]) => void;
}

export function subscribe<T>(parts: SubscribeParts<T>): Subscription<T> {
  const { store, pattern, signal, parse, unfit, maxBytes } = parts;
  const { buffer, whenFull } = {
    ...DEFAULTS,
    ...checkOptions<Required<SubscribeOptions>>(`subscription to "${pattern}"`, parts.options, RULES),
  };
  const waiting = new WaitingEvents({ buffer, maxBytes, whenFull });
  /** All calls of `next` that wait; each looks again by itself. */
  const asleep: (() => void)[] = [];
  const wake = () => {
    for (const resolve of asleep.splice(0)) resolve();
  };
  const state: { closed: boolean; failure?: { error: unknown } } = { closed: false };
  const inner = store.subscribe({ pattern }, (event) => {
    if (waiting.add(event)) wake();
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

  /** Events that did not fit, not yet told in a `missed`. */
  let unread = 0;
  const next = async (): Promise<IteratorResult<ReceivedEvent<T>, undefined>> => {
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
    const { topic, ts, source, seq } = event;
    // In the order of arrival, whatever the parsing takes.
    const missed = tracker.observe(topic, seq);
    const checking = parse(event.payload);
    const checked = checking instanceof Promise ? await checking : checking;
    if (!checked.ok) {
      unread += missed + 1;
      unfit?.(event, checked.issues);
      return next();
    }
    const told = missed + unread;
    unread = 0;
    return { done: false, value: { topic, payload: checked.value, ts, source, seq, missed: told } };
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
