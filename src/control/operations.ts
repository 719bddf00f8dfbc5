/**
 * What people ask of a worker: to take nothing new, to drain, to be forgotten. Each writes to the store, and the worker and the leader
 * follow; none of them speaks to a worker. An id that is no worker's is answered with those that there are.
 */
import { number, text } from "../contracts/options.ts";
import type { WorkerRecord } from "../protocol/status.ts";
import { workerState } from "../protocol/status.ts";
import type { FleetView, Registry } from "../store/store.ts";

/** Seconds that a drain by request may take, unless it is said. */
export const DRAIN_SECONDS = 60;
export const MAX_DRAIN_SECONDS = 86_400;

const seconds = number({ min: 0, max: MAX_DRAIN_SECONDS });
const who = text({ max: 256 });

type Door = Pick<Registry, "view" | "setWish">;

export type Asked =
  | { outcome: "changed"; worker: WorkerRecord }
  /** It stood so already; nothing was written. */
  | { outcome: "unchanged"; worker: WorkerRecord }
  /** There is nothing to drain. */
  | { outcome: "offline"; worker: WorkerRecord }
  | { outcome: "unknown"; ids: string[] };

/** From now on no slot is placed on this worker; what it has stays. Kept by its id until it is taken back, also over restarts. */
export async function cordon(
  registry: Door,
  workerId: string,
  by: string,
): Promise<Exclude<Asked, { outcome: "offline" }>> {
  who(by, "cordon: by");
  const view = await registry.view();
  const worker = find(view, workerId);
  if (worker === undefined) return unknown(view);
  if (worker.wish?.cordon !== undefined) return { outcome: "unchanged", worker };
  const wish = { by, at: view.now };
  await registry.setWish({ workerId, kind: "cordon", wish });
  return { outcome: "changed", worker: { ...worker, wish: { ...worker.wish, cordon: wish } } };
}

/** Takes a cordon back. It also takes back that of a worker of which there is no record any more; that is `"unknown"` all the same. */
export async function uncordon(
  registry: Door,
  workerId: string,
): Promise<Exclude<Asked, { outcome: "offline" }>> {
  const outcome = await registry.setWish({ workerId, kind: "cordon", wish: null });
  const view = await registry.view();
  const worker = find(view, workerId);
  if (worker === undefined) return unknown(view);
  return { outcome: outcome === "stored" ? "changed" : "unchanged", worker };
}

/**
 * The worker's process ends its slots, gives them back and exits, as at a signal, after `deadlineSeconds` (0 to 86 400, default 60) by force.
 * Meant for the process that bears the id now: one that is started in its place takes slots, unless the worker is cordoned. Throws
 * `FLEET_OPTION_INVALID`.
 */
export async function drain(
  registry: Door,
  workerId: string,
  { deadlineSeconds = DRAIN_SECONDS, by }: { deadlineSeconds?: number; by: string },
): Promise<Asked> {
  const deadlineMs = Math.round(seconds(deadlineSeconds, "drain: deadlineSeconds") * 1000);
  who(by, "drain: by");
  const view = await registry.view();
  const worker = find(view, workerId);
  if (worker === undefined) return unknown(view);
  if (workerState(worker, view.now) === "offline") return { outcome: "offline", worker };
  if (worker.draining || worker.wish?.drain !== undefined) return { outcome: "unchanged", worker };
  const wish = { by, at: view.now, incarnation: worker.incarnation, deadlineMs };
  await registry.setWish({ workerId, kind: "drain", wish });
  return { outcome: "changed", worker: { ...worker, wish: { ...worker.wish, drain: wish } } };
}

export type Removed = { outcome: "removed" | "alive" } | { outcome: "unknown"; ids: string[] };

/** Forgets an offline worker at once, with all that was asked of it. A live one is refused: drain it first. */
export async function remove(
  registry: Pick<Registry, "view" | "removeWorker">,
  workerId: string,
): Promise<Removed> {
  const outcome = await registry.removeWorker({ workerId });
  return outcome === "unknown" ? unknown(await registry.view()) : { outcome };
}

function find({ workers }: FleetView, workerId: string): WorkerRecord | undefined {
  return workers.find(({ id }) => id === workerId);
}

function unknown({ workers }: FleetView): { outcome: "unknown"; ids: string[] } {
  return { outcome: "unknown", ids: workers.map(({ id }) => id).toSorted() };
}
