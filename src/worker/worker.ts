import { hostname } from "node:os";
import type { Automation } from "../automation/definition.ts";
import { uuidv7 } from "../internal/uuid.ts";
import type { Log } from "../internal/log.ts";
import { applyProgram } from "../control/apply-program.ts";
import type { Program } from "../protocol/program.ts";
import { VERSION } from "../protocol/version.ts";
import type { Store } from "../store/store.ts";
import { enter } from "./identity.ts";
import { inlineRuntime } from "./inline-runtime.ts";
import { processRuntime } from "./process-runtime.ts";
import { processTable } from "./process-table.ts";
import { endOrphans } from "./reap.ts";
import { Supervisor } from "./supervisor.ts";
import { workerTimings, type WorkerTimings } from "./timings.ts";

export interface WorkerOptions {
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
  /** Puts a new program in place: only automations whose version changed are restarted. */
  replace(program: Program): Promise<void>;
  /**
   * Takes nothing new, ends all slots, gives them back and leaves. `forced` when the deadline (default 30 s) passed and processes
   * were killed. Safe to call again: a second call has the same answer.
   */
  drain(options?: { deadlineSeconds?: number }): Promise<{ forced: boolean }>;
}

/**
 * Starts a worker on an open store: registers it, seeds what the program's `deploy` says, and keeps its share of the slots
 * running. Children need a store that other processes can share; on `sqlite::memory:` all runs inline.
 */
export async function startWorker(options: WorkerOptions): Promise<Worker> {
  const { store, program, log } = options;
  const timings = workerTimings(options.timings);
  const info = {
    incarnation: uuidv7(),
    host: hostname(),
    pid: process.pid,
    version: VERSION,
    startedAt: Date.now(),
    capacity: options.capacity ?? 100,
    labels: options.labels ?? {},
    automations: program.automations.map(({ manifest }) => manifest.name),
    draining: false,
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
      ? processRuntime(
          {
            storeUrl: options.storeUrl,
            namespace: store.namespace,
            worker: worker.id,
            leaseMs: timings.leaseMs,
            logLevel: log.level ?? "debug",
          },
          info.incarnation,
        )
      : inlineRuntime(
          store,
          { worker: worker.id, incarnation: info.incarnation, leaseMs: timings.leaseMs },
          options.inline,
        );
  const supervisor = new Supervisor({ store, worker, program, runtime, timings, log });
  supervisor.start();
  let drained: Promise<{ forced: boolean }> | undefined;
  return {
    id: worker.id,
    get pids() {
      return supervisor.pids;
    },
    replace: (next) => supervisor.replace(next),
    drain: ({ deadlineSeconds = 30 } = {}) =>
      (drained ??= supervisor.drain(deadlineSeconds * 1000).then((forced) => ({ forced }))),
  };
}
