// Short (`npm test`): a master and a worker on a Redis that is killed, and comes back with its data or empty, or cannot be written to for a while.
import { createClient } from "@redis/client";
import { expect, onTestFailed, onTestFinished, test, vi } from "vitest";
import { openStore } from "../src/store/open.ts";
import { startFleet } from "./support/cli.ts";
import { SHORT } from "./support/nemesis-fleet.ts";
import { allRun, OUTAGE_SLOTS, outage, workerOn } from "./support/outage.ts";
import { freePort, type RedisServer, startRedis } from "./support/redis.ts";

vi.setConfig({ testTimeout: 120_000 });

const TOKEN = "a-token-for-outages";
const NAMESPACE = "out";
/** As many places there are for a store's deadline and a look each second to go by, and a machine that has much to do. */
const TOLD_MS = 30_000;

async function masterAndWorker(args: readonly string[]) {
  const server = await startRedis({ args });
  onTestFinished(() => server.stop());
  const store = await openStore(server.url, { namespace: NAMESPACE, deadlineSeconds: 1 });
  onTestFinished(() => store.close());
  const flags = ["--store", server.url, "--namespace", NAMESPACE];
  const timings = { ...SHORT, stopGraceMs: 7000 };
  const { worker, cwd } = await workerOn({ store, flags, timings });
  const port = await freePort();
  const master = startFleet(["master", "--port", String(port), ...flags], {
    cwd,
    env: { FLEET_TOKEN: TOKEN, FLEET_TIMINGS: JSON.stringify(timings) },
  });
  onTestFailed(() => console.log(`master:\n${master.stderr().slice(-4000)}`));
  const get = (path: string) =>
    fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization: `Bearer ${TOKEN}` } });
  const ready = async () => (await get("/readyz")).status;
  const becomes = (status: number) =>
    vi.waitFor(async () => expect(await ready()).toBe(status), { timeout: TOLD_MS, interval: 100 });
  await master.until((text) => text.includes("master at"));
  await becomes(200);
  const leads = () =>
    vi.waitFor(async () => expect((await store.registry.view()).leader).toMatch(/^master /), {
      timeout: 15_000,
      interval: 100,
    });
  await leads();
  return { server, store, worker, master, get, becomes, leads };
}

test.each([
  { back: "with its data", args: ["--appendonly", "yes", "--appendfsync", "always"] },
  { back: "empty", args: [] },
])(
  "Redis killed, and back $back: the master says so meanwhile, serves again, and no process restarts",
  async ({ back, args }) => {
    const { server, store, worker, master, get, becomes, leads } = await masterAndWorker(args);
    await outage({
      name: `with a master, back ${back}`,
      worker,
      store,
      ms: 5000,
      breakIt: () => server.kill(),
      bites: async () => {
        await becomes(503);
        expect((await get("/healthz")).status).toBe(200);
      },
      mend: () => server.start(),
    });
    await becomes(200);
    await leads();
    const answer = await get("/api/v1/automations");
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain('"ticker"');
    await allRun(store, OUTAGE_SLOTS);
    master.signal("SIGTERM");
    expect(await master.ended).toBe(0);
  },
);

test("a Redis that takes no writes: not ready (field case 15), though it can be read", async () => {
  const { server, store, becomes, leads } = await masterAndWorker([]);
  await command(server, ["REPLICAOF", "127.0.0.1", String(await freePort())]);
  await becomes(503);
  expect(await store.now()).toBeGreaterThan(0);
  await command(server, ["REPLICAOF", "NO", "ONE"]);
  await becomes(200);
  await leads();
});

async function command({ url }: RedisServer, args: string[]): Promise<void> {
  const client = createClient({ url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    await client.sendCommand(args);
  } finally {
    client.destroy();
  }
}
