import { byName } from "../internal/by-name.ts";
import type { Assignments, SlotLease } from "../protocol/spec.ts";
import type { DamageBook, DamagedRecord, Place } from "./damage.ts";
import { assignments } from "./records.ts";

/** Those that are kept; where they cannot be read, who holds which slot is as good: nothing moves, and the leader writes them anew. */
export function assignmentsOf(
  book: DamageBook,
  place: Place,
  text: string,
  { leases, now }: { leases: readonly SlotLease[]; now: number },
): { good: Assignments; damaged: DamagedRecord[] } {
  const { good, damaged } = book.look(place, [["all", text]], assignments);
  const kept = good[0]?.[1];
  return { good: kept === undefined ? held(leases, now) : byName(Object.entries(kept)), damaged };
}

function held(leases: readonly SlotLease[], now: number): Assignments {
  const found = byName<Record<string, string>>([]);
  for (const { automation, slotId, workerId, expiresAt } of leases)
    if (expiresAt > now) (found[automation] ??= {})[slotId] = workerId;
  return found;
}
