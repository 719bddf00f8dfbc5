// Short (`npm test`): a user with the rights that docs/operations.md names, and one that may not ask who listens.
import { readFileSync } from "node:fs";
import { createClient } from "@redis/client";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { until } from "../src/store/conformance/harness.ts";
import { declaredQueue, LEASE_MS, task } from "../src/store/conformance/queue-driver.ts";
import { openStore } from "../src/store/open.ts";
import { type RedisServer, startRedis } from "./support/redis.ts";

const LINE = /^ACL SETUSER fleet .*$/m.exec(readFileSync("docs/operations.md", "utf8"))?.[0] ?? "";

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

async function admin(command: string[]): Promise<unknown> {
  const client = createClient({ url: server.url });
  await client.connect();
  const reply = await client.sendCommand(command);
  client.destroy();
  return reply;
}

async function openAs(user: string, more = "") {
  await admin(`${LINE.replace("fleet", user).replace("PASSWORD", "secret")}${more}`.split(" "));
  const store = await openStore(server.url.replace("//", `//${user}:secret@`), { namespace: "prod" });
  onTestFinished(() => store.close());
  const handed: string[] = [];
  let hints = 0;
  const watch = store.queues.watch(
    { queue: user, taker: "h" },
    { onReady: () => hints++, onTasks: (tasks) => handed.push(...tasks.map(({ id }) => id)) },
  );
  await watch.ready;
  const q = await declaredQueue(store, {}, user);
  const idle = { queue: user, holder: "h", worker: "w", leaseMs: LEASE_MS, settle: [], claim: 2, idle: true };
  await store.queues.turn(idle);
  hints = 0;
  return { store, q, handed, hints: () => hints };
}

test("the documented rights are enough", async () => {
  expect(LINE).not.toBe("");
  const { store, q, handed } = await openAs("fleet");
  await q.submit(task("a"));
  await until("handed over", () => handed.length > 0);
  expect(handed).toEqual(["a"]);
  await q.sweep();
  const heard: unknown[] = [];
  const watch = store.events.subscribe({ pattern: "*" }, ({ payload }) => heard.push(payload));
  await watch.ready;
  await store.events.publish({ topic: "orders", source: "s", payload: "1" });
  await until("heard", () => heard.length > 0);
  await watch.close();
  await store.registry.view();
  await store.registry.lead({ candidate: "c", leaseMs: 1000 });
  expect(
    await store.state.counters.add({ name: "seen", key: "k", by: 2, op: { producer: "p", seq: 1 } }),
  ).toMatchObject({
    value: 2,
  });
  const lists = [store.streams, store.pools, store.state.locks, store.state.counters, store.state.limits].map(
    (one) => one.list(),
  );
  expect(await Promise.all(lists)).toEqual([[], [], [], ["seen"], []]);
  expect((await store.wipe()).deleted).toBeGreaterThan(0);
  // And no more than they say.
  const client = createClient({ url: server.url.replace("//", "//fleet:secret@") });
  await client.connect();
  await expect(client.get("other")).rejects.toThrow(/NOPERM/);
  await expect(client.sendCommand(["FLUSHALL"])).rejects.toThrow(/NOPERM/);
  client.destroy();
});

test("where PUBSUB is forbidden nothing is handed over, and nothing else is different", async () => {
  const { q, handed, hints } = await openAs("deaf", " -pubsub");
  expect(await q.submit(task("a"))).toEqual(["submitted"]);
  await until("told that something is there", () => hints() > 0);
  expect(await q.counts()).toEqual({ waiting: 1 });
  expect(await q.claimIds("h", 5)).toEqual(["a"]);
  expect(handed).toEqual([]);
});

test.each(["-fcall", "-function"])(
  "with %s queues do without functions, and nothing is different",
  async (right) => {
    await admin(["FUNCTION", "FLUSH"]);
    const { q, handed } = await openAs(right.slice(1), ` ${right}`);
    expect(await q.submit(task("a"))).toEqual(["submitted"]);
    await until("handed over", () => handed.length > 0);
    await admin(["CONFIG", "RESETSTAT"]);
    expect(await q.submit(task("b"))).toEqual(["submitted"]);
    // It knows by now, and does not try again.
    expect(String(await admin(["INFO", "commandstats"]))).not.toMatch(/cmdstat_(fcall|function)/);
  },
);
