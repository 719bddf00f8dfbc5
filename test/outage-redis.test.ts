// Short (`npm test`): a worker process with short times on a Redis that goes away: killed, standing still, empty, read-only.
import { expect, onTestFinished, test } from "vitest";
import { createClient } from "@redis/client";
import { openStore } from "../src/store/open.ts";
import type { Store } from "../src/store/store.ts";
import { outage, workerOn } from "./support/outage.ts";
import { freePort, type RedisServer, startRedis } from "./support/redis.ts";

const NAMESPACE = "out";

async function place(
  args: readonly string[] = [],
): Promise<{ server: RedisServer; store: Store; flags: string[] }> {
  const server = await startRedis({ args });
  onTestFinished(() => server.stop());
  // A short deadline, so that this side is back as soon as the server is.
  const store = await openStore(server.url, { namespace: NAMESPACE, deadlineSeconds: 1 });
  onTestFinished(() => store.close());
  return { server, store, flags: ["--store", server.url, "--namespace", NAMESPACE] };
}

async function command(server: RedisServer, args: string[]): Promise<unknown> {
  const client = createClient({ url: server.url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return await client.sendCommand(args);
  } finally {
    client.destroy();
  }
}

const DURABLE = ["--appendonly", "yes", "--appendfsync", "always"];

test.each([
  { name: "killed and back with its data", args: DURABLE, ms: 5000 },
  { name: "killed and back empty", args: [], ms: 5000 },
  { name: "killed and back with its data", args: DURABLE, ms: 20_000 },
])(
  "$name, after $ms ms",
  async ({ name, args, ms }) => {
    const { server, store, flags } = await place(args);
    const { worker } = await workerOn({ store, flags });
    await outage({
      name,
      worker,
      store,
      ms,
      breakIt: () => server.kill(),
      bites: () => expect(store.now()).rejects.toMatchObject({ code: "FLEET_STORE_UNAVAILABLE" }),
      mend: () => server.start(),
    });
  },
  90_000,
);

test("standing still for 5 s", async () => {
  const { server, store, flags } = await place();
  const { worker } = await workerOn({ store, flags });
  await outage({
    name: "standing still",
    worker,
    store,
    ms: 5000,
    breakIt: () => server.kill("SIGSTOP"),
    bites: () => expect(store.now()).rejects.toMatchObject({ code: "FLEET_STORE_UNAVAILABLE" }),
    mend: () => server.kill("SIGCONT"),
  });
}, 60_000);

test("read-only for 5 s", async () => {
  const { server, store, flags } = await place();
  const { worker } = await workerOn({ store, flags });
  const nobody = await freePort();
  await outage({
    name: "read-only",
    worker,
    store,
    ms: 5000,
    // The replica of a master that cannot be reached serves reads of what it has, and refuses writes.
    breakIt: async () => void (await command(server, ["REPLICAOF", "127.0.0.1", String(nobody)])),
    bites: () => expect(command(server, ["SET", "x", "1"])).rejects.toThrow("READONLY"),
    mend: async () => void (await command(server, ["REPLICAOF", "NO", "ONE"])),
  });
}, 60_000);

test("all data lost under load: working again within 5 s (field case 15)", async () => {
  const { server, store, flags } = await place();
  const { worker } = await workerOn({ store, flags });
  await outage({
    name: "FLUSHALL",
    worker,
    store,
    ms: 0,
    breakIt: async () => void (await command(server, ["FLUSHALL"])),
    bites: async () => expect((await store.registry.view()).leases.length).toBeLessThan(6),
    mend: () => undefined,
    freshRuns: true,
    backMs: 5000,
  });
}, 60_000);
