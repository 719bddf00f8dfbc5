import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { FleetError, messageOf } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { writeIgnoreFile } from "../project/build.ts";
import { loadProject, newMemory, type Project } from "../project/project.ts";
import type { Store } from "../store/store.ts";
import type { WorkerTimings } from "../worker/timings.ts";
import { startWorker, type Worker } from "../worker/worker.ts";
import { reloadOnSave } from "./dev.ts";
import { firstBuild } from "./first-build.ts";
import { openLog } from "./log.ts";
import type { RunFlags } from "./run-options.ts";
import { listenForSignals, untilDrained } from "./shutdown.ts";
import { chooseTarget, openForWorker, type Target } from "./target.ts";
import type { Terminal } from "./terminal.ts";

export interface Run {
  files: readonly string[];
  flags: RunFlags;
  terminal: Terminal;
  dev: boolean;
}

/** `fleet up`, `worker` and `dev`: runs until a signal ends it. The exit code says whether the drain had to be forced. */
export async function run({ files, flags, terminal, dev }: Run): Promise<void> {
  const log = openLog(terminal, flags.logLevel);
  const memory = dev ? newMemory() : undefined;
  const { config, only } = flags;
  const cwd = process.cwd();
  const load = () => loadProject({ cwd, config, files, only, memory });
  const project = dev ? await firstBuild({ load, cwd, files, config, log, terminal }) : await load();
  const target = chooseTarget(flags, project);
  const dataDir = makeDataDir(project.dir);
  const store = await openForWorker(target, log);
  const signals = listenForSignals();
  try {
    const worker = await start({ project, target, store, dataDir, flags, log });
    const reloading = dev ? reloadOnSave({ project, load, worker, log, terminal }) : undefined;
    process.exitCode = await untilDrained({ worker, signals, log, drainSeconds: flags.drainSeconds });
    await reloading?.close();
  } finally {
    signals.close();
    await closeStore(store, log);
  }
}

interface Start {
  project: Project;
  target: Target;
  store: Store;
  dataDir: string;
  flags: RunFlags;
  log: Log;
}

async function start({ project, target, store, dataDir, flags, log }: Start): Promise<Worker> {
  const { program } = project;
  const worker = await startWorker({
    store,
    storeUrl: target.url,
    program,
    log,
    dataDir,
    ...(flags.id === undefined ? {} : { id: flags.id }),
    ...(flags.capacity === undefined ? {} : { capacity: flags.capacity }),
    ...(flags.labels === undefined ? {} : { labels: flags.labels }),
    timings: timingsFrom(process.env["FLEET_TIMINGS"]),
  });
  const names = program.automations.map(({ manifest }) => manifest.name).join(", ");
  const space = target.namespace === "" ? "" : `, namespace ${target.namespace}`;
  log.info(`running ${names} on ${target.shown}${space} as worker ${worker.id}`);
  return worker;
}

/** `.fleet/` beside the config, or where `FLEET_DATA_DIR` says. */
function makeDataDir(dir: string): string {
  const own = process.env.FLEET_DATA_DIR;
  const dataDir = own === undefined || own === "" ? join(dir, ".fleet") : resolve(own);
  try {
    mkdirSync(dataDir, { recursive: true });
    writeIgnoreFile(dataDir);
  } catch (error) {
    throw new FleetError(
      "FLEET_CONFIG_INVALID",
      `cannot make the data folder ${dataDir}: ${messageOf(error)}`,
      {
        cause: error,
      },
    );
  }
  return dataDir;
}

/** A store that is away must not keep a drained worker from ending. */
async function closeStore(store: Store, log: Log): Promise<void> {
  try {
    await store.close();
  } catch (error) {
    log.warn("the store did not close cleanly", { error: messageOf(error) });
  }
}

/** `FLEET_TIMINGS`: the worker's times as JSON in milliseconds, for tuning and tests; which ones there are stands in docs/operations.md. */
function timingsFrom(text: string | undefined): Partial<WorkerTimings> | undefined {
  if (text === undefined || text === "") return undefined;
  try {
    return JSON.parse(text) as Partial<WorkerTimings>;
  } catch (error) {
    throw new FleetError(
      "FLEET_OPTION_INVALID",
      `FLEET_TIMINGS must be a JSON object, for example {"leaseMs": 3000}: ${messageOf(error)}`,
    );
  }
}
