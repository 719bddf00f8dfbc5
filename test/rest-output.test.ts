// Short (`npm test`): an automation's output by REST on both stores: its tail, and entries that another program has written.
import { describe, expect, it, onTestFinished } from "vitest";
import { eventsOf } from "../src/client/event-stream.ts";
import type { Store, StreamStore } from "../src/store/store.ts";
import { PLACES } from "./support/places.ts";
import { type Rest, restOn, storeAt } from "./support/rest.ts";

const OUT = "/automations/out/output";

let pushes = 0;
async function push(store: Store, entries: readonly { head: string; tail: string }[]): Promise<void> {
  await store.streams.push({
    stream: "out",
    entries: entries.map((entry, at) => ({ id: String(at), ...entry })),
    op: { producer: "p", seq: ++pushes },
  });
}

const entry = (n: number) => ({ head: `{"id":"${n}","slot_id":0,"ts":`, tail: `,"payload":${n}}` });

/** Follows from the moment at which this returns. */
async function tail(rest: Rest) {
  const gone = new AbortController();
  onTestFinished(() => gone.abort());
  const response = await rest.request("GET", `${OUT}/tail`, { signal: gone.signal });
  expect(response.status).toBe(200);
  const entries = eventsOf<unknown>(response);
  return async () => (await entries.next()).value;
}

/** A store that takes its time to look into streams: what is pushed in between lies there before it does. */
function slowly(store: Store): Store {
  const pause = () => new Promise((resolve) => setTimeout(resolve, 100));
  const slow: Pick<StreamStore, "peek" | "length"> = {
    peek: async (args) => {
      await pause();
      return store.streams.peek(args);
    },
    length: async (args) => {
      await pause();
      return store.streams.length(args);
    },
  };
  const streams = new Proxy(store.streams, {
    get: (target, name) => Reflect.get(Object.hasOwn(slow, name) ? slow : target, name) as unknown,
  });
  return new Proxy(store, {
    get: (target, name) => (name === "streams" ? streams : (Reflect.get(target, name) as unknown)),
  });
}

describe.each(PLACES)("on $name", (place) => {
  const setUp = async () => {
    const { store } = await storeAt(place);
    const bounds = { maxLength: 10_000, ttlMs: 600_000, maxPayloadBytes: 1000 };
    await store.streams.declare({ stream: "out", bounds, as: "owner" });
    return store;
  };

  it("answers a tail once nothing goes by unseen, however long the stream", async () => {
    const store = await setUp();
    await push(
      store,
      Array.from({ length: 2500 }, (_, n) => entry(n)),
    );
    const next = await tail(restOn(slowly(store)));
    await push(store, [entry(7777)]);
    expect(await next()).toMatchObject({ payload: 7777 });
    await push(store, [entry(8888)]);
    expect(await next()).toMatchObject({ payload: 8888 });
  });

  it("answers with a problem where the stream's end cannot be known, and where there is none", async () => {
    const store = await setUp();
    const rest = restOn(store);
    expect(await rest.call("GET", "/automations/none/output/tail")).toMatchObject({
      status: 404,
      json: { code: "FLEET_NOT_FOUND" },
    });
    await store.close();
    expect((await rest.call("GET", `${OUT}/tail`)).status).toBeGreaterThanOrEqual(500);
  });

  it("gives what is no JSON as a text, and what is as it stands", async () => {
    const store = await setUp();
    const rest = restOn(store);
    const next = await tail(rest);
    await push(store, [
      entry(1),
      { head: 'no "JSON","ts":', tail: "\nat all" },
      // Written by a program that breaks lines; the number is one that a parser would change.
      { head: '{\n"id":"b","slot_id":null,"ts":', tail: ',\r\n"payload":12345678901234567890}' },
      entry(2),
    ]);
    const raws = (await store.streams.peek({ stream: "out", n: 9 })).map(({ raw }) => raw);
    const expected = [
      { payload: 1 },
      expect.stringMatching(/^no "JSON","ts":\d+\nat all$/) as string,
      { id: "b" },
      { payload: 2 },
    ];
    const shown: unknown[] = [];
    while (shown.length < raws.length) shown.push(await next());
    expect(shown).toMatchObject(expected);
    const peeked = await rest.call("GET", `${OUT}/peek?n=9`);
    const popped = await rest.call("POST", `${OUT}/pop`, { n: 9 });
    for (const { text, json } of [peeked, popped]) {
      expect(json).toMatchObject(expected);
      expect(text).toContain(raws[2]);
    }
    expect(await store.streams.length({ stream: "out" })).toBe(0);
  });
});
