// Short settings; part of `npm test`. Fleets that share one Redis never meet (field case 36): two namespaces, one without,
// and the same namespace in another database, for pub/sub knows no databases.
import { createClient } from "@redis/client";
import { expect, it } from "vitest";
import { until } from "../src/store/conformance/harness.ts";
import { declared, peekAll } from "../src/store/conformance/producer.ts";
import { claim, desired, register, worker } from "../src/store/conformance/workers.ts";
import { openStore } from "../src/store/open.ts";
import type { Store } from "../src/store/store.ts";
import { startRedis } from "./support/redis.ts";

/** All keys of a database with their contents. */
async function snapshot(url: string): Promise<Map<string, string>> {
  const client = await createClient({ url })
    .on("error", () => undefined)
    .connect();
  try {
    const keys = (await client.sendCommand<string[]>(["KEYS", "*"])).toSorted();
    const dumps = await Promise.all(
      keys.map(async (key) => [key, await digest(client, key)] as [string, string]),
    );
    return new Map(dumps);
  } finally {
    client.destroy();
  }
}

const digest = async (client: { sendCommand<T>(args: string[]): Promise<T> }, key: string) =>
  (await client.sendCommand<string[]>(["DEBUG", "DIGEST-VALUE", key])).join();

async function use(store: Store, mark: string): Promise<void> {
  await (await declared(store, "same")).push(mark);
  await store.streams.quarantine({ stream: "same", entries: [{ raw: mark, reason: "r" }] });
  await store.events.publish({ topic: "same", source: "s", payload: JSON.stringify(mark) });
  const info = worker("same");
  await register(store.registry, info);
  const [lease] = await claim(store.registry, info, "same", [0]);
  await store.registry.setState({ automation: "same", slotId: 0, token: lease?.token ?? "", value: '"x"' });
  await store.registry.putDesired({ name: "same", desired: desired(1), expected: 0 });
  const { token } = await store.registry.lead({ candidate: mark, leaseMs: 60_000 });
  await store.registry.putAssignments({ assignments: { same: { "0": mark } }, token });
}

it("36: five fleets on one Redis hear, see and wipe nothing of each other", { timeout: 60_000 }, async () => {
  const server = await startRedis({ debug: true });
  const [zero, one] = [server.url, `${server.url}/1`];
  const fleets = await Promise.all(
    [
      { mark: "a", url: zero, namespace: "a" },
      { mark: "b", url: zero, namespace: "b" },
      { mark: "none", url: zero, namespace: "" },
      { mark: "a.b", url: zero, namespace: "a.b" },
      { mark: "a/1", url: one, namespace: "a" },
    ].map(async ({ mark, url, namespace }) => {
      const store = await openStore(url, { namespace });
      const heard: unknown[] = [];
      const hints = { stream: 0, registry: 0 };
      const watches = [
        store.events.subscribe({ pattern: "*" }, ({ payload }) => heard.push(payload)),
        store.streams.watch({ stream: "same" }, () => (hints.stream += 1)),
        store.registry.watch(() => (hints.registry += 1)),
      ];
      await Promise.all(watches.map(({ ready }) => ready));
      return { mark, store, heard, hints, watches };
    }),
  );
  try {
    expect(new Set(fleets.map(({ store }) => store.fleetId)).size).toBe(fleets.length);

    // One after the other, so that whoever hears something of another fleet hears too much.
    for (const { mark, store, heard, hints } of fleets) {
      await use(store, mark);
      await until(
        `own event and hints of ${mark}`,
        () => heard.length > 0 && hints.stream > 0 && hints.registry > 0,
      );
    }
    // What had been sent over by mistake would have arrived before these.
    for (const { mark, store, heard } of fleets) {
      await store.events.publish({ topic: "last", source: "s", payload: '"last"' });
      await until(`the last event of ${mark}`, () => heard.includes("last"));
    }
    for (const { mark, store, heard, hints } of fleets) {
      expect(heard).toEqual([mark, "last"]);
      expect({ mark, hints: hints.stream }).toEqual({ mark, hints: 1 });
      expect(await peekAll(store, "same")).toEqual([mark]);
      expect(await store.registry.view()).toMatchObject({
        leader: mark,
        assignments: { same: { "0": mark } },
      });
    }

    for (const [index, { mark, store }] of fleets.entries()) {
      const database = mark === "a/1" ? one : zero;
      const before = [await snapshot(zero), await snapshot(one)];
      const sizeBefore = (before[0]?.size ?? 0) + (before[1]?.size ?? 0);
      const { deleted } = await store.wipe();
      expect(deleted).toBeGreaterThan(3);
      const after = [await snapshot(zero), await snapshot(one)];
      expect((after[0]?.size ?? 0) + (after[1]?.size ?? 0)).toBe(sizeBefore - deleted);
      // Every key that is left is as it was.
      for (const side of [0, 1])
        for (const [key, value] of after[side] ?? [])
          expect([key, before[side]?.get(key)]).toEqual([key, value]);
      expect(await snapshot(database)).toEqual(after[database === zero ? 0 : 1]);
      for (const other of fleets.slice(index + 1)) {
        expect(await peekAll(other.store, "same")).toEqual([other.mark]);
        expect((await other.store.registry.view()).leader).toBe(other.mark);
      }
    }
    // The last wipe leaves nothing at all behind.
    expect([...(await snapshot(zero)).keys(), ...(await snapshot(one)).keys()]).toEqual([]);
    await Promise.all(fleets.flatMap(({ watches }) => watches.map((watch) => watch.close())));
  } finally {
    await Promise.all(fleets.map(({ store }) => store.close()));
    await server.stop();
  }
});
