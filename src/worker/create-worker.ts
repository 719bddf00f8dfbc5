import { isAutomation, type Automation } from "../automation/definition.ts";
import { manifestOf } from "../automation/manifest.ts";
import { FleetError } from "../errors.ts";
import { SILENT, type Log } from "../internal/log.ts";
import type { DeployEntry } from "../protocol/program.ts";
import { openStore } from "../store/open.ts";
import type { WorkerTimings } from "./timings.ts";
import { startWorker, type Worker } from "./worker.ts";

export interface CreateWorkerOptions {
  /** Address of the store. */
  store: string;
  namespace?: string;
  /** Definitions; they run inline, in this process. */
  automations: readonly { readonly kind: string; readonly name: string }[];
  /** Desired state to seed, by automation. */
  deploy?: Readonly<Record<string, DeployEntry>>;
  id?: string;
  /** Most slots at once; default 100. */
  capacity?: number;
  labels?: Record<string, string>;
  log?: Log;
  timings?: Partial<WorkerTimings>;
}

/**
 * Runs a worker inside this process, for tests and for embedding: user code shares the process, so nothing isolates it. For
 * production use the command `fleet worker`, which gives each automation a process of its own.
 */
export async function createWorker(options: CreateWorkerOptions): Promise<Worker & AsyncDisposable> {
  const inline = new Map<string, Automation>();
  for (const automation of options.automations as readonly unknown[]) {
    if (!isAutomation(automation))
      throw new FleetError(
        "FLEET_OPTION_INVALID",
        "createWorker: automations must be definitions made by defineContinuous(…)",
      );
    if (inline.has(automation.name))
      throw new FleetError(
        "FLEET_DEFINITION_INVALID",
        `createWorker: two automations are named "${automation.name}"`,
      );
    inline.set(automation.name, automation);
  }
  const log = options.log ?? SILENT;
  const store = await openStore(options.store, {
    namespace: options.namespace,
    log: (level, message, fields) => log[level](message, fields),
  });
  const automations = [...inline.values()].map((automation) => ({
    manifest: manifestOf(automation, "inline"),
    module: "",
    source: "(inline)",
    isolate: "automation" as const,
  }));
  try {
    const worker = await startWorker({
      ...options,
      store,
      storeUrl: options.store,
      program: { automations, deploy: options.deploy ?? {} },
      log,
      inline,
    });
    let over: Promise<{ forced: boolean }> | undefined;
    const drainAndClose = async (how?: { deadlineSeconds?: number }) => {
      try {
        return await worker.drain(how);
      } finally {
        await store.close();
      }
    };
    const drain: Worker["drain"] = (how) => (over ??= drainAndClose(how));
    return {
      id: worker.id,
      pids: [],
      replace: (program) => worker.replace(program),
      drain,
      [Symbol.asyncDispose]: async () => void (await drain()),
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}
