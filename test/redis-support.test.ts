import { createClient } from "@redis/client";
import { expect, test } from "vitest";
import { startRedis, startRedisCluster } from "./support/redis.ts";

const isRunning = (pid: number) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

test("a throw-away server asks for its password, restarts on its port and is gone after stop", async () => {
  const server = await startRedis({ password: "p@ss/word" });
  const client = createClient({ url: server.url, socket: { reconnectStrategy: false } });
  client.on("error", () => undefined);
  await client.connect();
  expect(await client.sendCommand(["PING"])).toBe("PONG");
  client.destroy();
  const first = server.pid;
  await server.restart();
  expect(isRunning(first)).toBe(false);
  expect(server.pid).not.toBe(first);
  await server.stop();
  expect(isRunning(server.pid)).toBe(false);
});

test("a throw-away cluster has all slots on three masters", async () => {
  const cluster = await startRedisCluster();
  const client = createClient({ url: `redis://127.0.0.1:${cluster.ports[1]}` });
  await client.connect();
  const info = await client.sendCommand<string>(["CLUSTER", "INFO"]);
  expect(info).toMatch(/cluster_slots_ok:16384/);
  expect(info).toMatch(/cluster_size:3/);
  client.destroy();
  await cluster.stop();
});
