// What to do about records of the store that cannot be read: each costs what it is of, and nothing else.
import { FleetError, isFleetError } from "../errors.ts";
import { byName } from "../internal/by-name.ts";
import type { DesiredAutomation } from "../protocol/spec.ts";
import type { DamagedRecord } from "../store/damage.ts";
import type { FleetView } from "../store/store.ts";

/** How many are looked into at once. */
const AT_ONCE = 16;

type Seen = Pick<FleetView, "damaged">;

/** Names of the automations whose desired state is there and cannot be read. */
export function unreadable({ damaged }: Seen): string[] {
  return damaged.filter(({ kind }) => kind === "desired state").map(({ name }) => name);
}

/** Throws `FLEET_CONFLICT` where the desired state of `name` is there and cannot be read: nobody writes over it. */
export function refuseUnreadable(name: string, view: Seen): void {
  const found = view.damaged.find((record) => record.kind === "desired state" && record.name === name);
  if (found === undefined) return;
  throw new FleetError(
    "FLEET_CONFLICT",
    `the desired state of "${name}" cannot be read (${found.reason}; ${found.where}), so nothing was changed; ${found.remedy}`,
  );
}

/**
 * What is wanted, as far as placement needs it. Slots of an automation whose desired state cannot be read are wanted as they are assigned,
 * until it is mended: workers go on with what they knew of it last.
 */
export function placeable({
  desired,
  assignments,
  damaged,
}: Pick<FleetView, "desired" | "assignments" | "damaged">): Record<
  string,
  Pick<DesiredAutomation, "slots" | "paused">
> {
  const wanted = byName<Pick<DesiredAutomation, "slots" | "paused">>(Object.entries(desired));
  for (const name of unreadable({ damaged })) {
    const slots = Object.hasOwn(assignments, name) ? Object.keys(assignments[name] ?? {}).map(Number) : [];
    if (slots.length > 0) wanted[name] = { slots: Math.max(...slots) + 1, paused: false };
  }
  return wanted;
}

/** What this worker knew last of what cannot be read now. */
export function knownBefore(view: FleetView, before: FleetView | undefined): FleetView {
  const lost = unreadable(view).filter((name) => before !== undefined && Object.hasOwn(before.desired, name));
  if (before === undefined || lost.length === 0) return view;
  const kept = lost.map((name) => [name, before.desired[name] as DesiredAutomation] as const);
  return { ...view, desired: byName([...Object.entries(view.desired), ...kept]) };
}

/** In one line, for people. */
export function damageWords({ kind, name, where, reason, remedy }: DamagedRecord): string {
  return `unreadable ${kind} "${name}": ${reason} (${where}); ${remedy}`;
}

/** Whether a call failed for what it was about, and not because the store is away or closed. */
export function isOwnFault(error: unknown): boolean {
  return !isFleetError(error) || (!error.retryable && error.code !== "FLEET_CLOSED");
}

/**
 * Looks into each by itself, some at once: what cannot be read of one is told to `onFault`, and undefined in the answer. Throws where the
 * store itself is at fault.
 */
export async function eachAlone<N, T>(
  all: readonly N[],
  look: (one: N) => Promise<T>,
  onFault: (one: N, error: unknown) => void,
): Promise<(T | undefined)[]> {
  const found: (T | undefined)[] = all.map(() => undefined);
  // Shared: each of those at work takes the next that nobody has taken.
  const left = all.entries();
  const work = async () => {
    for (const [at, one] of left) {
      try {
        found[at] = await look(one);
      } catch (error) {
        if (!isOwnFault(error)) throw error;
        onFault(one, error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, all.length) }, work));
  return found;
}
