// Whether a queue's tasks wait for a rate limit: in words.
import type { CheckedRateLimit } from "../contracts/rate-limit.ts";
import type { Manifest } from "../protocol/manifest.ts";
import type { LimitRecord } from "../store/state-store.ts";
import type { Store } from "../store/store.ts";
import type { Finding } from "./explain-automation.ts";
import { duration } from "./table.ts";

/** Most keys of a limit that are looked at. */
const MOST_KEYS = 100_000;

/** The rate limits of queues, as workers have published them. A worker of an earlier version publishes none. */
export function limitsOf(
  manifests: Readonly<Record<string, readonly Manifest[]>>,
): Map<string, CheckedRateLimit> {
  const found = new Map<string, CheckedRateLimit>();
  for (const { tasks } of Object.values(manifests).flat()) {
    const limit = tasks?.options.rateLimit ?? null;
    if (tasks !== null && limit !== null) found.set(tasks.queue, limit);
  }
  return found;
}

/** Undefined where the queue has no rate limit, or a permit could be had at once. */
export async function findPermits(store: Store, queue: string, now: number): Promise<Finding | undefined> {
  const limit = limitsOf(await store.registry.manifests()).get(queue);
  if (limit === undefined) return undefined;
  const records = await store.state.limits.show({ name: limit.name, n: MOST_KEYS });
  return waitsForPermits(
    limit,
    records.find(({ key }) => key === limit.key),
    now,
  );
}

export function waitsForPermits(
  { name, key, cost, windows }: CheckedRateLimit,
  record: LimitRecord | undefined,
  now: number,
): Finding | undefined {
  if (record === undefined || record.windows.every(({ available }) => available >= cost)) return undefined;
  const of = windows.map(({ limit, perMs }) => `${limit} per ${perMs / 1000} s`).join(", ");
  const which = key === "" ? `"${name}"` : `"${name}", key "${key}"`;
  return {
    code: "rate-limit",
    message: `tasks wait for permits of rate limit ${which} (${of}); what is taken and reserved of it is over in ${duration(record.freeAt - now)}`,
  };
}
