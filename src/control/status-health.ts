// How a slot's heals and its circuit are shown.
import type { HealRecord, SlotHealth } from "../protocol/health.ts";
import { type DesiredAutomation, recyclesOf, type SlotRef } from "../protocol/spec.ts";
import type { SlotStatus } from "../protocol/status.ts";

/** One heal in `fleet status --json`. */
export interface HealLine {
  at: number;
  cause: HealRecord["cause"];
  /** Another slot of the same process was the cause. */
  collateral: boolean;
  exit_code: number | null;
  signal: string | null;
  error: string | null;
  lived_seconds: number;
}

export interface CircuitLine {
  since: number;
  reason: string;
}

export function healLine({ at, cause, collateral, exitCode, signal, error, livedMs }: HealRecord): HealLine {
  return { at, cause, collateral, exit_code: exitCode, signal, error, lived_seconds: livedMs / 1000 };
}

/** As a worker reports it of the last heal. */
export function causeOf({ cause, collateral }: HealRecord): string {
  return collateral ? `${cause} (collateral)` : cause;
}

/**
 * The slot's open circuit. Its worker's word counts, where one has the slot; else what was kept, unless somebody has recycled since:
 * what is kept is written anew only at the next heal.
 */
export function circuitOf(
  { slotId }: SlotRef,
  desired: DesiredAutomation | undefined,
  health: SlotHealth | undefined,
  reported?: SlotStatus,
): CircuitLine | null {
  const kept = health?.circuit;
  if (kept && (reported !== undefined || (desired && recyclesOf(desired, slotId) === kept.recycles)))
    return { since: kept.since, reason: kept.reason };
  return reported === undefined ? null : { since: reported.since, reason: reported.reason ?? "" };
}
