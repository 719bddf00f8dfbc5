// Short settings; part of `npm test`. A Redis that forgets: its scripts, all of its data, or its willingness to write.
import { createClient } from "@redis/client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isFleetError } from "../src/errors.ts";
import { failureOf, range, until } from "../src/store/conformance/harness.ts";
import {
  declared,
  entry,
  payloads,
  peekAll,
  Producer,
  unaccounted,
} from "../src/store/conformance/producer.ts";
import { beat, claim, register, worker } from "../src/store/conformance/workers.ts";
import { openStore } from "../src/store/open.ts";
import type { Store } from "../src/store/store.ts";
import { type RedisServer, startRedis } from "./support/redis.ts";
import { openShort } from "./support/stores.ts";

let server: RedisServer;
let store: Store;

const admin = async (...args: string[]) => {
  const client = await createClient({ url: server.url })
    .on("error", () => undefined)
    .connect();
  try {
    return await client.sendCommand<string | string[]>(args);
  } finally {
    client.destroy();
  }
};

beforeEach(async () => {
  server = await startRedis();
  store = await openShort(server.url, { namespace: "n", deadlineSeconds: 1 });
});
afterEach(async () => {
  await store.close();
  await server.stop();
});

describe("a Redis that forgets", () => {
  it("its scripts: every call works on after SCRIPT FLUSH", async () => {
    const producer = await declared(store, "t");
    const info = worker("w");
    await register(store.registry, info);
    await producer.push(1);
    for (const round of range(0, 3)) {
      await admin("SCRIPT", "FLUSH");
      const scripts = await admin("INFO", "memory");
      expect(String(scripts)).toMatch(/number_of_cached_scripts:0/);
      const at = range(0, 20).map((i) => new Producer(store, "t").push(i));
      expect((await Promise.all(at)).every(({ outcome }) => outcome === "pushed")).toBe(true);
      expect(await store.streams.pop({ stream: "t", n: 100 })).toHaveLength(round === 0 ? 21 : 20);
      await admin("SCRIPT", "FLUSH");
      expect((await store.events.publish({ topic: "t", source: "s", payload: "1" })).seq).toBe(round + 1);
      expect(await beat(store.registry, info)).toMatchObject({ outcome: "ok" });
      expect(await claim(store.registry, info, "a", [round])).toHaveLength(1);
      await admin("SCRIPT", "FLUSH");
      expect((await store.registry.view()).leases).toHaveLength(round + 1);
    }
    expect(await unaccounted(store, "t")).toBe(0);
  });

  it("all of its data: streams are declared anew, the fleet id stays, tokens stay ahead", async () => {
    const other = await openShort(server.url, { namespace: "n", deadlineSeconds: 1 });
    const events: unknown[] = [];
    const watch = other.events.subscribe({ pattern: "t*" }, ({ payload }) => events.push(payload));
    await watch.ready;
    let hints = 0;
    const hinted = other.streams.watch({ stream: "t" }, () => (hints += 1));
    await hinted.ready;
    const producer = await declared(store, "t");
    await producer.push("lost");
    await until("the hint before", () => hints > 0);
    const info = worker("w");
    await register(store.registry, info);
    const [before] = await claim(store.registry, info, "a", [0]);

    await server.restart();
    expect(Number(await admin("DBSIZE"))).toBeLessThan(3);
    const entries = [entry("after")];
    producer.seq += 1;
    let answer: string | undefined;
    await until("an answer", async () => {
      const result = await producer.repeat(entries).catch(() => undefined);
      answer = result?.outcome;
      return result !== undefined;
    });
    expect(answer).toBe("undeclared");
    await declared(store, "t");
    const seen = hints;
    expect(await producer.repeat(entries)).toMatchObject({ outcome: "pushed", length: 1 });
    expect(await peekAll(store, "t")).toEqual(["after"]);
    const third = await openStore(server.url, { namespace: "n" });
    expect([other.fleetId, third.fleetId]).toEqual([store.fleetId, store.fleetId]);

    // Those who had subscribed hear everyone again: connections from before and from after the loss.
    await until("events of both", async () => {
      await store.events
        .publish({ topic: "t1", source: "s", payload: '"old connection"' })
        .catch(() => undefined);
      await third.events.publish({ topic: "t2", source: "s", payload: '"new connection"' });
      return events.includes("old connection") && events.includes("new connection");
    });
    await until("a hint after", async () => {
      await third.streams.pop({ stream: "t", n: 10 });
      await new Producer(third, "t").push("more");
      return hints > seen;
    });

    expect(await beat(store.registry, info)).toEqual({ outcome: "unknown" });
    await register(store.registry, info);
    const [after] = await claim(store.registry, info, "a", [0]);
    expect(BigInt(after?.token ?? 0) > BigInt(before?.token ?? 0)).toBe(true);
    await Promise.all([watch.close(), hinted.close()]);
    await Promise.all([other.close(), third.close()]);
  });

  it("its willingness to write: out of memory is an error, and nothing is half written", async () => {
    const producer = await declared(store, "t");
    await producer.push(1);
    await admin("CONFIG", "SET", "maxmemory", "1");
    const entries = [entry(2)];
    producer.seq += 1;
    const error = await failureOf(() => producer.repeat(entries));
    expect(error).toSatisfy((e) => isFleetError(e, "FLEET_STORE_FAILED"), String(error));
    expect(await failureOf(() => store.streams.peek({ stream: "t", n: 5 }))).toBeUndefined();
    await admin("CONFIG", "SET", "maxmemory", "0");
    expect(await peekAll(store, "t")).toEqual([1]);
    expect(await producer.repeat(entries)).toMatchObject({ outcome: "pushed", length: 2 });
    expect(await unaccounted(store, "t")).toBe(0);
  });

  it("what type a key has: a foreign value is an error, not a crash", async () => {
    const producer = await declared(store, "t");
    await admin("SET", "n:stream:t", "not ours");
    const error = await failureOf(() => producer.push(1));
    expect(error).toSatisfy((e) => isFleetError(e, "FLEET_STORE_FAILED"), String(error));
    await admin("DEL", "n:stream:t");
    expect(await producer.push(2)).toMatchObject({ outcome: "pushed", length: 1 });
  });

  it("nothing: members of the stream can be read with redis-cli alone", async () => {
    const producer = await declared(store, "url-pinger");
    await producer.push({ a: 1 });
    await producer.push({ b: [] });
    const members = (await admin("ZRANGE", "n:stream:url-pinger", "0", "-1")) as string[];
    expect(members).toEqual((await store.streams.peek({ stream: "url-pinger", n: 9 })).map(({ raw }) => raw));
    expect(Object.keys(JSON.parse(members[0] as string) as object)).toEqual([
      "id",
      "slot_id",
      "ts",
      "payload",
    ]);
    expect(payloads(members)).toEqual([{ a: 1 }, { b: [] }]);
    const score = await admin("ZSCORE", "n:stream:url-pinger", members[0] as string);
    const { ts } = JSON.parse(members[0] as string) as { ts: number };
    expect(Math.abs(Number(score) - ts)).toBeLessThan(1);
  });
});
