import { expect, it } from "vitest";
import { SILENT } from "../internal/log.ts";
import { LeaseBook } from "../primitives/lease-book.ts";
import type { Pools } from "../primitives/pools.ts";
import type { Queues } from "../primitives/queues.ts";
import type { SharedState } from "../primitives/state.ts";
import type { Streams } from "../primitives/streams.ts";
import type { BusEvent } from "../protocol/event.ts";
import type { EventStore, Store } from "../store/store.ts";
import { Activity } from "./activity.ts";
import { defineContinuous } from "./definition.ts";
import { slotContext } from "./slot-context.ts";

/** The context of a slot whose events come when the test says so. */
function contextOf(signal: AbortSignal) {
  let onEvent: (event: BusEvent) => void = () => undefined;
  const events: EventStore = {
    publish: () => Promise.resolve({ seq: 1, ts: 1 }),
    publishMany: () => Promise.resolve([{ seq: 1, ts: 1 }]),
    sweep: () => Promise.resolve({ forgotten: 0 }),
    subscribe: (_, listener) => {
      onEvent = listener;
      const close = () => Promise.resolve();
      return { ready: Promise.resolve(), baselines: Promise.resolve(new Map()), close };
    },
  };
  const activity = new Activity(() => undefined);
  const context = slotContext({
    automation: defineContinuous("a", { runSlot: async () => {} }),
    slotId: 0,
    token: "1",
    slotCount: () => 1,
    config: () => ({}),
    worker: "w",
    store: { events, registry: {} } as unknown as Store,
    streams: {} as Streams,
    queues: {} as Queues,
    pools: {} as Pools,
    shared: {} as SharedState,
    leases: new LeaseBook(),
    signal,
    activity,
    fence: () => undefined,
    log: SILENT,
    countTurns: true,
  });
  const event = () => onEvent({ topic: "t", ts: 1, source: "s", seq: 1, fleet: "f", payload: 1 });
  return { context, activity, event };
}

it("takes waiting for an event as waiting on purpose", async () => {
  const { context, activity, event } = contextOf(new AbortController().signal);
  const reading = (async () => {
    for await (const { payload } of context.events.subscribe("t")) return payload;
    return undefined;
  })();
  await expect.poll(() => activity.report(0).waiting).toBe(true);
  event();
  expect(await reading).toBe(1);
  expect(activity.report(0).waiting).toBe(false);
});

it("lets the process go on when a loop sleeps and sleeps after the end", async () => {
  const { context } = contextOf(AbortSignal.abort("drain"));
  const timer = { fired: false };
  setTimeout(() => (timer.fired = true), 1);
  for (let turn = 0; turn < 10_000 && !timer.fired; turn++) await context.sleep(60);
  expect(timer.fired).toBe(true);
});
