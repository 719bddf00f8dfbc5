import { createHash } from "node:crypto";
import { hostname } from "node:os";
import { resolve } from "node:path";
import { checkName } from "../contracts/name.ts";
import { FleetError } from "../errors.ts";
import { monotonicMs, sleep } from "../internal/timers.ts";
import type { Manifest } from "../protocol/manifest.ts";
import type { WorkerInfo } from "../protocol/status.ts";
import type { Registry, RegisterResult } from "../store/store.ts";
import { isAlive } from "./process-table.ts";

/** Most workers of one host and data directory with a default id. */
const MAX_SUFFIX = 256;

/** Stable per host and data directory: `<host>-<6 hex digits of the directory>`. */
export function defaultWorkerId(dataDir: string, host: string = hostname()): string {
  const name =
    host
      .toLowerCase()
      .replaceAll(/[^a-z0-9-]/g, "-")
      .replace(/^-+/, "")
      .slice(0, 60) || "host";
  return `${name}-${createHash("sha256").update(resolve(dataDir)).digest("hex").slice(0, 6)}`;
}

export interface Enter {
  registry: Registry;
  info: Omit<WorkerInfo, "id">;
  manifests: readonly Manifest[];
  ttlMs: number;
  /** An id asked for: it, or an error. */
  id: string | undefined;
  dataDir: string;
}

/**
 * Registers under `id`, or under the default id with the first suffix that no live worker bears.
 *
 * A worker that was killed and starts again gets its id back at once where its predecessor's process can be seen to be gone; else,
 * for an id asked for, it waits whether that one is heard of again: if so it lives, and this one is refused with
 * `FLEET_WORKER_ID_TAKEN`; if not, its time runs out.
 */
export async function enter(args: Enter): Promise<WorkerInfo> {
  const { id } = args;
  const base = id === undefined ? defaultWorkerId(args.dataDir) : checkName("worker id", id);
  if (id !== undefined) return enterAs(args, base);
  for (let suffix = 1; suffix <= MAX_SUFFIX; suffix++) {
    const worker = { ...args.info, id: suffix === 1 ? base : `${base}-${suffix}` };
    const result = await registerOver(args, worker);
    if (result.outcome === "registered") return worker;
  }
  throw new FleetError(
    "FLEET_WORKER_ID_TAKEN",
    `${MAX_SUFFIX} live workers bear "${base}" and its suffixes already; choose an --id`,
  );
}

async function enterAs(args: Enter, id: string): Promise<WorkerInfo> {
  const worker = { ...args.info, id };
  const until = monotonicMs() + args.ttlMs * 1.5;
  let firstSeen: number | undefined;
  for (;;) {
    const result = await registerOver(args, worker);
    if (result.outcome === "registered") return worker;
    firstSeen ??= result.lastSeenAt;
    if (result.lastSeenAt > firstSeen || monotonicMs() > until) {
      const { host, pid } = result.by;
      throw new FleetError(
        "FLEET_WORKER_ID_TAKEN",
        `a live worker bears the id "${id}" already (host ${host}, process ${pid}); stop it, choose another --id, or leave --id out`,
      );
    }
    await sleep(Math.min(500, args.ttlMs / 10));
  }
}

/** Registers; in place of one whose process is known to be gone. */
async function registerOver(
  { registry, manifests, ttlMs, info }: Enter,
  worker: WorkerInfo,
): Promise<RegisterResult> {
  const result = await registry.register({ worker, manifests, ttlMs });
  if (result.outcome === "registered") return result;
  const { by } = result;
  const comparable = by.processTable !== undefined && by.processTable === info.processTable;
  // Within one process table two processes never share a pid, so one with this process's own is gone too.
  if (!comparable || (by.pid !== info.pid && isAlive(by.pid))) return result;
  return registry.register({ worker, manifests, ttlMs, replaces: by.incarnation });
}
