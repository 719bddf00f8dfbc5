// A master of the command line: its token, its place, and what is said of it.
import type { Log } from "../internal/log.ts";
import { FleetError, isFleetError } from "../errors.ts";
import { redactUrl } from "../internal/redact.ts";
import { DEFAULT_HOST, DEFAULT_PORT, isLoopback, type Master, startMaster } from "../master/master.ts";
import { adminToken } from "../master/token.ts";
import { storeKind } from "../store/open.ts";
import type { Store } from "../store/store.ts";
import { DEFAULT_TIMINGS, type WorkerTimings } from "../worker/timings.ts";

/** What `fleet master`, `up` and `dev` take for their master. */
export interface MasterFlags {
  host?: string;
  port?: number;
  workerStore?: string;
}

export interface MasterRun {
  store: Store;
  dataDir: string;
  flags: MasterFlags;
  timings: Partial<WorkerTimings> | undefined;
  log: Log;
  /** Whether a busy port that nobody asked for is given up for any free one. */
  movesAside: boolean;
}

/** Throws `FLEET_OPTION_INVALID` where it cannot or must not listen. */
export async function runMaster({
  store,
  dataDir,
  flags,
  timings,
  log,
  movesAside,
}: MasterRun): Promise<Master> {
  const host = flags.host ?? (process.env["FLEET_HOST"] || DEFAULT_HOST);
  const port = flags.port ?? portFrom(process.env["FLEET_PORT"]);
  const given = process.env["FLEET_TOKEN"];
  // Whoever opens the door to others says so by choosing a token; one that was made for this machine alone is no such word.
  if (!isLoopback(host) && (given === undefined || given === ""))
    throw new FleetError(
      "FLEET_OPTION_INVALID",
      `--host ${host}: a master that others can reach needs a token of your choice; set FLEET_TOKEN (for example: export FLEET_TOKEN=$(openssl rand -hex 32))`,
    );
  const { token, file, fresh, exposed } = adminToken(given, dataDir);
  if (exposed)
    log.warn(
      `others on this machine can read or change the admin token in ${file}: chmod 600 ${file}. If somebody may have read it, delete the file instead: the next start makes a new one`,
    );
  const { leaseMs, sweepMs } = { ...DEFAULT_TIMINGS, ...timings };
  const options = { store, token, host, leaseMs, sweepMs, log, workerStore: workerStoreOf(flags) };
  const start = (at: number) => startMaster({ ...options, port: at });
  const master = await start(port ?? DEFAULT_PORT).catch((error: unknown) => {
    const busy =
      isFleetError(error) && (error.cause as { code?: unknown } | undefined)?.code === "EADDRINUSE";
    if (!busy || port !== undefined || !movesAside) throw error;
    log.warn(`port ${DEFAULT_PORT} is taken; the master listens on a free one (choose one by --port)`);
    return start(0);
  });
  log.info(
    `master at ${master.url}`,
    file === undefined ? {} : { token_file: file, ...(fresh ? { token_made: "now" } : {}) },
  );
  return master;
}

function portFrom(text: string | undefined): number | undefined {
  if (text === undefined || text === "") return undefined;
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new FleetError(
    "FLEET_OPTION_INVALID",
    `FLEET_PORT must be a port from 0 to 65535, got ${JSON.stringify(text)}`,
  );
}

function isRedis(url: string): boolean {
  try {
    return storeKind(url) === "redis";
  } catch {
    return false;
  }
}

/** The address for workers that join: it must be one that other hosts can use. */
function workerStoreOf(flags: MasterFlags): string | undefined {
  const url = flags.workerStore ?? (process.env["FLEET_WORKER_STORE"] || undefined);
  if (url === undefined || isRedis(url)) return url;
  throw new FleetError(
    "FLEET_OPTION_INVALID",
    `--worker-store is ${JSON.stringify(redactUrl(url))}; it must be a Redis address as other hosts see it, or be left out: then they go through the master`,
  );
}
