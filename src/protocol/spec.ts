/** Desired state of one automation, as it stands in the store. */
export interface DesiredAutomation {
  slots: number;
  /** Config in its input form (JSON); each child parses it with the automation's own schema. */
  config: unknown;
  /** Changes of it for workers with certain labels, applied in this order; left out: none. */
  overrides?: readonly ConfigOverride[];
  /** A config on trial in some of the slots; left out or null: none. */
  canary?: Canary | null;
  /** The last canary, where it was stopped by itself and nothing of the config has changed since; left out or null: none. */
  canaryStopped?: StoppedCanary | null;
  paused: boolean;
  /** Counts the recycles on request; each gives all slots a fresh process and closes open circuits. */
  recycles?: number;
  /** The same for single slots, by slot id. */
  slotRecycles?: Readonly<Record<string, number>>;
  /** Grows by one with every change and never goes back. */
  generation: number;
  /** The `deploy` entry that was applied last, as canonical JSON per part; an unchanged entry never overwrites. */
  deployed: { slots?: string; config?: string; overrides?: string };
  /** Who changed each part last: `"deploy"`, or whoever did it by command line or API. Of overrides left out while nobody has set any. */
  changedBy: { slots: string; config: string; overrides?: string };
}

/** A config for workers that bear all of these labels: a merge patch (RFC 7396) on the automation's config. */
export interface ConfigOverride {
  labels: Readonly<Record<string, string>>;
  config: unknown;
}

/** A config on trial in the slots with the lowest ids; the others keep the automation's own. */
export interface Canary {
  /** How many slots: a share of all (above 0, at most 1; rounded up), or a number. */
  size: { share: number } | { slots: number };
  config: unknown;
  /** Store time at which it began. */
  since: number;
  /** Generation with which it began. */
  generation: number;
  by: string;
}

export interface StoppedCanary {
  /** Store time. */
  at: number;
  /** Generation that its end made. */
  generation: number;
  reason: string;
}

export interface SlotRef {
  automation: string;
  slotId: number;
}

/** Which worker should run which slot: a hint for workers; the lease is the truth. */
export type Assignments = { readonly [automation: string]: { readonly [slotId: string]: string } };

export interface SlotLease extends SlotRef {
  workerId: string;
  /** The worker process that holds it: one id has a new incarnation after each restart. */
  incarnation: string;
  /** Fencing token: store microseconds at the claim, always growing, as decimal text. */
  token: string;
  /** Store time at which it ends unless renewed. */
  expiresAt: number;
}

export function slotKey(slot: SlotRef): string {
  return `${slot.automation}/${slot.slotId}`;
}

/** How often a slot was recycled on request: with its automation, or alone. */
export function recyclesOf(
  desired: Pick<DesiredAutomation, "recycles" | "slotRecycles">,
  slotId: number,
): number {
  return (desired.recycles ?? 0) + (desired.slotRecycles?.[slotId] ?? 0);
}
