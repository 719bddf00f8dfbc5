import { byName } from "../../internal/by-name.ts";
import type { DesiredAutomation, SlotLease } from "../../protocol/spec.ts";
import type { SlotStatus, WorkerInfo, WorkerRecord } from "../../protocol/status.ts";
import type { DamageBook } from "../damage.ts";
import { assignmentsOf } from "../read-assignments.ts";
import { automationName, desiredAutomation, slotName, slotReports, workerInfo } from "../records.ts";
import type { FleetView } from "../store.ts";
import { readWish, type Wishes, withWish } from "../wish.ts";
import type { FleetKeys } from "./keys.ts";
import { pairs } from "./parts.ts";
import { hashPlace, keyPlace } from "./places.ts";

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
  wishes: string[],
];

export function viewOf(reply: ViewReply, keys: FleetKeys, book: DamageBook): FleetView {
  const [now, revision, assigned, leader, workers, beats, observed, desired, held, wishes] = reply;
  const wanted = book.look(hashPlace("desired state", keys.desired), pairs(desired), desiredOf);
  const leases = book.look(hashPlace("lease", keys.leases), pairs(held), leaseOf);
  const present = leases.good.map(([, lease]) => lease).toSorted(bySlot);
  const assignments = assignmentsOf(book, keyPlace("assignments", keys.assignments), assigned, {
    leases: present,
    now: Number(now),
  });
  const said = book.look(hashPlace("wish for a worker", keys.wishes), pairs(wishes), readWish);
  const wishOf = new Map(said.good) as Wishes;
  const infos = book.look(hashPlace("worker", keys.workers), pairs(workers), workerInfo);
  const reports = book.look(hashPlace("slots of a worker", keys.observed), pairs(observed), slotReports);
  return {
    now: Number(now),
    revision: Number(revision),
    workers: workerRecords(infos.good, beats, new Map(reports.good)).map((record) =>
      withWish(record, wishOf),
    ),
    desired: byName(wanted.good),
    assignments: assignments.good,
    leases: present,
    leader: leaderOf(leader, Number(now)),
    damaged: [wanted, leases, assignments, said, infos, reports].flatMap(({ damaged }) => damaged),
  };
}

function desiredOf(value: string, name: string): DesiredAutomation {
  automationName(name);
  return desiredAutomation(value.slice(value.indexOf("|") + 1));
}

function workerRecords(
  infos: readonly [string, WorkerInfo][],
  beats: string[],
  slotsOf: ReadonlyMap<string, SlotStatus[]>,
): WorkerRecord[] {
  const beatOf = new Map(pairs(beats));
  return infos
    .map(([id, info]): WorkerRecord => {
      const [, generation = 0, lastSeenAt = 0, expiresAt = 0] =
        /^(\d+)\|(\d+)\|(\d+)\|/.exec(beatOf.get(id) ?? "") ?? [];
      return {
        ...info,
        generation: Number(generation),
        lastSeenAt: Number(lastSeenAt),
        expiresAt: Number(expiresAt),
        slots: slotsOf.get(id) ?? [],
      };
    })
    .toSorted((a, b) => compare(a.id, b.id));
}

function leaseOf(value: string, slot: string): SlotLease {
  const { automation, slotId } = slotName(slot);
  const [, workerId, incarnation, token, expiresAt] = /^(.*)\|([^|]*)\|(\d+)\|(\d+)$/s.exec(value) ?? [];
  if (workerId === undefined || incarnation === undefined || token === undefined)
    throw new Error("it is not <worker>|<incarnation>|<token>|<expires at>");
  return { automation, slotId, workerId, incarnation, token, expiresAt: Number(expiresAt) };
}

function bySlot(a: SlotLease, b: SlotLease): number {
  return compare(a.automation, b.automation) || a.slotId - b.slotId;
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function leaderOf(value: string, now: number): string | null {
  const [, candidate, expiresAt] = /^(.*)\|\d+\|(\d+)\|\d$/s.exec(value) ?? [];
  return candidate !== undefined && Number(expiresAt) > now ? candidate : null;
}
