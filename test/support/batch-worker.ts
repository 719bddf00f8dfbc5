// A worker that runs batch automations in the test's own process, and handles on the same store.
import { inject, onTestFinished } from "vitest";
import type { Automation } from "../../src/automation/definition.ts";
import { type Fleet, fleetOn } from "../../src/automation/fleet.ts";
import { manifestOf } from "../../src/automation/manifest.ts";
import { SILENT } from "../../src/internal/log.ts";
import { openStore } from "../../src/store/open.ts";
import type { Store } from "../../src/store/store.ts";
import type { WorkerTimings } from "../../src/worker/timings.ts";
import { startWorker, type Worker } from "../../src/worker/worker.ts";
import { freshNamespace } from "./stores.ts";

export const TIMINGS: Partial<WorkerTimings> = {
  beatMs: 100,
  leaseMs: 2000,
  stopGraceMs: 500,
  taskGraceMs: 300,
  backoffBaseMs: 50,
  backoffCapMs: 200,
  sweepMs: 500,
};

export interface Inline {
  store: Store;
  worker: Worker;
  /** Handles on a connection of their own, where the store can be shared. */
  fleet: Fleet;
}

export const KINDS = ["SQLite in memory", "Redis"] as const;
export type Kind = (typeof KINDS)[number];

/** Starts a worker with these automations, each with so many slots. */
export async function inlineWorker(
  kind: Kind,
  automations: readonly (readonly [automation: unknown, slots: number])[],
  timings: Partial<WorkerTimings> = {},
): Promise<Inline> {
  const url = kind === "Redis" ? inject("redisUrl") : "sqlite::memory:";
  const namespace = freshNamespace();
  const store = await openStore(url, { namespace });
  const inline = new Map(automations.map(([one]) => [(one as Automation).name, one as Automation]));
  const program = {
    automations: [...inline.values()].map((automation) => ({
      manifest: manifestOf(automation, "1"),
      module: "",
      source: "test",
      isolate: "automation" as const,
    })),
    deploy: Object.fromEntries(automations.map(([one, slots]) => [(one as Automation).name, { slots }])),
  };
  const worker = await startWorker({
    store,
    storeUrl: url,
    program,
    log: SILENT,
    inline,
    timings: { ...TIMINGS, ...timings },
  });
  const shared = kind === "Redis" ? await openStore(url, { namespace }) : store;
  const fleet = fleetOn(shared, { log: SILENT });
  onTestFinished(async () => {
    await worker.drain({ deadlineSeconds: 1 });
    await fleet.close();
    await store.close();
  });
  return { store, worker, fleet };
}
