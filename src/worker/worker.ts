import type { Log } from "../internal/log.ts";
import type { Program } from "../protocol/program.ts";
import type { Store } from "../store/store.ts";

export interface WorkerOptions {
  /** Opened store; the worker uses it and leaves closing to the caller. */
  store: Store;
  /** Address of the same store, for the child processes. */
  storeUrl: string;
  program: Program;
  log: Log;
  /** Base of the worker's id. Default: stable per host and data directory. A live worker of that id → `FLEET_WORKER_ID_TAKEN`; with the default the next free suffix is taken instead. */
  id?: string;
  /** Where the default id is kept; default `.fleet`. */
  dataDir?: string;
  /** Most slots at once; default 100. */
  capacity?: number;
  labels?: Record<string, string>;
}

export interface Worker {
  readonly id: string;
  /** Puts a new program in place: only automations whose version changed are restarted. */
  replace(program: Program): Promise<void>;
  /** Takes nothing new, ends all slots, releases them and leaves. `forced` when the deadline passed and children were killed. */
  drain(options?: { deadlineSeconds?: number }): Promise<{ forced: boolean }>;
}

export function startWorker(_options: WorkerOptions): Promise<Worker> {
  return Promise.reject(new Error("under construction"));
}
