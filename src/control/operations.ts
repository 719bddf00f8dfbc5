/**
 * What people ask of a worker: to take nothing new, to drain, to be forgotten. Each writes to the store, and the worker and the leader
 * follow; none of them speaks to a worker. An id that is no worker's is answered with those that there are.
 */
import { number, text } from "../contracts/options.ts";
import type { DrainWish, WorkerRecord } from "../protocol/status.ts";
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

/** It drained already, and has the new deadline from now on. */
export type Drained = Asked | { outcome: "moved"; worker: WorkerRecord };

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
 * Meant for the process that bears the id now: one that is started in its place takes slots, unless the worker is cordoned. Where that
 * drains already, by request or by a signal, a `deadlineSeconds` that is given and another takes the place of the one before, counted from
 * now, until the end is forced. Throws `FLEET_OPTION_INVALID`.
 */
export async function drain(
  registry: Door,
  workerId: string,
  { deadlineSeconds, by }: { deadlineSeconds?: number; by: string },
): Promise<Drained> {
  const wanted = seconds(deadlineSeconds ?? DRAIN_SECONDS, "drain: deadlineSeconds");
  const deadlineMs = Math.round(wanted * 1000);
  who(by, "drain: by");
  const view = await registry.view();
  const worker = find(view, workerId);
  if (worker === undefined) return unknown(view);
  if (workerState(worker, view.now) === "offline") return { outcome: "offline", worker };
  const drains = worker.draining || worker.wish?.drain !== undefined;
  const standing = deadlineOf(worker);
  const moves = deadlineSeconds !== undefined && standing !== undefined && standing !== deadlineMs;
  if (drains && (!moves || worker.drain?.forced === true)) return { outcome: "unchanged", worker };
  const wish: DrainWish = { by, at: view.now, incarnation: worker.incarnation, deadlineMs };
  await registry.setWish({ workerId, kind: "drain", wish });
  const asked = { ...worker, wish: { ...worker.wish, drain: wish } };
  return { outcome: drains ? "moved" : "changed", worker: asked };
}

/** How long a drain may take, in ms: as it was asked for last, or as the worker says of one by a signal. Undefined where nobody says. */
export function deadlineOf({ wish, drain: own }: WorkerRecord): number | undefined {
  return wish?.drain?.deadlineMs ?? (own === undefined ? undefined : own.until - own.since);
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
