// Short (`npm test`): long waits over sockets, on both stores: they end with their caller, and with the master.
import { once } from "node:events";
import { get } from "node:http";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { createClient } from "../src/client/client.ts";
import { definePool } from "../src/contracts/pool.ts";
import { defineBatch } from "../src/index.ts";
import { createMaster } from "../src/master/create-master.ts";
import { eventBus } from "../src/primitives/events.ts";
import type { Store } from "../src/store/store.ts";
import { PLACES } from "./support/places.ts";
import { publish, storeAt, TOKEN } from "./support/rest.ts";

const SESSIONS = definePool("sessions", { payload: z.object({ n: z.number() }) });
const SCRAPER = defineBatch("scraper", {
  tasks: { payload: z.object({ n: z.number() }) },
  uses: { put: [SESSIONS] },
  runOne: () => undefined,
});

describe.each(PLACES)("on $name", (place) => {
  const setUp = async () => {
    const { store, url, namespace } = await storeAt(place);
    await publish(store, [SCRAPER]);
    const master = await createMaster({ store: url, namespace, token: TOKEN, port: 0 });
    onTestFinished(() => master.close());
    return { store, master, client: createClient({ url: master.url, token: TOKEN }) };
  };
  const waiting = async (store: Store) => (await store.pools.stats({ pool: "sessions" }))?.waiting.length;

  it("gives up a place in line when the connection is cut, and with the master", async () => {
    const { store, master, client } = await setUp();
    const gone = new AbortController();
    const wait = { name: "sessions", body: { wait_seconds: 60 } };
    const left = client.claimItem(wait, { signal: gone.signal }).catch(() => "cut");
    await vi.waitFor(async () => expect(await waiting(store)).toBe(1));
    gone.abort();
    expect(await left).toBe("cut");
    await vi.waitFor(async () => expect(await waiting(store)).toBe(0), { timeout: 2500 });

    const stays = client.claimItem(wait);
    await vi.waitFor(async () => expect(await waiting(store)).toBe(1));
    await master.close();
    expect(await stays).toEqual({ lease: null });
    expect(await waiting(store)).toBe(0);
  });

  it("answers a long poll that is under way when the master ends", async () => {
    const { master, client } = await setUp();
    const { ids } = await client.submitTasks({ name: "scraper", body: { payload: { n: 1 } } });
    const poll = client.taskResult({ name: "scraper", id: ids[0] ?? "", query: { wait_seconds: 60 } });
    // Behind it on the same way: once this is answered, the poll is under way.
    await client.getFleet();
    const started = performance.now();
    await master.close();
    expect(await poll).toMatchObject({ done: false });
    expect(performance.now() - started).toBeLessThan(10_000);
  });

  it("streams what is published, and ends the stream with the master", async () => {
    const { store, master, client } = await setUp();
    const stream = client.tailEvents({ query: { topics: "news.*" } });
    const first = stream.next();
    const bus = eventBus({ store: store.events, source: "t" });
    // The client cannot tell when the stream is open; whoever reads the bytes can.
    const request = get(`${master.url}/api/v1/events?topics=news.*`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    const [response] = (await once(request, "response")) as [NodeJS.ReadableStream];
    const [open] = (await once(response, "data")) as [Buffer];
    expect(open.toString()).toBe(": open\n\n");
    const told = once(response, "data");
    await bus.publish("news.a", 1);
    expect(String((await told)[0])).toMatch(
      /^data: \{"topic":"news\.a","payload":1,.*"seq":1,"missed":0\}\n\n$/,
    );
    await vi.waitFor(async () => {
      await bus.publish("news.b", 2);
      expect(
        await Promise.race([first.then(() => "told"), new Promise((resolve) => setTimeout(resolve, 50))]),
      ).toBe("told");
    });
    const end = once(response, "end");
    await master.close();
    await end;
    let next = await stream.next();
    while (next.done !== true) next = await stream.next();
    expect(next.value).toBeUndefined();
  });
});
