import { checkNamespace } from "../contracts/name.ts";
import { FleetError } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { loadProject, newMemory, type Project } from "../project/project.ts";
import type { Master } from "../master/master.ts";
import type { Store } from "../store/store.ts";
import type { PartitionOptions } from "../worker/partition.ts";
import { startWorker, type Worker } from "../worker/worker.ts";
import { closeStore, makeDataDir } from "./data-dir.ts";
import type { DevParts, Reloading } from "./dev.ts";
import type { FirstBuild } from "./first-build.ts";
import { joinTarget } from "./join.ts";
import { openLog } from "./log.ts";
import type { RunFlags } from "./run-options.ts";
import { listenForSignals, untilDrained } from "./shutdown.ts";
import { chooseTarget, openForWorker, type Target } from "./target.ts";
import type { Terminal } from "./terminal.ts";
import { timingsFrom } from "./timings.ts";

export interface Run {
  files: readonly string[];
  flags: RunFlags;
  terminal: Terminal;
  dev: boolean;
  /** Whether this process is a master too. */
  leads: boolean;
}

/** `fleet up`, `worker` and `dev`: runs until a signal ends it. The exit code says whether the drain had to be forced. */
export async function run({ files, flags, terminal, dev, leads }: Run): Promise<void> {
  if (flags.join === undefined && flags.viaMaster === true)
    throw new FleetError("FLEET_USAGE", "--via-master goes with --join, which names the master");
  const log = openLog(terminal, flags.logLevel);
  const memory = dev ? newMemory() : undefined;
  const { config, only } = flags;
  const cwd = process.cwd();
  const load = () => loadProject({ cwd, config, files, only, memory });
  const project = dev ? await buildFirst({ load, cwd, files, config, log, terminal }) : await load();
  const target = flags.join === undefined ? chooseTarget(flags, project) : await joined(flags, flags.join);
  const dataDir = makeDataDir(project.dir);
  const store = await openForWorker(target, log);
  const signals = listenForSignals();
  let master: Master | undefined;
  try {
    // Of another master's store this process is a worker and no more.
    if (leads && target.token === undefined) master = await lead({ store, dataDir, flags, log });
    const worker = await start({ project, target, store, dataDir, flags, log });
    const reloading = dev ? await followSaves({ project, load, worker, log, terminal }) : undefined;
    process.exitCode = await untilDrained({ worker, signals, log, drainSeconds: flags.drainSeconds });
    await reloading?.close();
  } finally {
    signals.close();
    await master?.close();
    await closeStore(store, log);
  }
}

/** A flag counts before the config file; seconds that the file names are for its own "exit". */
function partitionFrom(flags: RunFlags, project: Project): PartitionOptions {
  const partition = flags.partition ?? project.partition;
  const own = partition === project.partition ? project.partitionSeconds : undefined;
  return { partition, partitionSeconds: flags.partitionSeconds ?? own };
}

// The following are loaded only where they are wanted: a worker of many needs none of it.

async function buildFirst(parts: FirstBuild): Promise<Project> {
  const { firstBuild } = await import("./first-build.ts");
  return firstBuild(parts);
}

async function followSaves(parts: DevParts): Promise<Reloading> {
  const { reloadOnSave } = await import("./dev.ts");
  return reloadOnSave(parts);
}

async function lead(parts: Pick<Start, "store" | "dataDir" | "flags" | "log">): Promise<Master> {
  const { runMaster } = await import("./master-run.ts");
  return runMaster({ ...parts, timings: timingsFrom(process.env["FLEET_TIMINGS"]), movesAside: true });
}

async function joined(flags: RunFlags, url: string): Promise<Target> {
  if (flags.store !== undefined || flags.master !== undefined)
    throw new FleetError("FLEET_USAGE", "--join names the fleet; leave out --store and --master");
  const token = flags.token ?? (process.env["FLEET_TOKEN"] || undefined);
  const namespace = flags.namespace ?? (process.env["FLEET_NAMESPACE"] || undefined);
  return joinTarget({
    url,
    token,
    viaMaster: flags.viaMaster === true,
    namespace: namespace === undefined ? undefined : checkNamespace(namespace),
  });
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
    ...partitionFrom(flags, project),
  });
  const names = program.automations.map(({ manifest }) => manifest.name).join(", ");
  const space = store.namespace === "" ? "" : `, namespace ${store.namespace}`;
  log.info(`running ${names} on ${target.shown}${space} as worker ${worker.id}`);
  return worker;
}
