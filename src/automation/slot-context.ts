import { number } from "../contracts/options.ts";
import { PayloadError } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { sleep } from "../internal/timers.ts";
import { eventBus } from "../primitives/events.ts";
import type { OnUse } from "../primitives/on-use.ts";
import type { LeaseBook } from "../primitives/lease-book.ts";
import type { Pools } from "../primitives/pools.ts";
import type { StreamEmitter } from "../primitives/stream-emitter.ts";
import type { Queues } from "../primitives/queues.ts";
import type { SharedState } from "../primitives/state.ts";
import type { Streams } from "../primitives/streams.ts";
import type { Subscription } from "../primitives/subscription.ts";
import { slotKey } from "../protocol/spec.ts";
import type { Store } from "../store/store.ts";
import type { Schema } from "../contracts/schema/standard.ts";
import type { Activity } from "./activity.ts";
import type { Context } from "./context.ts";
import type { Automation } from "./definition.ts";
import { turns } from "./loop.ts";
import { ownerOf } from "./owns.ts";
import { slotState } from "./slot-state.ts";

export interface SlotContextParts {
  automation: Automation;
  slotId: number;
  token: string;
  /** Live values: read at each access. */
  slotCount: () => number;
  config: () => unknown;
  worker: string;
  store: Store;
  streams: Streams;
  queues: Queues;
  pools: Pools;
  /** Locks, counters, rate limits. */
  shared: SharedState;
  /** What this run (or this task) holds. */
  leases: LeaseBook;
  signal: AbortSignal;
  activity: Activity;
  fence: () => void;
  log: Log;
  /** Told of its events; the other parts tell of themselves. */
  onUse?: OnUse;
  /** A turn of its loops is an iteration of the slot. Not so in a batch automation, where a finished task is one. */
  countTurns: boolean;
}

const seconds = number({ min: 0 });
/** Waits of a slot that is to end are cut to this, not to nothing: a loop that overlooks the signal would hold up its whole process. */
const ENDED_MS = 10;

/** Puts together what user code of one run of one slot gets. */
export function slotContext(parts: SlotContextParts): Context {
  const { automation, slotId, store, streams, queues, pools, shared, signal, activity, fence, log } = parts;
  const slot = { automation: automation.name, slotId };
  const emitter =
    automation.output === undefined ? undefined : streams.emitter(automation.output, slotId, "owner");
  const { onUse } = parts;
  const bus = eventBus({ store: store.events, source: slotKey(slot), signal, log, fence, onUse });
  /** An effect on the store: only while the lease surely holds, and a sign of progress when it is done. */
  const effect = async <T>(work: () => Promise<T>): Promise<T> => {
    fence();
    const result = await work();
    activity.progress();
    return result;
  };
  const by = `${slotKey(slot)} on ${parts.worker}`;
  const use = { signal, activity, fence, log, leases: parts.leases, by };
  return {
    automation: automation.name,
    slotId,
    get slotCount() {
      return parts.slotCount();
    },
    owns: (key) => ownerOf(key, parts.slotCount()) === slotId,
    worker: parts.worker,
    get config() {
      return parts.config();
    },
    signal,
    log,
    emit: (payload, options) => effect(() => declared(emitter, automation).emit(payload, options)),
    emitMany: (payloads) => effect(() => declared(emitter, automation).emitMany(payloads)),
    stream: (contract) => streams.consumer(contract, { signal, activity, fence, log }),
    queue: (contract) => queues.handle(contract, { signal, activity, fence }),
    submit: (contract, payload, options) =>
      queues.handle(contract, { signal, activity, fence }).submit(payload, options),
    call: (contract, payload, options) =>
      queues.handle(contract, { signal, activity, fence }).call(payload, options),
    pool: (contract) => pools.handle(contract, use),
    lock: (name, options) => shared.lock(name, options, use),
    counter: (name, options) => shared.counter(name, options, use),
    rateLimit: (name, options) => shared.rateLimit(name, options, use),
    events: {
      publish: (topic, payload) => effect(() => bus.publish(topic, payload)),
      subscribe: (topic, options) => listening(bus.subscribe(topic, options), activity),
    },
    loop: (options) =>
      turns(options, signal, {
        begin: () => activity.progress(),
        turn: () => (parts.countTurns ? activity.turn() : activity.progress()),
        waiting: (on) => activity.waiting(on),
      }),
    sleep: async (time) => {
      const ms = seconds(time, "sleep: seconds") * 1000;
      activity.waiting(true);
      await (signal.aborted ? sleep(Math.min(ms, ENDED_MS)) : sleep(ms, signal));
      activity.waiting(false);
    },
    progress: () => activity.progress(),
    state: slotState(store.registry, slot, parts.token, automation.options.state),
  };
}

/** Waiting for an event is waiting on purpose. */
function listening<T>(subscription: Subscription<T>, activity: Activity): Subscription<T> {
  return {
    ...subscription,
    next: async () => {
      activity.waiting(true);
      try {
        return await subscription.next();
      } finally {
        activity.waiting(false);
      }
    },
  };
}

function declared(emitter: StreamEmitter<Schema> | undefined, automation: Automation): StreamEmitter<Schema> {
  if (emitter !== undefined) return emitter;
  throw new PayloadError(
    "FLEET_OUTPUT_UNDECLARED",
    `automation "${automation.name}": emit needs a declared output; add output: defineStream("${automation.name}", schema) to its definition`,
  );
}
