import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem, type } from "node:os";
import { fileURLToPath } from "node:url";
import { findRedisServer } from "../scripts/redis-server.mjs";

export interface Machine {
  cpu: string;
  cores: number;
  memoryGb: number;
  system: string;
  /** Load of the last minute at the start: above the number of cores, figures are low and ratios wide. */
  load: number;
  versions: Record<string, string>;
}

export function describeMachine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    load: Math.round((loadavg()[0] ?? 0) * 10) / 10,
    versions: {
      node: process.versions.node,
      redis: serverVersion(),
      "@redis/client": packageVersion("@redis/client"),
      ioredis: packageVersion("ioredis"),
      bullmq: packageVersion("bullmq"),
      zod: packageVersion("zod"),
    },
  };
}

function packageVersion(name: string): string {
  const file = fileURLToPath(new URL(`../../node_modules/${name}/package.json`, import.meta.url));
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}

function serverVersion(): string {
  const path = findRedisServer();
  if (path === undefined) return "none";
  const { stdout } = spawnSync(path, ["--version"], { encoding: "utf8" });
  return /\bv=(\S+)/.exec(stdout)?.[1] ?? "unknown";
}
