// Short (`npm test`): queues where nothing that is published arrives, and on a Redis that is emptied under load (field cases 15 and 25).
import { afterAll, beforeAll, expect, inject, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { defineBatch } from "../src/automation/definition-batch.ts";
import { fleetOn } from "../src/automation/fleet.ts";
import { defineQueue } from "../src/contracts/queue.ts";
import { SILENT } from "../src/internal/log.ts";
import { openStore } from "../src/store/open.ts";
import { createWorker } from "../src/worker/create-worker.ts";
import { measured, ms, QUICK } from "./support/heal-fleet.ts";
import { startProxy } from "./support/proxy.ts";
import { type RedisServer, startRedis } from "./support/redis.ts";
import { freshNamespace } from "./support/stores.ts";

const QUEUE = defineQueue("work", { payload: z.object({ n: z.number() }) });

test("every hint is lost: each task starts within the beat all the same", async () => {
  const namespace = freshNamespace();
  const proxy = await startProxy(Number(new URL(inject("redisUrl")).port));
  onTestFinished(() => proxy.close());
  const fleet = fleetOn(await openStore(inject("redisUrl"), { namespace }), { log: SILENT });
  onTestFinished(() => fleet.close());
  const started: number[] = [];
  const work = defineBatch("work", { tasks: QUEUE, runOne: () => void started.push(performance.now()) });
  const beatMs = 500;
  await using worker = await createWorker({
    store: proxy.url,
    namespace,
    automations: [work],
    deploy: { work: { slots: 2 } },
    timings: { ...QUICK, beatMs },
  });
  expect(worker.id).not.toBe("");
  // Hints work to begin with.
  await (await fleet.queue(QUEUE).submit({ n: 0 })).result({ waitSeconds: 10 });
  proxy.deafen();
  const late: number[] = [];
  for (let n = 0; n < 8; n++) {
    // At another point of the beat each time.
    await new Promise((resolve) => setTimeout(resolve, 130 * n));
    started.length = 0;
    const submitted = performance.now();
    await fleet.queue(QUEUE).submit({ n });
    await vi.waitFor(() => expect(started).toHaveLength(1), { timeout: 10_000, interval: 5 });
    late.push((started[0] as number) - submitted);
  }
  measured("task started although every hint is lost, at worst", ms(Math.max(...late)));
  // What was sent to the subscribers was indeed lost, and they did not know it.
  expect(proxy.counts.swallowed).toBeGreaterThan(0);
  // Half a second beyond the beat, and as much again for a machine that is busy with other tests.
  expect(Math.max(...late)).toBeLessThanOrEqual(beatMs + 1000);
}, 60_000);

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

test("a store that is emptied under load: tasks run again within 5 s", async () => {
  const store = await openStore(server.url);
  const fleet = fleetOn(store, { log: SILENT });
  onTestFinished(() => fleet.close());
  let done = 0;
  const work = defineBatch("work", {
    tasks: QUEUE,
    runOne: async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      done += 1;
    },
  });
  await using worker = await createWorker({
    store: server.url,
    automations: [work],
    deploy: { work: { slots: 4 } },
    timings: QUICK,
  });
  expect(worker.id).not.toBe("");
  const over = new AbortController();
  let refused = 0;
  const load = (async () => {
    for (let n = 0; !over.signal.aborted; n++) {
      await fleet
        .queue(QUEUE)
        .submit({ n })
        .catch(() => (refused += 1));
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  })();
  for (let times = 0; times < 3; times++) {
    const before = done;
    await vi.waitFor(() => expect(done).toBeGreaterThan(before + 20), { timeout: 10_000 });
    await empty(server);
    const emptied = performance.now();
    const after = done;
    // Four may have been under way and end now: more than these are new ones.
    await vi.waitFor(() => expect(done).toBeGreaterThan(after + 8), { timeout: 10_000, interval: 10 });
    const took = performance.now() - emptied;
    measured("tasks run again after FLUSHALL", ms(took));
    expect(took).toBeLessThan(5000);
  }
  over.abort();
  await load;
  expect(refused).toBeLessThan(10);
}, 90_000);

/** As somebody would by mistake, and it did happen: nothing is left right after it. */
async function empty({ url }: RedisServer): Promise<void> {
  const { createClient } = await import("@redis/client");
  const client = createClient({ url });
  await client.connect();
  expect(await client.sendCommand(["DBSIZE"])).toBeGreaterThan(0);
  await client.sendCommand(["FLUSHALL"]);
  client.destroy();
}
