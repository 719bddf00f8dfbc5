/** Desired state of one automation, as it stands in the store. */
export interface DesiredAutomation {
  slots: number;
  /** Config in its input form (JSON); each child parses it with the automation's own schema. */
  config: unknown;
  paused: boolean;
  /** Counts the recycles on request; each gives all slots a fresh process and closes open circuits. */
  recycles?: number;
  /** The same for single slots, by slot id. */
  slotRecycles?: Readonly<Record<string, number>>;
  /** Grows by one with every change and never goes back. */
  generation: number;
  /** The `deploy` entry that was applied last, as canonical JSON per part; an unchanged entry never overwrites. */
  deployed: { slots?: string; config?: string };
  /** Who changed each part last: `"deploy"`, or whoever did it by command line or API. */
  changedBy: { slots: string; config: string };
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
