import { createHash } from "node:crypto";
import { hostname } from "node:os";
import { resolve } from "node:path";
import { checkName } from "../contracts/name.ts";
import { FleetError } from "../errors.ts";
import type { Manifest } from "../protocol/manifest.ts";
import type { WorkerInfo } from "../protocol/status.ts";
import type { Registry } from "../store/store.ts";

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
 * Registers under `id`, or under the default id with the first suffix that no live worker bears. Throws
 * `FLEET_WORKER_ID_TAKEN` when `id` was asked for and a live worker bears it.
 */
export async function enter({
  registry,
  info,
  manifests,
  ttlMs,
  id,
  dataDir,
}: Enter): Promise<{ worker: WorkerInfo; now: number }> {
  const base = id === undefined ? defaultWorkerId(dataDir) : checkName("worker id", id);
  for (let suffix = 1; suffix <= (id === undefined ? MAX_SUFFIX : 1); suffix++) {
    const worker = { ...info, id: suffix === 1 ? base : `${base}-${suffix}` };
    const result = await registry.register({ worker, manifests, ttlMs });
    if (result.outcome === "registered") return { worker, now: result.now };
    if (id !== undefined) {
      throw new FleetError(
        "FLEET_WORKER_ID_TAKEN",
        `a live worker bears the id "${id}" already (host ${result.host}, process ${result.pid}); stop it, choose another --id, or leave --id out`,
      );
    }
  }
  throw new FleetError(
    "FLEET_WORKER_ID_TAKEN",
    `${MAX_SUFFIX} live workers bear "${base}" and its suffixes already; choose an --id`,
  );
}
