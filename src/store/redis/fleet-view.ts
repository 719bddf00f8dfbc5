import type { Assignments, DesiredAutomation, SlotLease } from "../../protocol/spec.ts";
import type { SlotStatus, WorkerInfo, WorkerRecord } from "../../protocol/status.ts";
import type { FleetView } from "../store.ts";
import { pairs } from "./parts.ts";

/** What `fleet-view.lua` answers; hashes as field, value, … */
export type ViewReply = [
  now: string,
  revision: string,
  assignments: string,
  leader: string,
  workers: string[],
  beats: string[],
  observed: string[],
  desired: string[],
  leases: string[],
];

export function viewOf(reply: ViewReply): FleetView {
  const [now, revision, assignments, leader, workers, beats, observed, desired, leases] = reply;
  return {
    now: Number(now),
    revision: Number(revision),
    workers: workerRecords(workers, beats, observed),
    desired: hashOf(
      pairs(desired),
      (value) => JSON.parse(value.slice(value.indexOf("|") + 1)) as DesiredAutomation,
    ),
    assignments: JSON.parse(assignments) as Assignments,
    leases: pairs(leases).map(leaseOf).toSorted(bySlot),
    leader: leaderOf(leader, Number(now)),
  };
}

export function hashOf<T>(
  fields: readonly [string, string][],
  read: (value: string) => T,
): Record<string, T> {
  return Object.fromEntries(fields.map(([field, value]) => [field, read(value)]));
}

function workerRecords(workers: string[], beats: string[], observed: string[]): WorkerRecord[] {
  const beatOf = new Map(pairs(beats));
  const slotsOf = new Map(pairs(observed));
  return pairs(workers)
    .map(([id, info]): WorkerRecord => {
      const [generation, lastSeenAt, expiresAt] = (beatOf.get(id) ?? "0|0|0|").split("|").map(Number);
      return {
        ...(JSON.parse(info) as WorkerInfo),
        generation: generation as number,
        lastSeenAt: lastSeenAt as number,
        expiresAt: expiresAt as number,
        slots: JSON.parse(slotsOf.get(id) ?? "[]") as SlotStatus[],
      };
    })
    .toSorted((a, b) => compare(a.id, b.id));
}

function leaseOf([slot, value]: [string, string]): SlotLease {
  const [, workerId, incarnation, token, expiresAt] = /^(.*)\|([^|]*)\|(\d+)\|(\d+)$/s.exec(value) ?? [];
  const at = slot.lastIndexOf("/");
  return {
    automation: slot.slice(0, at),
    slotId: Number(slot.slice(at + 1)),
    workerId: workerId as string,
    incarnation: incarnation as string,
    token: token as string,
    expiresAt: Number(expiresAt),
  };
}

function bySlot(a: SlotLease, b: SlotLease): number {
  return compare(a.automation, b.automation) || a.slotId - b.slotId;
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function leaderOf(value: string, now: number): string | null {
  const [, candidate, expiresAt] = /^(.*)\|\d+\|(\d+)$/s.exec(value) ?? [];
  return candidate !== undefined && Number(expiresAt) > now ? candidate : null;
}
