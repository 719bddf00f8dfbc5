/**
 * What a worker must do to get from what it runs to what it should run. Pure: `now` is an argument (monotonic milliseconds), so
 * a wall clock that jumps changes nothing.
 *
 * - A slot gets at most one action per call, and carrying out all actions leaves nothing to do until something happens.
 * - A slot whose code, lease or config changed is stopped first and started only once it has ended: never two runs of one slot.
 * - New code, and a recycle, start in a host of their own; slots move over only when that host is ready, and one by one, so an
 *   automation never loses all its slots together. A version that cannot be loaded so costs nothing that runs.
 * - A slot is taken down for such a move only while its automation is in `mayMove`: the fleet gives turns, so that workers do not all
 *   do so at the same time. A turn is asked for once the replacement is ready, and given back when nothing is down any more.
 * - A slot that runs tasks (`finishes`) finishes its task before it stops, however long that takes: the task's own timeout limits it, or that
 *   it gets on (`stuck`). So it needs no turn to move, as nothing is taken down.
 * - A new config is offered to the slot's process first, and what that refuses changes nothing; so with the config there is and new code. One that fits, where the automation cannot take
 *   it live, moves slot by slot too, in the process that is there.
 * - A slot without progress is told to stop; where it does not, or where its host's event loop is blocked, the host is killed.
 */
import type { StopReason } from "../automation/context.ts";
import { slotKey, type SlotRef } from "../protocol/spec.ts";

/** A slot this worker should run: it is assigned, desired, and its lease is held. */
export interface WantedSlot extends SlotRef {
  token: string;
  version: string;
  /** Version, recycles by request and recycles by limit: it runs in a host of exactly this build. */
  build: string;
  config: unknown;
  /** Equal for equal configs. */
  configKey: string;
  generation: number;
  slotCount: number;
  liveConfig: boolean;
  isolate: "automation" | "slot";
  /** The restart budget is spent: do not start it. */
  circuitOpen: boolean;
}

export interface ActualSlot extends SlotRef {
  state: "idle" | "running" | "stopping";
  /** Of the present run; of the last one when idle. */
  host: string | null;
  token: string;
  version: string;
  build: string;
  configKey: string;
  /** The last config that was offered to its run and is not what it has; null when there is none. */
  offer: ConfigOffer | null;
  /** Told to run; its code has not begun yet. */
  starting: boolean;
  /** No progress for longer than its limit. */
  stuck: boolean;
  /** Told to stop, it first finishes what it has begun. */
  finishes: boolean;
  /** Why it was told to stop. */
  stopReason: StopReason | null;
  /** Its task still runs, long after its timeout. */
  overdue: boolean;
  /** When it was told to stop. */
  stoppingSince: number;
  /** Not before then is it started again. */
  retryAt: number;
  /** The build and config that cannot run; it is not tried again with these. */
  blockedFor: string | null;
}

export interface ConfigOffer {
  configKey: string;
  /** To whom it was made: the slot's own process, or the one that it is to move to. */
  host: string;
  version: string;
  /** Not answered yet, or that the schema accepts it, or that it was refused. */
  state: "sent" | "fits" | "refused";
  /** Unless it fits, it is offered again then. */
  retryAt: number;
}

export interface ActualHost {
  key: string;
  state: "starting" | "ready" | "closing";
  /** It must go at once, and why. */
  doomed: KillCause | null;
}

export type KillCause =
  | "loop-blocked"
  | "memory"
  | "would-not-stop"
  | "start-timeout"
  | "task-timeout"
  | "store-lost";

export type Action =
  | { do: "start-host"; host: string; automation: string }
  | { do: "close-host"; host: string }
  | { do: "kill-host"; host: string; cause: KillCause; slots: readonly SlotRef[] }
  | { do: "run"; host: string; slot: WantedSlot }
  /** `live`: to take it; else to say whether it fits. */
  | { do: "offer-config"; host: string; slot: WantedSlot; live: boolean }
  | { do: "stop"; host: string; slot: SlotRef; reason: StopReason }
  | { do: "ask-turn"; automation: string }
  | { do: "end-turn"; automation: string };

