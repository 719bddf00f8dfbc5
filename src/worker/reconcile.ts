/**
 * What a worker must do to get from what it runs to what it should run. Pure: `now` is an argument (monotonic milliseconds), so
 * a wall clock that jumps changes nothing.
 *
 * - A slot gets at most one action per call, and carrying out all actions leaves nothing to do until something happens.
 * - A slot whose code, lease or config changed is stopped first and started only once it has ended: never two runs of one slot.
 * - New code starts in a host of its own; slots of the old version are stopped only when that host is ready. A version that
 *   cannot be loaded so costs nothing that runs.
 */
import type { StopReason } from "../automation/context.ts";
import { slotKey, type SlotRef } from "../protocol/spec.ts";

/** A slot this worker should run: it is assigned, desired, and its lease is held. */
export interface WantedSlot extends SlotRef {
  token: string;
  version: string;
  config: unknown;
  /** Equal for equal configs. */
  configKey: string;
  generation: number;
  slotCount: number;
  liveConfig: boolean;
  isolate: "automation" | "slot";
}

export interface ActualSlot extends SlotRef {
  state: "idle" | "running" | "stopping";
  /** Of the present run; of the last one when idle. */
  host: string | null;
  token: string;
  version: string;
  configKey: string;
  /** When it was told to stop. */
  stoppingSince: number;
  /** Not before then is it started again. */
  retryAt: number;
  /** The version and config that cannot run; it is not tried again with these. */
  blockedFor: string | null;
}

export interface ActualHost {
  key: string;
  state: "starting" | "ready" | "closing";
}

export type Action =
  | { do: "start-host"; host: string; automation: string }
  | { do: "close-host"; host: string }
  | { do: "kill-host"; host: string }
  | { do: "run"; host: string; slot: WantedSlot }
  | { do: "reconfigure"; host: string; slot: WantedSlot }
  | { do: "stop"; host: string; slot: SlotRef; reason: StopReason };

export interface ReconcileInput {
  wanted: readonly WantedSlot[];
  slots: readonly ActualSlot[];
  hosts: readonly ActualHost[];
  /** Why a slot that runs is not wanted any more; default "scaled". */
  unwanted: ReadonlyMap<string, StopReason>;
  /** Hosts that could not start, and when they may be tried again. */
  hostRetryAt: ReadonlyMap<string, number>;
  /** How long a slot may take to stop before its host is killed. */
  stopGraceMs: number;
}

/** Hosts are told apart by automation, version and, with `isolate: "slot"`, by slot. */
export function hostKeyOf(slot: Pick<WantedSlot, "automation" | "slotId" | "version" | "isolate">): string {
  const base = slot.isolate === "slot" ? slotKey(slot) : slot.automation;
  return `${base}@${slot.version}`;
}

export function blockKeyOf(slot: Pick<WantedSlot, "version" | "configKey">): string {
  return `${slot.version} ${slot.configKey}`;
}

export function reconcile(input: ReconcileInput, now: number): Action[] {
  const actions: Action[] = [];
  const hosts = new Map(input.hosts.map((host) => [host.key, host]));
  const wanted = new Map(input.wanted.map((slot) => [slotKey(slot), slot]));
  const actual = new Map(input.slots.map((slot) => [slotKey(slot), slot]));
  const needed = new Set<string>();
  const killed = new Set<string>();

  for (const slot of input.slots) {
    if (slot.state === "idle" || slot.host === null) continue;
    needed.add(slot.host);
    if (slot.state === "stopping" && now - slot.stoppingSince > input.stopGraceMs) killed.add(slot.host);
  }

  const startHost = (slot: WantedSlot, host: string) => {
    if (hosts.has(host) || (input.hostRetryAt.get(host) ?? 0) > now) return;
    hosts.set(host, { key: host, state: "starting" });
    actions.push({ do: "start-host", host, automation: slot.automation });
  };

  for (const [key, slot] of actual) {
    if (slot.state !== "running" || slot.host === null || killed.has(slot.host)) continue;
    const target = wanted.get(key);
    if (target === undefined) {
      actions.push({ do: "stop", host: slot.host, slot, reason: input.unwanted.get(key) ?? "scaled" });
    } else if (target.token !== slot.token) {
      actions.push({ do: "stop", host: slot.host, slot, reason: "lease-lost" });
    } else if (target.version !== slot.version) {
      const host = hostKeyOf(target);
      needed.add(host);
      startHost(target, host);
      if (hosts.get(host)?.state === "ready")
        actions.push({ do: "stop", host: slot.host, slot, reason: "reload" });
    } else if (target.configKey !== slot.configKey) {
      if (target.liveConfig) actions.push({ do: "reconfigure", host: slot.host, slot: target });
      else actions.push({ do: "stop", host: slot.host, slot, reason: "config" });
    }
  }

  for (const [key, target] of wanted) {
    const slot = actual.get(key);
    if (slot !== undefined && slot.state !== "idle") continue;
    if (slot?.blockedFor === blockKeyOf(target)) continue;
    const host = hostKeyOf(target);
    needed.add(host);
    if (slot !== undefined && slot.retryAt > now) continue;
    startHost(target, host);
    if (hosts.get(host)?.state === "ready") actions.push({ do: "run", host, slot: target });
  }

  for (const host of killed) actions.push({ do: "kill-host", host });
  for (const host of input.hosts) {
    if (host.state !== "closing" && !needed.has(host.key) && !killed.has(host.key))
      actions.push({ do: "close-host", host: host.key });
  }
  return actions;
}
