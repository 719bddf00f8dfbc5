/**
 * What people ask of an automation, as changes of its desired state. The changes are pure: each answers the next desired state, one
 * generation on, or undefined where things stand so already. `changeDesired` writes one, over whatever others write meanwhile.
 */
import { integer } from "../contracts/options.ts";
import { FleetError } from "../errors.ts";
import type { DesiredAutomation } from "../protocol/spec.ts";
import type { Registry } from "../store/store.ts";
import { refuseUnreadable } from "./damaged.ts";

export const MAX_SLOTS = 10_000;

export type Change = (desired: DesiredAutomation) => DesiredAutomation | undefined;

/** So many slots, 0 to 10 000. `by` is kept as who set the number. Throws `FLEET_OPTION_INVALID`. */
export function scale(desired: DesiredAutomation, count: number, by: string): DesiredAutomation | undefined {
  const slots = integer({ min: 0, max: MAX_SLOTS })(count, "scale: slots");
  if (slots === desired.slots) return undefined;
  return next(desired, { slots, changedBy: { ...desired.changedBy, slots: by } });
}

/** No slot runs until it is resumed; how many there should be is kept. */
export function pause(desired: DesiredAutomation): DesiredAutomation | undefined {
  return desired.paused ? undefined : next(desired, { paused: true });
}

export function resume(desired: DesiredAutomation): DesiredAutomation | undefined {
  return desired.paused ? next(desired, { paused: false }) : undefined;
}

/**
 * A fresh process for all slots, or for one alone, and no open circuit any more. Slots with an equal count of recycles share a process,
 * so each recycle goes above every count that was there: nobody moves into a process that is not fresh, and a recycle of all
 * brings single slots back together with the others. Throws `FLEET_OPTION_INVALID` for a slot that is not there.
 */
export function recycle(desired: DesiredAutomation, slotId?: number): DesiredAutomation | undefined {
  const { slots, recycles = 0, slotRecycles = {} } = desired;
  const above = Math.max(0, ...Object.values(slotRecycles)) + 1;
  if (slotId === undefined)
    return slots === 0 ? undefined : next(desired, { recycles: recycles + above, slotRecycles: {} });
  checkSlot(slotId, slots);
  return next(desired, { slotRecycles: { ...slotRecycles, [slotId]: above } });
}

function checkSlot(slotId: number, slots: number): void {
  if (Number.isInteger(slotId) && slotId >= 0 && slotId < slots) return;
  const there =
    slots === 0 ? "there are no slots" : slots === 1 ? "there is slot 0 only" : `slots are 0 to ${slots - 1}`;
  throw new FleetError("FLEET_OPTION_INVALID", `recycle: there is no slot ${slotId}; ${there}`);
}

function next(desired: DesiredAutomation, changes: Partial<DesiredAutomation>): DesiredAutomation {
  return { ...desired, ...changes, generation: desired.generation + 1 };
}

export type Changed =
  | { outcome: "changed"; before: DesiredAutomation; desired: DesiredAutomation }
  /** It stood so already; nothing was written. */
  | { outcome: "unchanged"; desired: DesiredAutomation }
  /** Nothing is desired under that name; `names` are those that there are. */
  | { outcome: "unknown"; names: string[] };

/** Applies `change` to what is desired of `name`, again where somebody else wrote meanwhile. Throws `FLEET_STORE_BUSY` when that never ends. */
export async function changeDesired(
  registry: Pick<Registry, "view" | "putDesired">,
  name: string,
  change: Change,
): Promise<Changed> {
  for (let tries = 0; tries < 20; tries++) {
    const view = await registry.view();
    refuseUnreadable(name, view);
    const { desired: all } = view;
    const before = Object.hasOwn(all, name) ? all[name] : undefined;
    if (before === undefined) return { outcome: "unknown", names: Object.keys(all).toSorted() };
    const desired = change(before);
    if (desired === undefined) return { outcome: "unchanged", desired: before };
    const outcome = await registry.putDesired({ name, desired, expected: before.generation });
    if (outcome === "stored") return { outcome: "changed", before, desired };
  }
  throw new FleetError(
    "FLEET_STORE_BUSY",
    `the desired state of "${name}" kept changing while it was written; nothing was changed`,
    { retryable: true },
  );
}
