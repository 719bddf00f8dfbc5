// Short settings; part of `npm test`. Streams on the real clock, their memory, and consumers in other processes: field
// cases 3, 4 and 6. Cases 1, 2 and 5 run on every back end in the conformance suite (`src/store/conformance`).
import { createClient } from "@redis/client";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { range, until } from "../src/store/conformance/harness.ts";
import { declared, entry, unaccounted } from "../src/store/conformance/producer.ts";
import { openStore } from "../src/store/open.ts";
import type { Store } from "../src/store/store.ts";
import { type Child, type Children, prepareChildren } from "./support/children.ts";
import type { SubscriberInput, SubscriberMessage } from "./support/children/subscriber.ts";
import type { WaiterInput, WaiterMessage } from "./support/children/waiter.ts";
import type { ConsumerInput, ConsumerMessage } from "./support/children/consumer.ts";
import { freshNamespace, temporaryFolder } from "./support/stores.ts";

let children: Children;
const folder = temporaryFolder();
const namespace = freshNamespace();
const urls = { Redis: () => inject("redisUrl"), SQLite: () => `sqlite:${join(folder.path, "fleet.db")}` };

beforeAll(async () => {
  children = await prepareChildren();
});
afterAll(async () => {
  await children.dispose();
  const store = await openStore(urls.Redis(), { namespace });
  await store.wipe();
  await store.close();
  folder.remove();
});

async function onStore(url: string, run: (store: Store) => Promise<void>): Promise<void> {
  const store = await openStore(url, { namespace });
  try {
    await run(store);
  } finally {
    await store.close();
  }
}

async function consumers(url: string, stream: string, limits: (number | undefined)[], n: number) {
  const all = limits.map((limit): Child<ConsumerMessage> => {
    const input: ConsumerInput = { url, namespace, stream, n, ...(limit === undefined ? {} : { limit }) };
    return children.start("consumer", input);
  });
  await Promise.all(all.map((child) => child.next((message) => "opened" in message)));
  for (const child of all) child.send("go");
  return all;
}

const taken = (child: Child<ConsumerMessage>) =>
  child.next((message): message is { taken: number[]; done: boolean } => "taken" in message);

