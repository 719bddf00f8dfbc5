import { expect, it, vi } from "vitest";
import { z } from "zod";
import { defineTopic } from "../contracts/topic.ts";
import { FleetError } from "../errors.ts";
import type { EventStore, NewEvent } from "../store/store.ts";
import { publisherOf } from "./event-publisher.ts";
import { eventBus } from "./events.ts";

/** A bus whose store is the test: it keeps every call and answers when it is told to. */
function bus({ fence }: { fence?: () => void } = {}) {
  const calls: (readonly NewEvent[])[] = [];
  const answers: ((error?: Error) => void)[] = [];
  const store = {
    publishMany: ({ events }: { events: readonly NewEvent[] }) => {
      calls.push(events);
      return new Promise((resolve, reject) =>
        answers.push((error) =>
          error === undefined ? resolve(events.map(() => ({ seq: 1, ts: 1 }))) : reject(error),
        ),
      );
    },
  } as unknown as EventStore;
  const made = eventBus({ store, source: "s", ...(fence === undefined ? {} : { fence }) });
  return { bus: made, store, calls, answers };
}
const texts = (calls: readonly (readonly NewEvent[])[]) =>
  calls.map((events) => events.map(({ topic, payload }) => `${topic} ${payload}`));
const settledOf = async (all: Promise<unknown>[]) =>
  (await Promise.allSettled(all)).map((one) =>
    one.status === "fulfilled" ? "sent" : String(one.reason.code),
  );

it("sends a lone event at once, and what comes meanwhile together and in order", async () => {
  const topic = defineTopic("t", z.object({ n: z.number() }));
  const { bus: events, calls, answers } = bus();
  const first = events.publish("t", 0);
  await Promise.resolve();
  expect(texts(calls)).toEqual([["t 0"]]);
  const others = [events.publish(topic, { n: 1 }), events.publish("u", 2), events.publish("t", 3)];
  answers[0]?.();
  await first;
  await vi.waitFor(() => expect(calls).toHaveLength(2));
  answers[1]?.();
  await Promise.all(others);
  expect(texts(calls)).toEqual([["t 0"], ['t {"n":1}', "u 2", "t 3"]]);
});

it("refuses what does not fit for that publish alone", async () => {
  const topic = defineTopic("t", z.object({ n: z.number() }), { maxBytes: 30 });
  const { bus: events, calls, answers } = bus();
  const all = [
    events.publish(topic, { n: 1 }),
    events.publish(topic, { n: "x" } as never),
    events.publish("fleet.slot.started", 1),
    events.publish("t", "x".repeat(70_000)),
    events.publish(topic, { n: 2 }),
  ];
  const settled = settledOf(all);
  await vi.waitFor(() => expect(calls).toHaveLength(1));
  answers[0]?.();
  expect(await settled).toEqual([
    "sent",
    "FLEET_PAYLOAD_INVALID",
    "FLEET_NAME_INVALID",
    "FLEET_PAYLOAD_TOO_LARGE",
    "sent",
  ]);
  expect(texts(calls)).toEqual([['t {"n":1}', 't {"n":2}']]);
});

it("fails every event of a call whose answer is lost, and sends none again", async () => {
  const { bus: events, calls, answers } = bus();
  const all = [1, 2, 3].map((n) => events.publish("t", n));
  await vi.waitFor(() => expect(calls).toHaveLength(1));
  answers[0]?.(new FleetError("FLEET_STORE_UNAVAILABLE", "lost", { outcome: "unknown", retryable: true }));
  const found = await Promise.allSettled(all);
  expect(found.map((one) => (one as PromiseRejectedResult).reason.outcome)).toEqual(Array(3).fill("unknown"));
  await new Promise(setImmediate);
  expect(calls).toHaveLength(1);
});

it("refuses what waited while its lease was lost, and not what others have published", async () => {
  let lost = false;
  const {
    bus: events,
    store,
    calls,
    answers,
  } = bus({
    fence: () => {
      if (lost) throw new FleetError("FLEET_LEASE_LOST", "lost");
    },
  });
  const others = eventBus({ store, source: "another" });
  const all = [events.publish("t", 1)];
  await Promise.resolve();
  all.push(events.publish("t", 2), others.publish("t", 3));
  lost = true;
  answers[0]?.();
  await vi.waitFor(() => expect(calls).toHaveLength(2));
  answers[1]?.();
  expect(await settledOf(all)).toEqual(["sent", "FLEET_LEASE_LOST", "sent"]);
  expect(texts(calls)).toEqual([["t 1"], ["t 3"]]);
});

it("is flushed once all that was accepted has settled", async () => {
  const { bus: events, store, calls, answers } = bus();
  void events.publish("t", 1);
  let flushed = false;
  void publisherOf(store)
    .flushed()
    .then(() => (flushed = true));
  await vi.waitFor(() => expect(calls).toHaveLength(1));
  expect(flushed).toBe(false);
  answers[0]?.();
  await vi.waitFor(() => expect(flushed).toBe(true));
});
