// Short settings; part of `npm test`. What is particular to a cluster: slots that move, a node that goes and comes back, and the
// keys of one primitive on one node.
import { createClient } from "@redis/client";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { isFleetError } from "../src/errors.ts";
import { failureOf, range, until } from "../src/store/conformance/harness.ts";
import { declared, payloads } from "../src/store/conformance/producer.ts";
import { redisKeys } from "../src/store/redis/keys.ts";
import { keySlot } from "../src/store/redis/slot.ts";
import { openRedisStore } from "../src/store/redis/store.ts";
import type { Store } from "../src/store/store.ts";
import { type RedisCluster, startRedisCluster } from "./support/redis.ts";
import { freshNamespace } from "./support/stores.ts";

let cluster: RedisCluster;
const opened: Store[] = [];

beforeAll(async () => {
  cluster = await startRedisCluster();
});
afterAll(() => cluster.stop());
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
});

async function open(namespace: string, deadlineSeconds = 5): Promise<Store> {
  const store = await openRedisStore(cluster.url, { namespace, deadlineSeconds });
  opened.push(store);
  return store;
}

async function admin<T>(node: number, ...args: string[]): Promise<T> {
  const client = createClient({ url: `redis://127.0.0.1:${cluster.ports[node]}` });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return await client.sendCommand<T>(args);
  } finally {
    client.destroy();
  }
}

/** The node that owns a slot now, by its own word. */
async function ownerOf(slot: number): Promise<number> {
  const ranges = await admin<[number, number, [string, number]][]>(0, "CLUSTER", "SLOTS");
  const port = ranges.find(([from, to]) => from <= slot && slot <= to)?.[2][1];
  return cluster.ports.indexOf(port as number);
}

/** A stream of `namespace` whose slot the node owns. */
async function streamOn(node: number, namespace: string): Promise<string> {
  for (let i = 0; ; i++) {
    if ((await ownerOf(keySlot(redisKeys(namespace).stream(`s${i}`).stream))) === node) return `s${i}`;
  }
}

it("a stream's keys lie on one node, different streams on different ones, and wipe finds them all", async () => {
  const namespace = freshNamespace();
  const store = await open(namespace);
  for (const node of range(0, 3)) {
    const stream = await streamOn(node, namespace);
    await (await declared(store, stream)).push(node);
    await store.streams.quarantine({ stream, entries: [{ raw: "x", reason: "y" }] });
    const found = await admin<string[]>(node, "KEYS", `*${namespace}:stream:${stream}*`);
    expect(found).toHaveLength(3);
  }
  const { deleted } = await store.wipe();
  expect(deleted).toBeGreaterThanOrEqual(9);
  for (const node of range(0, 3)) expect(await admin<string[]>(node, "KEYS", `*${namespace}:*`)).toEqual([]);
});

it("pushes and pops go on while their slot moves to another node", async () => {
  const namespace = freshNamespace();
  const store = await open(namespace);
  const stream = await streamOn(0, namespace);
  const { stream: key, meta } = redisKeys(namespace).stream(stream);
  const slot = String(keySlot(key));
  const producer = await declared(store, stream);
  await producer.push(0);

  const ids = await Promise.all(range(0, 3).map((node) => admin<string>(node, "CLUSTER", "MYID")));
  await admin(1, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0] as string);
  await admin(0, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1] as string);
  await admin(0, "MIGRATE", "127.0.0.1", String(cluster.ports[1]), "", "0", "5000", "KEYS", key, meta);
  // Half-way: the keys are over there, the slot is still here, so each call is answered with ASK.
  expect(await producer.push(1)).toMatchObject({ outcome: "pushed", length: 2 });
  for (const node of [1, 0, 2]) await admin(node, "CLUSTER", "SETSLOT", slot, "NODE", ids[1] as string);
  // Now with MOVED.
  expect(await producer.push(2)).toMatchObject({ outcome: "pushed", length: 3 });
  expect(await ownerOf(Number(slot))).toBe(1);
  expect(payloads(await store.streams.pop({ stream, n: 9 }))).toEqual([0, 1, 2]);
});

it("a node that goes takes only its own slots along, and they work again when it is back", async () => {
  const namespace = freshNamespace();
  const home = await ownerOf(keySlot(redisKeys(namespace).fleet.meta));
  const gone = (home + 1) % 3;
  const other = (home + 2) % 3;
  const store = await open(namespace, 1);
  const lost = await streamOn(gone, namespace);
  const kept = await streamOn(other, namespace);
  await declared(store, lost);
  const producer = await declared(store, kept);
  // Otherwise the whole cluster would refuse to serve.
  for (const node of range(0, 3)) await admin(node, "CONFIG", "SET", "cluster-require-full-coverage", "no");
  await (cluster.nodes[gone] as RedisCluster["nodes"][number]).kill("SIGSTOP");
  const error = await failureOf(() => store.streams.length({ stream: lost }));
  expect(isFleetError(error, "FLEET_STORE_UNAVAILABLE")).toBe(true);
  expect(await producer.push(1)).toMatchObject({ outcome: "pushed" });
  await (cluster.nodes[gone] as RedisCluster["nodes"][number]).kill("SIGCONT");
  await until(
    "its slots work again",
    async () => (await failureOf(() => store.streams.length({ stream: lost }))) === undefined,
    20_000,
  );
  expect(await producer.push(2)).toMatchObject({ outcome: "pushed" });
});