describe.each(["Redis", "SQLite"] as const)("streams on %s", (kind) => {
  it("4: entries past their age are gone for every reader, though nothing was pushed since", async () => {
    await onStore(urls[kind](), async (store) => {
      const producer = await declared(store, "aged", { ttlMs: 1000 });
      await producer.push(...range(0, 10));
      const pushed = performance.now();
      expect(await store.streams.length({ stream: "aged" })).toBe(10);
      await until("expiry", async () => (await store.streams.length({ stream: "aged" })) === 0);
      expect(performance.now() - pushed).toBeGreaterThan(900);
      expect(await store.streams.peek({ stream: "aged", n: 10 })).toEqual([]);
      expect(await store.streams.pop({ stream: "aged", n: 10 })).toEqual([]);
      expect(await store.streams.stats({ stream: "aged" })).toMatchObject({
        length: 0,
        expired: 10,
        popped: 0,
      });
      await store.streams.sweep({ stream: "aged" });
      expect(await unaccounted(store, "aged")).toBe(0);
    });
  });

  it("6: an empty list stays a list, and an empty object an object", async () => {
    await onStore(urls[kind](), async (store) => {
      const payload = '{"tags":[],"m":{}}';
      const producer = await declared(store, "empty");
      const one = entry(JSON.parse(payload));
      await producer.pushEntries([one]);
      const [raw = ""] = await store.streams.pop({ stream: "empty", n: 1 });
      expect(raw.endsWith(`,"payload":${payload}}`)).toBe(true);
      await store.streams.quarantine({ stream: "empty", entries: [{ raw, reason: payload }] });
      expect(await store.streams.quarantined({ stream: "empty", n: 1 })).toEqual([{ raw, reason: payload }]);
    });
  });

  it("3: what a killed consumer had popped is lost, and counted as popped", async () => {
    await onStore(urls[kind](), async (store) => {
      const producer = await declared(store, "killed");
      await producer.push(...range(0, 300));
      const [victim] = await consumers(urls[kind](), "killed", [100], 100);
      if (victim === undefined) throw new Error("no child");
      expect((await taken(victim)).taken).toEqual(range(0, 100));
      victim.kill("SIGKILL");
      await victim.ended;
      const [survivor] = await consumers(urls[kind](), "killed", [undefined], 100);
      const used = survivor === undefined ? [] : (await taken(survivor)).taken;
      expect(used).toEqual(range(100, 300));
      const stats = await store.streams.stats({ stream: "killed" });
      expect(stats).toMatchObject({ pushed: 300, popped: 300, length: 0 });
      expect((stats?.popped ?? 0) - used.length).toBe(100);
    });
  });

  it("a push wakes another process by a hint, each time that the stream was empty", async () => {
    await onStore(urls[kind](), async (store) => {
      const producer = await declared(store, "hinted");
      const input: WaiterInput = { url: urls[kind](), namespace, stream: "hinted" };
      const child = children.start<WaiterMessage>("waiter", input);
      await child.next((message) => "ready" in message);
      for (const round of range(0, 10)) {
        await producer.push(round);
        await until(
          `round ${round} in the other process`,
          () => child.messages.some((message) => "got" in message && message.got === round),
          2000,
        );
      }
      const got = child.messages.flatMap((message) => ("got" in message ? [message.got] : []));
      expect(got).toEqual(range(0, 10));
      child.kill("SIGKILL");
      await child.ended;
    });
  });

  it("events reach another process in order, none missed", async () => {
    await onStore(urls[kind](), async (store) => {
      const publish = (payload: unknown) =>
        store.events.publish({ topic: "across", source: "s", payload: JSON.stringify(payload) });
      await publish("before");
      const input: SubscriberInput = { url: urls[kind](), namespace, pattern: "acr*" };
      const child = children.start<SubscriberMessage>("subscriber", input);
      await child.next((message): message is { ready: true } => "ready" in message);
      for (const i of range(0, 200)) await publish(i);
      await until("the last event", () =>
        child.messages.some((m) => "lastPayload" in m && m.lastPayload === 199),
      );
      expect(child.messages.at(-1)).toEqual({ received: 200, missed: 0, lastPayload: 199 });
      child.kill("SIGKILL");
      await child.ended;
    });
  });

  it("two processes that pop 100 000 entries at once get each entry once", { timeout: 120_000 }, async () => {
    await onStore(urls[kind](), async (store) => {
      const producer = await declared(store, "shared", { maxLength: 100_000 });
      for (const i of range(0, 100)) await producer.push(...range(i * 1000, i * 1000 + 1000));
      expect(await store.streams.length({ stream: "shared" })).toBe(100_000);
      const both = await consumers(urls[kind](), "shared", [undefined, undefined], 100);
      const [a = [], b = []] = (await Promise.all(both.map(taken))).map((message) => message.taken);
      // Each got a part, in order, and the parts make up the whole.
      expect(Math.min(a.length, b.length)).toBeGreaterThan(0);
      for (const part of [a, b])
        expect(part.every((value, i) => i === 0 || value > (part[i - 1] as number))).toBe(true);
      const whole = new Uint8Array(100_000);
      for (const value of [...a, ...b]) whole[value] = (whole[value] as number) + 1;
      expect(whole.every((count) => count === 1)).toBe(true);
      expect(await store.streams.stats({ stream: "shared" })).toMatchObject({ popped: 100_000, length: 0 });
    });
  });
});

it("4: a sweep frees the memory of what expired", async () => {
  await onStore(urls.Redis(), async (store) => {
    const admin = await createClient({ url: urls.Redis() })
      .on("error", () => undefined)
      .connect();
    try {
      const members = () => admin.sendCommand<number>(["ZCARD", `${namespace}:stream:swept`]);
      const producer = await declared(store, "swept", { ttlMs: 300 });
      await producer.push(...range(0, 10));
      await until("expiry", async () => (await store.streams.length({ stream: "swept" })) === 0);
      const { expired } = await store.streams.sweep({ stream: "swept" });
      expect(await members()).toBe(0);
      expect(expired).toBeLessThanOrEqual(10);
      expect(await store.streams.stats({ stream: "swept" })).toMatchObject({ expired: 10 });
    } finally {
      admin.destroy();
    }
  });
});
