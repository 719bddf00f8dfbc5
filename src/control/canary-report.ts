// How a canary fares, and what is told of it. Pure.
import { canarySlots } from "../protocol/config.ts";
import type { SlotHealth } from "../protocol/health.ts";
import { type DesiredAutomation, slotKey } from "../protocol/spec.ts";

type Health = Readonly<Record<string, SlotHealth>>;

export interface CanaryCrashes {
  /** Slots on trial, and the crashes of them since the canary began. */
  slots: number;
  crashes: number;
  /** The same of the others. */
  otherSlots: number;
  otherCrashes: number;
}

/** A crash is a heal that the slot itself bears: not one that another slot's crash or the store brought about. */
export function canaryCrashes(name: string, desired: DesiredAutomation, health: Health): CanaryCrashes {
  const onTrial = canarySlots(desired);
  const since = desired.canary?.since ?? Number.POSITIVE_INFINITY;
  const crashes = (from: number, to: number) => {
    let count = 0;
    for (let slotId = from; slotId < to; slotId++)
      count += crashesOf(health[slotKey({ automation: name, slotId })], since);
    return count;
  };
  return {
    slots: onTrial,
    crashes: crashes(0, onTrial),
    otherSlots: desired.slots - onTrial,
    otherCrashes: crashes(onTrial, desired.slots),
  };
}

function crashesOf(health: SlotHealth | undefined, since: number): number {
  return (health?.history ?? []).filter(
    ({ at, cause, collateral }) => at >= since && !collateral && cause !== "store-lost",
  ).length;
}

/** What the report of a slot tells of its config. */
export interface SlotOnTrial {
  slot_id: number;
  state: string;
  /** Of the desired state whose config its code has, and of the one that was sent to its process last. */
  generation: number | null;
  sent_generation: number | null;
  rejected: { generation: number; reason: string } | null;
  /** Why it does not run. */
  reason: string | null;
}

export interface CanaryRefusals {
  /** Slots on trial, and which of them do not take its config, and why. */
  slots: number;
  refused: { slotId: number; reason: string }[];
  /** How many of the others do not take theirs. */
  otherSlots: number;
  otherRefused: number;
}

export function canaryRefusals(desired: DesiredAutomation, slots: readonly SlotOnTrial[]): CanaryRefusals {
  const onTrial = canarySlots(desired);
  const began = desired.canary?.generation ?? Number.POSITIVE_INFINITY;
  const refused: CanaryRefusals["refused"] = [];
  let otherRefused = 0;
  for (const slot of slots) {
    if (slot.slot_id >= desired.slots) continue;
    if (slot.slot_id >= onTrial) otherRefused += refusalOf(slot) === null ? 0 : 1;
    else {
      const reason = refusalOf(slot, began);
      if (reason !== null) refused.push({ slotId: slot.slot_id, reason });
    }
  }
  return { slots: onTrial, refused, otherSlots: desired.slots - onTrial, otherRefused };
}

/**
 * Why it does not take its config, if that was sent with this generation or later: its code has refused it and goes on with an older
 * one, or it is blocked, with nothing to go on with. Null where its code has taken it before and only newer code refuses it.
 */
function refusalOf(slot: SlotOnTrial, began?: number): string | null {
  const { state, rejected, reason, generation, sent_generation: sent } = slot;
  if (state === "blocked") return (sent ?? 0) < (began ?? 0) ? null : (reason ?? "it is blocked");
  if (rejected === null) return null;
  const another = began !== undefined && (rejected.generation < began || (generation ?? 0) >= began);
  return another ? null : rejected.reason;
}

/** A canary that runs, in `fleet status --json`. */
export interface CanaryLine {
  /** As it was asked for: a share of the slots, or a number; the other one is null. */
  share: number | null;
  count: number | null;
  /** Slots `0` to `slots - 1` are on trial. */
  slots: number;
  /** How many of them run with its config, and how many have refused it: those go on with an older one, or are blocked. */
  running: number;
  refused: number;
  crashes: number;
  other_slots: number;
  other_crashes: number;
  since: number;
  seconds: number;
  generation: number;
  by: string;
}

/** A canary that was stopped by itself, while nothing of the config has changed since. */
export interface StoppedCanaryLine {
  at: number;
  seconds: number;
  generation: number;
  reason: string;
}

export function canaryLine(
  name: string,
  desired: DesiredAutomation | undefined,
  { health, slots, now }: { health: Health; slots: readonly SlotOnTrial[]; now: number },
): CanaryLine | null {
  const canary = desired?.canary;
  if (!desired || !canary) return null;
  const crashes = canaryCrashes(name, desired, health);
  const onTrial = slots.filter(({ slot_id: id }) => id < crashes.slots);
  const { size, since, generation, by } = canary;
  return {
    share: "share" in size ? size.share : null,
    count: "slots" in size ? size.slots : null,
    slots: crashes.slots,
    running: onTrial.filter((slot) => slot.state === "running" && (slot.generation ?? 0) >= generation)
      .length,
    refused: canaryRefusals(desired, slots).refused.length,
    crashes: crashes.crashes,
    other_slots: crashes.otherSlots,
    other_crashes: crashes.otherCrashes,
    since,
    seconds: Math.max(0, now - since) / 1000,
    generation,
    by,
  };
}

export function stoppedCanaryLine(
  desired: DesiredAutomation | undefined,
  now: number,
): StoppedCanaryLine | null {
  const stopped = desired?.canaryStopped;
  if (!stopped) return null;
  const { at, generation, reason } = stopped;
  return { at, seconds: Math.max(0, now - at) / 1000, generation, reason };
}
