// What workers have published of the contracts that their automations use.
import type { UseDirection, ContractUse } from "../protocol/manifest.ts";
import { workerState, type WorkerRecord } from "../protocol/status.ts";
import type { Store } from "../store/store.ts";

/** A declared use of this contract: of live workers first, then of those that started last. */
export async function publishedUse(
  store: Store,
  kind: "pool" | "topic",
  name: string,
): Promise<ContractUse | undefined> {
  const [manifests, { workers, now }] = await Promise.all([
    store.registry.manifests(),
    store.registry.view(),
  ]);
  const live = (worker: WorkerRecord) => (workerState(worker, now) === "offline" ? 0 : 1);
  return workers
    .toSorted((a, b) => live(b) - live(a) || b.startedAt - a.startedAt)
    .flatMap(({ id }) => manifests[id] ?? [])
    .flatMap(({ uses }) => Object.values(uses as Record<UseDirection, readonly ContractUse[]>).flat())
    .find((use) => use.kind === kind && use.name === name && use.schema !== null);
}
