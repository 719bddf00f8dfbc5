// The stores on which the fleet is broken at random, and how each of them can fail.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createClient } from "@redis/client";
import { openStore } from "../../src/store/open.ts";
import type { Store } from "../../src/store/store.ts";
import { nemesis, type NemesisOptions, type NemesisReport, type StoreFaults } from "./nemesis.ts";
import { startRedis } from "./redis.ts";

export interface NemesisPlace {
  store: Store;
  url: string;
  flags: readonly string[];
  faults: StoreFaults;
  close(): Promise<void>;
}

const NAMESPACE = "nemesis";
const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export async function redisPlace(): Promise<NemesisPlace> {
  const server = await startRedis();
  const client = createClient({ url: server.url });
  client.on("error", () => undefined);
  await client.connect();
  const store = await openStore(server.url, { namespace: NAMESPACE });
  return {
    store,
    url: server.url,
    flags: ["--store", server.url, "--namespace", NAMESPACE],
    faults: {
      pause: async (ms) => {
        process.kill(server.pid, "SIGSTOP");
        await delay(ms);
        process.kill(server.pid, "SIGCONT");
      },
      forgetScripts: async () => void (await client.sendCommand(["SCRIPT", "FLUSH"])),
      wipe: async () => void (await client.sendCommand(["FLUSHALL"])),
    },
    close: async () => {
      await store.close();
      client.destroy();
      await server.stop();
    },
  };
}

export async function sqlitePlace(folder: string): Promise<NemesisPlace> {
  const path = join(folder, "shared.db");
  const url = `sqlite:${path}`;
  const store = await openStore(url, { namespace: NAMESPACE });
  return {
    store,
    url,
    flags: ["--store", url, "--namespace", NAMESPACE],
    faults: { pause: (ms) => lockFor(path, ms).released },
    close: () => store.close(),
  };
}

/** Another process holds the database locked for so long. */
export function lockFor(path: string, ms: number): { holding: Promise<void>; released: Promise<void> } {
  const script = `
    const { DatabaseSync } = require("@photostructure/sqlite");
    const db = new DatabaseSync(process.argv[1], { timeout: 10000 });
    db.exec("BEGIN EXCLUSIVE");
    console.log("locked");
    setTimeout(() => { db.exec("COMMIT"); db.close(); }, Number(process.argv[2]));`;
  const child = spawn(process.execPath, ["-e", script, path, String(ms)], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const holding = once(child.stdout, "data").then(([said]) => {
    if (!String(said).includes("locked")) throw new Error(`the database was not locked: ${String(said)}`);
  });
  const released = once(child, "exit").then(async () => holding);
  return { holding, released };
}

export async function nemesisOn(
  place: NemesisPlace,
  options: Pick<NemesisOptions, "seed" | "faults" | "everyMs" | "cwd">,
): Promise<NemesisReport> {
  return nemesis({ ...options, flags: place.flags, store: place.store, storeFaults: place.faults });
}