export interface ReconcileInput {
  wanted: readonly WantedSlot[];
  slots: readonly ActualSlot[];
  hosts: readonly ActualHost[];
  /** Why a slot that runs is not wanted any more; default "scaled". */
  unwanted: ReadonlyMap<string, StopReason>;
  /** Hosts that could not start, and when they may be tried again. */
  hostRetryAt: ReadonlyMap<string, number>;
  /** Hosts without slots that stay all the same: leases for slots on them are being waited for. */
  awaited?: ReadonlySet<string>;
  /** Automations for which it is this worker's turn to take a slot down. */
  mayMove: ReadonlySet<string>;
  /** How long a slot may take to stop before its host is killed. */
  stopGraceMs: number;
  /** The store has been away for as long as leases last, and nothing may outlive its lease: hosts of slots that were told to stop are killed. */
  storeGone?: boolean;
}

/** Hosts are told apart by automation, build and, with `isolate: "slot"`, by slot. */
export function hostKeyOf(slot: Pick<WantedSlot, "automation" | "slotId" | "build" | "isolate">): string {
  const base = slot.isolate === "slot" ? slotKey(slot) : slot.automation;
  return `${base}@${slot.build}`;
}

export function blockKeyOf(slot: Pick<WantedSlot, "build" | "configKey">): string {
  return `${slot.build} ${slot.configKey}`;
}

export function reconcile(input: ReconcileInput, now: number): Action[] {
  const actions: Action[] = [];
  const hosts = new Map(input.hosts.map((host) => [host.key, host]));
  const wanted = new Map(input.wanted.map((slot) => [slotKey(slot), slot]));
  const actual = new Map(input.slots.map((slot) => [slotKey(slot), slot]));
  const needed = new Set(input.awaited);
  const killed = killings(input, now);
  /** Automations of which a slot is next to move; the others wait for it. */
  const moving = new Set<string>();
  /** Automations of which a slot is down: told to stop, or not running again yet. */
  const down = new Set<string>();

  for (const slot of input.slots) {
    if (slot.state === "idle" || slot.host === null) continue;
    needed.add(slot.host);
    if (!slot.finishes && (slot.state === "stopping" || slot.starting)) down.add(slot.automation);
  }

  const startHost = (slot: WantedSlot, host: string) => {
    if (hosts.has(host) || (input.hostRetryAt.get(host) ?? 0) > now) return;
    hosts.set(host, { key: host, state: "starting", doomed: null });
    actions.push({ do: "start-host", host, automation: slot.automation });
  };

  // Before any move is begun, so that a slot that has just ended is running again first.
  for (const [key, target] of wanted) {
    const slot = actual.get(key);
    if (slot !== undefined && slot.state !== "idle") continue;
    if (target.circuitOpen || slot?.blockedFor === blockKeyOf(target)) continue;
    const host = hostKeyOf(target);
    needed.add(host);
    if (slot !== undefined && slot.retryAt > now) continue;
    down.add(target.automation);
    startHost(target, host);
    if (hosts.get(host)?.state === "ready" && !killed.has(host))
      actions.push({ do: "run", host, slot: target });
  }

  for (const [key, slot] of actual) {
    if (slot.state === "idle" || slot.host === null || killed.has(slot.host)) continue;
    const { host } = slot;
    const target = wanted.get(key);
    if (slot.state === "stopping") {
      const lost =
        target === undefined ? input.unwanted.get(key) === "lease-lost" : target.token !== slot.token;
      // It may run elsewhere by now: no task is finished any more.
      const reason = lost ? "lease-lost" : slot.stuck ? "stuck" : null;
      if (reason !== null && takesItsTime(slot)) actions.push({ do: "stop", host, slot, reason });
    } else if (target === undefined) {
      actions.push({ do: "stop", host, slot, reason: input.unwanted.get(key) ?? "scaled" });
    } else if (target.token !== slot.token) {
      actions.push({ do: "stop", host, slot, reason: "lease-lost" });
    } else if (slot.stuck) {
      actions.push({ do: "stop", host, slot, reason: "stuck" });
    } else if (target.build !== slot.build) {
      const next = hostKeyOf(target);
      // The replacement must stay while any slot is still to come over.
      needed.add(next);
      if (!slot.finishes && (down.has(slot.automation) || moving.has(slot.automation))) continue;
      moving.add(slot.automation);
      startHost(target, next);
      if (hosts.get(next)?.state !== "ready") continue;
      const same = target.version === slot.version;
      if (!same || target.configKey !== slot.configKey) {
        // Other code may refuse the config: then the old code runs on. The same code starts again with what it had.
        const fit = fitOf(slot, target, next, now);
        if (fit === "ask") actions.push({ do: "offer-config", host: next, slot: target, live: false });
        if (fit !== "fits" && !(same && fit === "refused")) continue;
      }
      if (!slot.finishes && !input.mayMove.has(slot.automation)) {
        actions.push({ do: "ask-turn", automation: slot.automation });
        continue;
      }
      if (!slot.finishes) down.add(slot.automation);
      actions.push({
        do: "stop",
        host,
        slot,
        reason: same ? "recycle" : "reload",
      });
    } else if (target.configKey !== slot.configKey) {
      // Until its code runs, nobody is there to take a config, or to keep the old one.
      if (slot.starting) continue;
      const fit = fitOf(slot, target, host, now);
      if (fit === "ask") actions.push({ do: "offer-config", host, slot: target, live: target.liveConfig });
      if (fit !== "fits") continue;
      if (!slot.finishes) {
        if (down.has(slot.automation) || moving.has(slot.automation)) continue;
        moving.add(slot.automation);
        if (!input.mayMove.has(slot.automation)) {
          actions.push({ do: "ask-turn", automation: slot.automation });
          continue;
        }
        down.add(slot.automation);
      }
      actions.push({ do: "stop", host, slot, reason: "config" });
    }
  }

  for (const automation of input.mayMove)
    if (!down.has(automation)) actions.push({ do: "end-turn", automation });
  for (const [host, { cause, slots }] of killed) actions.push({ do: "kill-host", host, cause, slots });
  for (const host of input.hosts) {
    if (host.state !== "closing" && !needed.has(host.key) && !killed.has(host.key)) {
      actions.push({ do: "close-host", host: host.key });
    }
  }
  return actions;
}

