// Short (`npm test`): a worker on a Redis Cluster of three masters, with a namespace.
import { createClient } from "@redis/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeProject, runFleet, startFleet } from "./support/cli.ts";
import { type RedisCluster, startRedisCluster } from "./support/redis.ts";

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startRedisCluster();
});
afterAll(() => cluster.stop());

test("two automations talk through a stream on a cluster", async () => {
  const cwd = makeProject({
    "automations.ts": `
      import { defineContinuous, defineStream } from "fleet-framework";
      import { z } from "zod";
      const OUT = defineStream("producer", z.object({ n: z.number() }));
      export default [
        defineContinuous("producer", {
          output: OUT,
          async runSlot(ctx) {
            for await (const turn of ctx.loop({ everySeconds: 0.1 })) await ctx.emit({ n: turn.index });
          },
        }),
        defineContinuous("logger", {
          async runSlot(ctx) {
            for await (const item of ctx.stream(OUT)) console.log("got", item.n);
          },
        }),
      ];`,
  });
  const flags = ["--store", cluster.url, "--namespace", "prod"];
  const worker = startFleet(["worker", "automations.ts", ...flags], { cwd });
  await worker.until((text) => text.includes("got 10"), 40_000);
  const { stdout } = await runFleet(["stream", "ls", "--json", ...flags], { cwd });
  expect(JSON.parse(stdout)).toEqual([expect.objectContaining({ name: "producer" })]);
  worker.signal("SIGTERM");
  expect(await worker.ended).toBe(0);
  // This worker's keys lie on more than one node.
  const sizes = await Promise.all(cluster.ports.map(keysOn));
  expect(sizes.filter((size) => size > 0).length).toBeGreaterThan(1);
}, 90_000);

async function keysOn(port: number): Promise<number> {
  const client = createClient({ socket: { host: "127.0.0.1", port } });
  await client.connect();
  const size = await client.dbSize();
  await client.close();
  return size;
}
