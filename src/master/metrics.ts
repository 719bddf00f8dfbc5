import { Gauge, Registry } from "prom-client";
import { isFleetError } from "../errors.ts";
import { eachAlone } from "../control/damaged.ts";
import { statusReport } from "../control/status-report.ts";
import { ITEM_STATES } from "../protocol/pool.ts";
import { TASK_STATES } from "../protocol/task.ts";
import type { Store } from "../store/store.ts";

/** Streams, queues and pools of each kind that are looked into at most; how many there are is a metric of its own. */
const MAX_LOOKS = 500;

/**
 * The fleet in the text format of Prometheus, read from the store at each scrape: nothing is counted twice, whichever master is asked, and
 * nothing is lost with one. While the store is away there is only that, and whether this master leads (by its own clock).
 */
export async function readMetrics(
  store: Store,
  leading: () => boolean,
): Promise<{ type: string; text: string }> {
  const registry = new Registry();
  const gauge = (name: string, help: string, labels: readonly string[] = []) =>
    new Gauge({ name: `fleet_${name}`, help, labelNames: [...labels], registers: [registry] });
  const reads = [slots(store, gauge), streams(store, gauge), queues(store, gauge), pools(store, gauge)];
  // What this master knows by itself is told also while the store is away.
  const up = await Promise.all(reads).then(
    () => 1,
    (error: unknown) => {
      if (isFleetError(error)) return 0;
      throw error;
    },
  );
  gauge("store_up", "1 where the store answers").set(up);
  gauge("leading", "1 where this master leads").set(leading() ? 1 : 0);
  return { type: registry.contentType, text: await registry.metrics() };
}

type MakeGauge = (name: string, help: string, labels?: readonly string[]) => Gauge;

async function slots(store: Store, gauge: MakeGauge): Promise<void> {
  const { registry } = store;
  const [view, health] = await Promise.all([registry.view(), registry.slotHealth()]);
  const report = statusReport(view, health);
  gauge("damaged_records", "Records in the store that cannot be read, as this master found them").set(
    (await store.damaged()).length,
  );
  const workers = gauge("workers", "Workers by state", ["state"]);
  for (const state of ["online", "silent", "draining", "offline"])
    workers.set({ state }, report.workers.filter((worker) => worker.state === state).length);
  const desired = gauge("slots_desired", "Slots that there should be", ["automation"]);
  const running = gauge("slots_running", "Slots that run", ["automation"]);
  const restarts = gauge("slot_restarts", "Restarts of the slots that there are", ["automation"]);
  for (const { name, slots: wanted, running: run, slot_list: list } of report.automations) {
    desired.set({ automation: name }, wanted ?? 0);
    running.set({ automation: name }, run);
    restarts.set(
      { automation: name },
      list.reduce((sum, slot) => sum + slot.restarts, 0),
    );
  }
}

async function streams({ streams: store }: Store, gauge: MakeGauge): Promise<void> {
  const names = await store.list();
  gauge("streams", "Streams that there are").set(names.length);
  const length = gauge("stream_length", "Entries in the stream", ["stream"]);
  const entries = gauge("stream_entries", "Entries of all time, by what became of them", ["stream", "what"]);
  await each(names, async (stream) => {
    const stats = await store.stats({ stream });
    if (stats === undefined) return;
    length.set({ stream }, stats.length);
    for (const what of ["pushed", "popped", "trimmed", "expired", "invalid"] as const)
      entries.set({ stream, what }, stats[what]);
  });
}

async function queues({ queues: store }: Store, gauge: MakeGauge): Promise<void> {
  const names = await store.list();
  gauge("queues", "Queues that there are").set(names.length);
  const tasks = gauge("queue_tasks", "Tasks by state", ["queue", "state"]);
  const totals = gauge("queue_tasks_of_all_time", "Tasks of all time, by what became of them", [
    "queue",
    "what",
  ]);
  await each(names, async (queue) => {
    const stats = await store.stats({ queue });
    if (stats === undefined) return;
    for (const state of TASK_STATES) tasks.set({ queue, state }, stats.counts[state]);
    for (const [what, count] of Object.entries(stats.totals)) totals.set({ queue, what }, count);
  });
}

async function pools({ pools: store }: Store, gauge: MakeGauge): Promise<void> {
  const names = await store.list();
  gauge("pools", "Pools that there are").set(names.length);
  const items = gauge("pool_items", "Items by state", ["pool", "state"]);
  await each(names, async (pool) => {
    const stats = await store.stats({ pool });
    if (stats === undefined) return;
    for (const state of ITEM_STATES) items.set({ pool, state }, stats.counts[state]);
  });
}

/** One that cannot be read has no figures. */
async function each(names: readonly string[], look: (name: string) => Promise<void>): Promise<void> {
  await eachAlone(names.slice(0, MAX_LOOKS), look, () => undefined);
}
