import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@redis/client";
import { ensureRedisServer } from "../scripts/redis-server.mjs";
import { pause } from "./rounds.ts";

export interface BenchRedis {
  url: string;
  port: number;
  stop(): Promise<void>;
}

/** A server of its own on a free loopback port, which keeps nothing on disk. */
export async function startRedis(): Promise<BenchRedis> {
  const folder = mkdtempSync(join(tmpdir(), "fleet-bench-redis-"));
  const port = await freePort();
  const settings = { port, bind: "127.0.0.1", save: "", appendonly: "no", dir: folder };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const server = spawn(ensureRedisServer(), args, { stdio: "ignore" });
  const kill = () => server.kill("SIGKILL");
  process.once("exit", kill);
  const url = `redis://127.0.0.1:${port}`;
  await untilUp(url, server);
  return {
    url,
    port,
    async stop() {
      process.removeListener("exit", kill);
      const ended = once(server, "exit");
      kill();
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * The bare client, with the options of Fleet's own connections: RESP 3 and no timer per command. With `timed` as it is by default: a timer
 * of 5 s and an abort signal per command.
 */
export async function rawClient(url: string, { timed = false }: { timed?: boolean } = {}) {
  const client = createClient({
    url,
    RESP: 3,
    maintNotifications: "disabled",
    commandOptions: { timeout: timed ? 5000 : 0 },
  });
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

export type RawClient = Awaited<ReturnType<typeof rawClient>>;

async function untilUp(url: string, server: ChildProcess): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt++) {
    if (server.exitCode !== null) throw new Error(`redis-server ended with code ${server.exitCode}`);
    try {
      const client = await rawClient(url);
      client.destroy();
      return;
    } catch {
      await pause(50);
    }
  }
  throw new Error("redis-server does not answer");
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
