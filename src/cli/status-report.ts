import { slotKey, type DesiredAutomation } from "../protocol/spec.ts";
import { workerState, type SlotStatus, type WorkerRecord, type WorkerState } from "../protocol/status.ts";
import type { FleetView } from "../store/store.ts";

/** What `fleet status --json` prints. Durations are seconds. */
export interface StatusReport {
  now: number;
  leader: string | null;
  workers: WorkerLine[];
  automations: AutomationLine[];
}

export interface WorkerLine {
  id: string;
  state: WorkerState;
  host: string;
  pid: number;
  version: string;
  last_beat_seconds: number;
  slots: number;
  capacity: number;
  automations: string[];
  labels: Record<string, string>;
}

export interface AutomationLine {
  name: string;
  /** Desired slots; null while nothing is deployed under that name. */
  slots: number | null;
  paused: boolean;
  generation: number | null;
  running: number;
  slot_list: SlotLine[];
}

export interface SlotLine {
  slot_id: number;
  state: SlotStatus["state"] | "waiting";
  worker: string | null;
  in_state_seconds: number | null;
  iterations: number;
  restarts: number;
  last_error: string | null;
  /** Why it does not run; null while it runs. */
  reason: string | null;
}

/** Everything that `fleet status` shows, worked out from one view of the registry. */
export function statusReport(view: FleetView): StatusReport {
  return {
    now: view.now,
    leader: view.leader,
    workers: view.workers.map((worker) => workerLine(worker, view)).toSorted((a, b) => compare(a.id, b.id)),
    automations: namesOf(view).map((name) => automationLine(name, view)),
  };
}

function workerLine(worker: WorkerRecord, view: FleetView): WorkerLine {
  return {
    id: worker.id,
    state: workerState(worker, view.now),
    host: worker.host,
    pid: worker.pid,
    version: worker.version,
    last_beat_seconds: Math.max(0, view.now - worker.lastSeenAt) / 1000,
    slots: heldBy(worker, view),
    capacity: worker.capacity,
    automations: worker.automations,
    labels: worker.labels,
  };
}

function namesOf(view: FleetView): string[] {
  const known = view.workers.filter((worker) => isLive(worker, view)).flatMap((worker) => worker.automations);
  return [...new Set([...Object.keys(view.desired), ...known])].toSorted(compare);
}

function automationLine(name: string, view: FleetView): AutomationLine {
  const desired = view.desired[name];
  const reports = new Map(view.workers.flatMap((worker) => reportsOf(worker, name)).toSorted(byTrust(view)));
  const ids = new Set(Array.from({ length: desired?.slots ?? 0 }, (_, id) => id));
  // Above the desired number stand only those that are still on their way out.
  for (const { slot, worker } of reports.values())
    if (slot.state !== "stopped" && isLive(worker, view)) ids.add(slot.slotId);
  const slots = [...ids]
    .toSorted((a, b) => a - b)
    .map((slotId) => slotLine({ name, slotId, desired, report: reports.get(slotId) }, view));
  return {
    name,
    slots: desired?.slots ?? null,
    paused: desired?.paused ?? false,
    generation: desired?.generation ?? null,
    running: slots.filter(({ state }) => state === "running").length,
    slot_list: slots,
  };
}

interface Report {
  slot: SlotStatus;
  worker: WorkerRecord;
}

function reportsOf(worker: WorkerRecord, name: string): [number, Report][] {
  return worker.slots
    .filter((slot) => slot.automation === name)
    .map((slot) => [slot.slotId, { slot, worker }]);
}

/** Orders reports so that the one to believe comes last: live before offline, lease holder before others, then the newest. */
function byTrust(view: FleetView): (a: [number, Report], b: [number, Report]) => number {
  const weight = ({ slot, worker }: Report) =>
    (isLive(worker, view) ? 2 : 0) + (leaseHolder(slot, view) === worker.id ? 1 : 0);
  return ([, a], [, b]) => weight(a) - weight(b) || a.slot.since - b.slot.since;
}

interface SlotFacts {
  name: string;
  slotId: number;
  desired: DesiredAutomation | undefined;
  report: Report | undefined;
}

function slotLine(facts: SlotFacts, view: FleetView): SlotLine {
  const { report, slotId } = facts;
  const base = {
    slot_id: slotId,
    iterations: report?.slot.iterations ?? 0,
    restarts: report?.slot.restarts ?? 0,
    last_error: report?.slot.lastError ?? null,
  };
  if (report === undefined || !isLive(report.worker, view) || report.slot.state === "stopped") {
    const worker = leaseHolder({ automation: facts.name, slotId }, view) ?? null;
    return { ...base, state: "waiting", worker, in_state_seconds: null, reason: whyWaiting(facts, view) };
  }
  return {
    ...base,
    state: report.slot.state,
    worker: report.worker.id,
    in_state_seconds: Math.max(0, view.now - report.slot.since) / 1000,
    reason: report.slot.reason,
  };
}

function whyWaiting({ name, slotId, desired, report }: SlotFacts, view: FleetView): string {
  if (desired?.paused === true) return "the automation is paused";
  const knowing = view.workers.filter((worker) => isLive(worker, view) && worker.automations.includes(name));
  const before =
    report !== undefined && !isLive(report.worker, view) ? `worker ${report.worker.id} is offline; ` : "";
  if (knowing.length === 0) return `${before}no live worker has this automation`;
  if (knowing.every((worker) => worker.draining)) return `${before}all workers that have it are draining`;
  const assigned = view.assignments[name]?.[slotId];
  const worker = knowing.find(({ id }) => id === assigned);
  if (worker !== undefined) return `${before}assigned to ${worker.id}, about to start`;
  if (knowing.every((worker) => worker.draining || heldBy(worker, view) >= worker.capacity))
    return `${before}no capacity left on the workers that have it`;
  return `${before}not assigned yet`;
}

function heldBy(worker: WorkerRecord, view: FleetView): number {
  return view.leases.filter((lease) => lease.workerId === worker.id && lease.expiresAt > view.now).length;
}

function leaseHolder(slot: { automation: string; slotId: number }, view: FleetView): string | undefined {
  return view.leases.find((lease) => slotKey(lease) === slotKey(slot) && lease.expiresAt > view.now)
    ?.workerId;
}

function isLive(worker: WorkerRecord, view: FleetView): boolean {
  return workerState(worker, view.now) !== "offline";
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
