import { number } from "../contracts/options.ts";
import { PayloadError } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { sleep } from "../internal/timers.ts";
import { eventBus } from "../primitives/events.ts";
import type { StreamEmitter } from "../primitives/stream-emitter.ts";
import type { Streams } from "../primitives/streams.ts";
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
  signal: AbortSignal;
  activity: Activity;
  log: Log;
}

const seconds = number({ min: 0 });

/** Puts together what user code of one run of one slot gets. */
export function slotContext(parts: SlotContextParts): Context {
  const { automation, slotId, store, streams, signal, activity, log } = parts;
  const slot = { automation: automation.name, slotId };
  const emitter =
    automation.output === undefined ? undefined : streams.emitter(automation.output, slotId, "owner");
  const progressing = async <T>(work: Promise<T>): Promise<T> => {
    const result = await work;
    activity.progress();
    return result;
  };
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
    emit: (payload, options) =>
      progressing(declared(emitter, automation).then((out) => out.emit(payload, options))),
    emitMany: (payloads) => progressing(declared(emitter, automation).then((out) => out.emitMany(payloads))),
    stream: (contract) => streams.consumer(contract, { signal, activity, log }),
    events: eventBus({ store: store.events, source: slotKey(slot), signal }),
    loop: (options) =>
      turns(options, signal, { turn: () => activity.turn(), waiting: (on) => activity.waiting(on) }),
    sleep: async (time) => {
      const ms = seconds(time, "sleep: seconds") * 1000;
      activity.waiting(true);
      await sleep(ms, signal);
      activity.waiting(false);
    },
    progress: () => activity.progress(),
    state: slotState(store.registry, slot, parts.token, automation.options.state),
  };
}

function declared(
  emitter: StreamEmitter<Schema> | undefined,
  automation: Automation,
): Promise<StreamEmitter<Schema>> {
  if (emitter !== undefined) return Promise.resolve(emitter);
  return Promise.reject(
    new PayloadError(
      "FLEET_OUTPUT_UNDECLARED",
      `automation "${automation.name}": emit needs a declared output; add output: defineStream("${automation.name}", schema) to its definition`,
    ),
  );
}
