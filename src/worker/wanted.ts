import type { StopReason } from "../automation/context.ts";
import { canonicalJson } from "../internal/canonical.ts";
import { canarySlots, effectiveConfig } from "../protocol/config.ts";
import type { Program, ProgramAutomation } from "../protocol/program.ts";
import {
  type DesiredAutomation,
  recyclesOf,
  slotKey,
  type SlotLease,
  type SlotRef,
} from "../protocol/spec.ts";
import type { FleetView, HeldLease } from "../store/store.ts";
import { hostKeyOf, type WantedSlot } from "./reconcile.ts";

export interface Plan {
  /** Assigned here and runnable, but the lease is not held yet. */
  claim: SlotRef[];
  /** Hosts that those slots will run on. */
  awaited: Set<string>;
  /** Assigned, runnable and held. */
  wanted: WantedSlot[];
  /** Held leases that this worker should give up once their slot has ended, and why. */
  unwanted: Map<string, StopReason>;
}

/** What of the fleet's view concerns this worker. Pure. */
export function planFor(args: {
  workerId: string;
  view: Pick<FleetView, "desired" | "assignments">;
  program: Program;
  held: readonly HeldLease[];
  draining: boolean;
  /** Of this worker: overrides of config go by them. */
  labels: Readonly<Record<string, string>>;
  /** Recycles by limit, per automation (or per slot, with `isolate: "slot"`). */
  epochs: ReadonlyMap<string, number>;
  circuitOpen: (slot: SlotRef, code: { version: string; recycles: number }) => boolean;
}): Plan {
  const { workerId, view, draining } = args;
  const known = new Map(args.program.automations.map((automation) => [automation.manifest.name, automation]));
  const held = new Map(args.held.map((lease) => [slotKey(lease), lease]));
  const plan: Plan = { claim: [], awaited: new Set(), wanted: [], unwanted: new Map() };
  const assigned = new Set<string>();

  for (const [automation, slots] of Object.entries(view.assignments)) {
    const desired = view.desired[automation];
    const program = known.get(automation);
    if (desired === undefined || program === undefined || desired.paused || draining) continue;
    for (const [id, worker] of Object.entries(slots)) {
      const slotId = Number(id);
      if (worker !== workerId || slotId >= desired.slots) continue;
      const key = slotKey({ automation, slotId });
      assigned.add(key);
      const lease = held.get(key);
      if (lease === undefined) {
        plan.claim.push({ automation, slotId });
        plan.awaited.add(hostKeyOf(placeOf(program, { automation, slotId }, desired, args.epochs)));
      } else plan.wanted.push(wantedSlot(program, lease, desired, args));
    }
  }
  for (const [key, { automation }] of held) {
    if (!assigned.has(key))
      plan.unwanted.set(
        key,
        draining ? "drain" : view.desired[automation]?.paused === true ? "paused" : "scaled",
      );
  }
  return plan;
}

function wantedSlot(
  program: ProgramAutomation,
  lease: HeldLease,
  desired: DesiredAutomation,
  { epochs, labels, circuitOpen }: Pick<Parameters<typeof planFor>[0], "epochs" | "labels" | "circuitOpen">,
): WantedSlot {
  const { version, liveConfig } = program.manifest;
  const recycles = recyclesOf(desired, lease.slotId);
  const { automation, slotId, build, isolate } = placeOf(program, lease, desired, epochs);
  const { config, configKey } = configOf(desired, labels, slotId);
  // Field by field: this is done for each slot several times a second.
  return {
    automation,
    slotId,
    build,
    isolate,
    token: lease.token,
    version,
    config,
    configKey,
    generation: desired.generation,
    slotCount: desired.slots,
    liveConfig,
    circuitOpen: circuitOpen(lease, { version, recycles }),
  };
}

/** Worked out once for each desired state, not at every look. */
const configs = new WeakMap<DesiredAutomation, Map<string, Pick<WantedSlot, "config" | "configKey">>>();

function configOf(
  desired: DesiredAutomation,
  labels: Readonly<Record<string, string>>,
  slotId: number,
): Pick<WantedSlot, "config" | "configKey"> {
  const known = configs.get(desired) ?? new Map<string, Pick<WantedSlot, "config" | "configKey">>();
  configs.set(desired, known);
  const kind = `${slotId < canarySlots(desired)} ${canonicalJson(labels)}`;
  const found = known.get(kind);
  if (found !== undefined) return found;
  const config = effectiveConfig(desired, { labels, slotId });
  const made = { config, configKey: canonicalJson(config ?? null) };
  known.set(kind, made);
  return made;
}

/** Keys of all hosts that slots of this program would run on, wherever they are assigned now. */
export function possibleHosts(
  program: Program,
  desired: FleetView["desired"],
  epochs: ReadonlyMap<string, number>,
): Set<string> {
  const keys = new Set<string>();
  for (const entry of program.automations) {
    const automation = entry.manifest.name;
    const wanted = desired[automation];
    if (wanted === undefined || wanted.paused) continue;
    for (let slotId = 0; slotId < wanted.slots; slotId++)
      keys.add(hostKeyOf(placeOf(entry, { automation, slotId }, wanted, epochs)));
  }
  return keys;
}

/** What decides on which host a slot runs. */
function placeOf(
  program: ProgramAutomation,
  { automation, slotId }: SlotRef,
  desired: DesiredAutomation,
  epochs: ReadonlyMap<string, number>,
): Pick<WantedSlot, "automation" | "slotId" | "build" | "isolate"> {
  const epoch = epochs.get(epochKeyOf(program, { automation, slotId })) ?? 0;
  const build = `${program.manifest.version}#${recyclesOf(desired, slotId)}.${epoch}`;
  return { automation, slotId, build, isolate: program.isolate };
}

/** What is replaced as one: the automation's process of this worker, or the slot's. */
export function epochKeyOf(program: Pick<ProgramAutomation, "isolate" | "manifest">, slot: SlotRef): string {
  return program.isolate === "slot" ? slotKey(slot) : program.manifest.name;
}

/** Of slots that are to be claimed, those that the store believes are held by this very worker. Pure. */
export function ownButNotHeld(
  claim: readonly SlotRef[],
  leases: readonly SlotLease[],
  incarnation: string,
): HeldLease[] {
  const claimed = new Set(claim.map((slot) => slotKey(slot)));
  return leases
    .filter((lease) => lease.incarnation === incarnation && claimed.has(slotKey(lease)))
    .map(({ automation, slotId, token }) => ({ automation, slotId, token }));
}
