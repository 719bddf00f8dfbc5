// Short (`npm test`): events by REST on both stores, without a worker.
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { eventsOf } from "../src/client/event-stream.ts";
import { defineTopic } from "../src/contracts/topic.ts";
import { defineContinuous } from "../src/index.ts";
import { eventBus } from "../src/primitives/events.ts";
import { ASK_PREFIX } from "../src/protocol/event.ts";
import { PLACES } from "./support/places.ts";
import { publish, type Rest, restOn, storeAt } from "./support/rest.ts";

const STARTED = defineTopic("harvest.started", z.object({ site: z.string() }));
const HARVEST = defineContinuous("harvest", { uses: { publish: [STARTED] }, runSlot: async () => undefined });

interface Event {
  topic: string;
  payload: unknown;
  seq: number;
  missed: number;
  source: string;
  ts: number;
}

/** Follows from the moment at which this returns. */
async function follow(rest: Rest, query: string) {
  const gone = new AbortController();
  onTestFinished(() => gone.abort());
  const response = await rest.request("GET", `/events${query}`, { signal: gone.signal });
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toContain("text/event-stream");
  const events = eventsOf<Event>(response);
  const next = async () => (await events.next()).value as Event;
  return { response, next, events, gone };
}

describe.each(PLACES)("on $name", (place) => {
  const setUp = async () => {
    const { store } = await storeAt(place);
    await publish(store, [HARVEST]);
    const bus = eventBus({ store: store.events, source: "test" });
    return { store, rest: restOn(store), bus };
  };

  it("publishes, checked by what a worker has published of the topic", async () => {
    const { rest } = await setUp();
    const { next } = await follow(rest, "?topics=harvest.*");
    const wrong = await rest.call("POST", "/events/harvest.started", { payload: { site: 1 } });
    expect(wrong).toMatchObject({
      status: 422,
      json: { code: "FLEET_PAYLOAD_INVALID", errors: [{ pointer: "/payload/site" }] },
    });
    const right = await rest.call("POST", "/events/harvest.started", { payload: { site: "a" } });
    expect(right).toMatchObject({ status: 202, json: { topic: "harvest.started" } });
    expect(await next()).toMatchObject({
      topic: "harvest.started",
      payload: { site: "a" },
      source: "api:admin",
      seq: 1,
      missed: 0,
    });
    expect(await rest.call("POST", "/events/any.thing", { payload: null })).toMatchObject({ status: 202 });
    expect(await rest.call("POST", "/events/any.thing", { payload: "x".repeat(70_000) })).toMatchObject({
      status: 413,
      json: { code: "FLEET_PAYLOAD_TOO_LARGE" },
    });
  });

  it("leaves topics under fleet. to the framework, and refuses what is no topic", async () => {
    const { rest } = await setUp();
    expect(await rest.call("POST", "/events/fleet.slot.crashed", { payload: 1 })).toMatchObject({
      status: 403,
      json: { code: "FLEET_NAME_INVALID" },
    });
    expect(await rest.call("POST", "/events/Harvest%20", { payload: 1 })).toMatchObject({ status: 400 });
    for (const topics of ["a,,b", "A", ",", "x".repeat(200), Array(40).fill("a").join(",")])
      expect((await rest.request("GET", `/events?topics=${topics}`)).status).toBe(400);
  });

  it("follows several patterns, each event once, in order and with what was missed", async () => {
    const { rest, bus } = await setUp();
    const { next } = await follow(rest, "?topics=a.*,b,a.x,*.x");
    for (const [topic, payload] of [
      ["a.x", 1],
      ["b", 2],
      ["c", 3],
      ["c.x", 4],
      ["a.x", 5],
      ["b", 6],
    ] as const)
      await bus.publish(topic, payload);
    const seen: Event[] = [];
    for (let at = 0; at < 5; at++) seen.push(await next());
    expect(new Set(seen.map(({ payload }) => payload))).toEqual(new Set([1, 2, 4, 5, 6]));
    for (const topic of ["a.x", "b"])
      expect(seen.filter((one) => one.topic === topic).map(({ seq, missed }) => ({ seq, missed }))).toEqual([
        { seq: 1, missed: 0 },
        { seq: 2, missed: 0 },
      ]);
    // Nothing came twice: the next is what is published next.
    await bus.publish("b", "last");
    expect(await next()).toMatchObject({ payload: "last", seq: 3 });
  });

  it("counts for a slow reader what it did not get, and holds up nobody", async () => {
    const { rest, bus } = await setUp();
    const { next } = await follow(rest, "?topics=flood");
    const all = 1500;
    for (let at = 0; at < all; at++) await bus.publish("flood", at);
    let got = 0;
    let missed = 0;
    let last: Event | undefined;
    while (last?.seq !== all) {
      last = await next();
      got += 1;
      missed += last.missed;
    }
    expect(missed).toBeGreaterThan(0);
    expect(got + missed).toBe(all);
  });

  it("keeps no more for a slow reader of many patterns than for one of a single pattern", async () => {
    const { rest, bus } = await setUp();
    const patterns = ["flood.a", ...Array.from({ length: 19 }, (_, i) => `flood.${i}`)];
    const { next } = await follow(rest, `?topics=${patterns.join(",")}`);
    const all = 200;
    for (let n = 1; n <= all; n++) await bus.publish("flood.a", n);
    let got = 0;
    let missed = 0;
    for (let seq = 0; seq < all; got++) {
      const last = await next();
      missed += last.missed;
      seq = last.seq;
    }
    expect(got + missed).toBe(all);
    // A twentieth of 1000, and what was on its way already.
    expect(got).toBeLessThan(70);
  });

  it("says nothing of what the framework says to itself, unless it is asked for", async () => {
    const { store, rest, bus } = await setUp();
    const own = eventBus({ store: store.events, source: "w", own: true });
    const all = await follow(rest, "");
    const asked = await follow(rest, `?topics=${ASK_PREFIX}*`);
    await own.publish(`${ASK_PREFIX}x`, "a question");
    await bus.publish("news", 1);
    expect(await all.next()).toMatchObject({ topic: "news" });
    expect(await asked.next()).toMatchObject({ payload: "a question" });
  });

  it("ends with the caller and with the master", async () => {
    const { store, rest } = await setUp();
    const open = new Set<object>();
    const counted = restOn({
      ...store,
      queues: store.queues,
      pools: store.pools,
      events: new Proxy(store.events, {
        get: (events, name) => {
          if (name !== "subscribe") return Reflect.get(events, name) as unknown;
          return (...args: Parameters<typeof events.subscribe>) => {
            const watch = events.subscribe(...args);
            open.add(watch);
            return {
              ready: watch.ready,
              baselines: watch.baselines,
              close: async () => {
                open.delete(watch);
                await watch.close();
              },
            };
          };
        },
      }),
    });
    const first = await follow(counted, "?topics=a,b.*");
    expect(open.size).toBe(2);
    // The reader goes, without anything having been published.
    await first.response.body?.cancel().catch(() => undefined);
    await first.events.return();
    expect(open.size).toBe(0);

    const second = await follow(counted, "?topics=a");
    const end = second.events.next();
    await counted.stop();
    expect(await end).toEqual({ done: true, value: undefined });
    expect(open.size).toBe(0);
    await rest.stop();
  });
});