/** What is known of whether this process takes the slot's config; `"ask"` where that is to be found out, or asked again. */
function fitOf(
  { offer }: ActualSlot,
  target: WantedSlot,
  host: string,
  now: number,
): "ask" | "wait" | "fits" | "refused" {
  if (offer?.host !== host || offer.configKey !== target.configKey) return "ask";
  if (offer.state === "fits") return "fits";
  if (offer.retryAt <= now) return "ask";
  return offer.state === "refused" ? "refused" : "wait";
}

/** Hosts to be killed, why, and which slots are the cause (none where it is the host's as a whole). */
function killings(input: ReconcileInput, now: number): Map<string, { cause: KillCause; slots: SlotRef[] }> {
  const killed = new Map<string, { cause: KillCause; slots: SlotRef[] }>();
  for (const host of input.hosts)
    if (host.doomed !== null) killed.set(host.key, { cause: host.doomed, slots: [] });
  for (const slot of input.slots) {
    const stops = slot.state === "stopping" && !takesItsTime(slot);
    const gone = stops && input.storeGone === true;
    const slow = stops && now - slot.stoppingSince > input.stopGraceMs;
    if (slot.host === null || (!slow && !gone && !slot.overdue)) continue;
    const cause: KillCause = slot.overdue ? "task-timeout" : gone ? "store-lost" : "would-not-stop";
    const entry = killed.get(slot.host) ?? { cause, slots: [] };
    entry.slots.push({ automation: slot.automation, slotId: slot.slotId });
    killed.set(slot.host, entry);
  }
  return killed;
}

/** It was told to stop and finishes its task. Not so where it must not, or was told because that does not get on. */
function takesItsTime({ finishes, stopReason }: ActualSlot): boolean {
  return finishes && stopReason !== "lease-lost" && stopReason !== "stuck";
}
