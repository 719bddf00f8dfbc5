import { hostname } from "node:os";
import type { Automation } from "../automation/definition.ts";
import { uuidv7 } from "../internal/uuid.ts";
import type { Log } from "../internal/log.ts";
import { applyProgram } from "../control/apply-program.ts";
import type { Program } from "../protocol/program.ts";
import { VERSION } from "../protocol/version.ts";
import { storeKind } from "../store/open.ts";
import type { Store } from "../store/store.ts";
import { enter } from "./identity.ts";
import { knownOf } from "./membership.ts";
import { inlineRuntime } from "./inline-runtime.ts";
import { partitionOf, type PartitionOptions } from "./partition.ts";
import { processRuntime } from "./process-runtime.ts";
import { processTable } from "./process-table.ts";
import { endOrphans } from "./reap.ts";
import type { Runtime } from "./runtime.ts";
import type { StoreRelay } from "./store-relay.ts";
import { type DrainRequest, Supervisor } from "./supervisor.ts";
import { workerTimings, type WorkerTimings } from "./timings.ts";

export interface WorkerOptions extends PartitionOptions {
  /** Opened store; the worker uses it and leaves closing to the caller. */
  store: Store;
  /** Address of the same store, for the child processes. */
  storeUrl: string;
  program: Program;
  log: Log;
  /** The worker's id. Default: stable per host and data directory, with the next free suffix beside another worker. */
  id?: string;
  /** What the default id is derived from, beside the host; default `.fleet`. */
  dataDir?: string;
  /** Most slots at once; default 100. */
  capacity?: number;
  labels?: Record<string, string>;
  /** Definitions that are at hand in this process: they run inline. */
  inline?: ReadonlyMap<string, Automation>;
  timings?: Partial<WorkerTimings>;
}

export interface Worker {
  readonly id: string;
  /** Process ids of its children. */
  readonly pids: readonly number[];
  /**
   * Resolves when somebody wants this worker to drain, by command line or API. It goes on until `drain` is called: whoever started it
   * decides what ends with it.
   */
  readonly asked: Promise<DrainRequest>;
  /**
   * With `partition: "exit"`: resolves when the store has been away for so long that this worker should leave, with that time. It goes on until
   * `drain` is called: whoever started it decides what ends with it.
   */
  readonly lost: Promise<{ afterSeconds: number }>;
  /** Puts a new program in place: only automations whose version changed are restarted. */
  replace(program: Program): Promise<void>;
  /**
   * Takes nothing new, ends all slots, gives them back and leaves. `forced` when the deadline (default 30 s) passed and processes
   * were killed. `by`: who asked for it. Safe to call again: a second call has the same answer.
   */
  drain(options?: { deadlineSeconds?: number; by?: string }): Promise<{ forced: boolean }>;
}

/**
 * Starts a worker on an open store: registers it, seeds what the program's `deploy` says, and keeps its share of the slots
 * running. Children need a store that other processes can share; on `sqlite::memory:` all runs inline.
 */
export async function startWorker(options: WorkerOptions): Promise<Worker> {
  const { store, program, log } = options;
  const timings = workerTimings(options.timings);
  const partition = partitionOf(options, timings);
  const info = {
    incarnation: uuidv7(),
    host: hostname(),
    pid: process.pid,
    version: VERSION,
    startedAt: Date.now(),
    capacity: options.capacity ?? 100,
    labels: options.labels ?? {},
    ...knownOf(program),
    draining: false,
    partition,
    processTable: processTable(),
  };
  const manifests = program.automations.map(({ manifest }) => manifest);
  const dataDir = options.dataDir ?? ".fleet";
  if (options.inline === undefined && store.traits.multiProcess) await endOrphans(log);
  const worker = await enter({
    registry: store.registry,
    info,
    manifests,
    ttlMs: timings.leaseMs,
    id: options.id,
    dataDir,
  });
  await applyProgram(store, program, log);
  const runtime =
    options.inline === undefined && store.traits.multiProcess
      ? await childProcesses(options, { worker: worker.id, leaseMs: timings.leaseMs }, info.incarnation)
      : inlineRuntime(
          store,
          { worker: worker.id, incarnation: info.incarnation, leaseMs: timings.leaseMs },
          options.inline,
        );
  let ask: (request: DrainRequest) => void = () => undefined;
  const asked = new Promise<DrainRequest>((resolve) => (ask = resolve));
  let leave: () => void = () => undefined;
  const lost = new Promise<{ afterSeconds: number }>((resolve) => {
    leave = () => resolve({ afterSeconds: partition.afterSeconds ?? 0 });
  });
  const supervisor = new Supervisor({
    store,
    worker,
    program,
    runtime,
    timings,
    partition,
    log,
    asked: ask,
    lost: leave,
  });
  supervisor.start();
  let drained: Promise<{ forced: boolean }> | undefined;
  return {
    id: worker.id,
    get pids() {
      return supervisor.pids;
    },
    asked,
    lost,
    replace: (next) => supervisor.replace(next),
    drain: ({ deadlineSeconds = 30, by } = {}) =>
      (drained ??= supervisor.drain(deadlineSeconds * 1000, by ?? null).then((forced) => ({ forced }))),
  };
}

/** On a master's store the children go through this process: one link per worker. They have ended when the way to it is closed. */
async function childProcesses(
  { store, storeUrl, log }: WorkerOptions,
  who: { worker: string; leaseMs: number },
  incarnation: string,
): Promise<Runtime> {
  const relay = storeKind(storeUrl) === "remote" ? await relayOf(store, log) : undefined;
  const runtime = processRuntime(
    {
      storeUrl: relay?.url ?? storeUrl,
      ...(relay === undefined ? {} : { storeToken: relay.token }),
      namespace: store.namespace,
      logLevel: log.level ?? "debug",
      ...who,
    },
    incarnation,
  );
  return { ...runtime, close: () => runtime.close().then(() => relay?.close()) };
}

/** Its code is loaded only when it is needed: most workers have the store at hand. */
async function relayOf(store: Store, log: Log): Promise<StoreRelay> {
  const { startRelay } = await import("./store-relay.ts");
  return startRelay(store, log);
}
