import { canaryLine, type CanaryLine, stoppedCanaryLine, type StoppedCanaryLine } from "./canary-report.ts";
import { checkContracts, type ContractEdge, liveManifests } from "./contract-check.ts";
import { unreadable } from "./damaged.ts";
import { type DrainLine, drainLine } from "./drain-report.ts";
import { type Drift, versionsOf } from "./drift.ts";
import { isCordoned, lacking, whyUnplaced } from "./place.ts";
import type { SlotHealth } from "../protocol/health.ts";
import type { Manifest } from "../protocol/manifest.ts";
import { slotKey, type DesiredAutomation, type SlotRef } from "../protocol/spec.ts";
import {
  type RejectedConfig,
  type PartitionPolicy,
  type RunningTask,
  workerState,
  type SlotStatus,
  type WorkerRecord,
  type WorkerState,
} from "../protocol/status.ts";
import type { DamagedRecord } from "../store/damage.ts";
import type { FleetView } from "../store/store.ts";
import { causeOf, circuitOf, type CircuitLine, type HealLine, healLine } from "./status-health.ts";

/** Without a beat for more than this share of its time to live, a worker may be dead: what it said last is shown as that. */
const SILENT_AFTER = 0.35;

/** What `fleet status --json` prints. Durations are seconds, points in time Unix milliseconds of the store. */
export interface StatusReport {
  now: number;
  leader: string | null;
  workers: WorkerLine[];
  automations: AutomationLine[];
  /** Where one automation may give through a contract what another does not take, or where that cannot be told. */
  contracts: ContractEdge[];
  /** Records in the store that cannot be read, and so count as not there. */
  damaged: DamagedRecord[];
}

export interface WorkerLine {
  id: string;
  state: WorkerState | "silent";
  /** Why it does not receive what is published; null while it does. */
  deaf: string | null;
  host: string;
  pid: number;
  version: string;
  last_beat_seconds: number;
  slots: number;
  capacity: number;
  automations: string[];
  labels: Record<string, string>;
  /** What it does while it cannot reach the store, and after how long without it, by `exit`, it leaves. */
  partition: PartitionPolicy;
  partition_seconds: number | null;
  /** Who let nothing new be placed on it, and since when; null while that is not so. */
  cordon: { by: string; seconds: number } | null;
  /** What it still has to end; null while it is not to leave. */
  drain: DrainLine | null;
}

export interface AutomationLine {
  name: string;
  /** Desired slots; null while nothing is deployed under that name. */
  slots: number | null;
  paused: boolean;
  generation: number | null;
  /** Who set the number of slots last. */
  scaled_by: string | null;
  running: number;
  /** Content hashes of its code on live workers, and which those are; several while a new version is rolled out. */
  versions: Drift["versions"];
  /** A config on trial in some of its slots, and how they fare. */
  canary: CanaryLine | null;
  canary_stopped: StoppedCanaryLine | null;
  slot_list: SlotLine[];
}

/** A task that a slot runs. */
export interface TaskLine {
  id: string;
  /** 1 for the first. */
  attempt: number;
  /** How many run together (`runMany`); of them this is the first. */
  count: number;
  /** Since it began. */
  seconds: number;
}

export interface SlotLine {
  slot_id: number;
  /** As its worker reports it; `waiting` where no live worker has it, `silent` where its worker has not been heard of lately. */
  state: SlotStatus["state"] | "waiting" | "silent";
  worker: string | null;
  in_state_seconds: number | null;
  /** Generation of the desired state whose config its code has, and of the one that was sent to its process last. */
  generation: number | null;
  sent_generation: number | null;
  /** Why it goes on with an older config: its code has refused this one. */
  rejected: RejectedConfig | null;
  iterations: number;
  last_progress_seconds: number | null;
  /** It waits on purpose: in a sleep, between turns, in a waiting pop. */
  waiting: boolean;
  /** What it runs, in a batch automation. */
  task: TaskLine | null;
  restarts: number;
  last_error: string | null;
  /** Cause of the last heal. */
  last_cause: string | null;
  /** Why it does not run; null while it runs. */
  reason: string | null;
  pid: number | null;
  memory_mb: number | null;
  cpu_percent: number | null;
  loop_lag_ms: number | null;
  circuit: CircuitLine | null;
  /** What ended its runs, newest first. */
  history: HealLine[];
}

export type Health = Readonly<Record<string, SlotHealth>>;

/** Everything that `fleet status` shows, worked out from one view of the registry, the slots' health, and what workers have published. */
export function statusReport(
  view: FleetView,
  health: Health = {},
  manifests: Readonly<Record<string, Manifest[]>> = {},
  damaged: DamagedRecord[] = view.damaged,
): StatusReport {
  const known = index(view);
  return {
    now: view.now,
    leader: view.leader,
    workers: view.workers.map((worker) => workerLine(worker, known)).toSorted((a, b) => compare(a.id, b.id)),
    automations: namesOf(known).map((name) => lineOf(name, known, health)),
    contracts: checkContracts(liveManifests(manifests, view.workers, view.now)).filter(
      ({ outcome }) => outcome !== "ok",
    ),
    damaged,
  };
}

/** The same for one automation. */
export function automationLine(name: string, view: FleetView, health: Health = {}): AutomationLine {
  return lineOf(name, index(view), health);
}

/** A view, and what would be looked up in it again and again. */
interface Known extends FleetView {
  /** Worker ids by slot, for leases that have not expired. */
  holders: ReadonlyMap<string, string>;
  /** How many such leases each worker holds. */
  held: ReadonlyMap<string, number>;
}

function index(view: FleetView): Known {
  const holders = new Map<string, string>();
  const held = new Map<string, number>();
  for (const lease of view.leases) {
    if (lease.expiresAt <= view.now) continue;
    holders.set(slotKey(lease), lease.workerId);
    held.set(lease.workerId, (held.get(lease.workerId) ?? 0) + 1);
  }
  return { ...view, holders, held };
}

function workerLine(worker: WorkerRecord, view: Known): WorkerLine {
  const state = workerState(worker, view.now);
  return {
    id: worker.id,
    state: state !== "offline" && isSilent(worker, view) ? "silent" : state,
    deaf: state === "offline" ? null : (worker.deaf ?? null),
    host: worker.host,
    pid: worker.pid,
    version: worker.version,
    last_beat_seconds: Math.max(0, view.now - worker.lastSeenAt) / 1000,
    slots: heldBy(worker, view),
    capacity: worker.capacity,
    automations: worker.automations,
    labels: worker.labels,
    partition: worker.partition?.policy ?? "finish",
    partition_seconds: worker.partition?.afterSeconds ?? null,
    cordon: cordonLine(worker, view.now),
    drain: drainLine(worker, view.now),
  };
}

function cordonLine({ wish }: WorkerRecord, now: number): WorkerLine["cordon"] {
  const cordon = wish?.cordon;
  return cordon === undefined ? null : { by: cordon.by, seconds: Math.max(0, now - cordon.at) / 1000 };
}

function namesOf(view: Known): string[] {
  const known = view.workers.filter((worker) => isLive(worker, view)).flatMap((worker) => worker.automations);
  return [...new Set([...Object.keys(view.desired), ...unreadable(view), ...known])].toSorted(compare);
}

function lineOf(name: string, view: Known, health: Health): AutomationLine {
  const desired = view.desired[name];
  const reports = new Map(view.workers.flatMap((worker) => reportsOf(worker, name)).toSorted(byTrust(view)));
  const ids = new Set(Array.from({ length: desired?.slots ?? 0 }, (_, id) => id));
  // Above the desired number stand only those that are still on their way out.
  for (const [slotId, report] of reports) if (isPresent(report, view)) ids.add(slotId);
  const slots = [...ids]
    .toSorted((a, b) => a - b)
    .map((slotId) => {
      const facts = { automation: name, slotId, desired, report: reports.get(slotId) };
      return slotLine(facts, health[slotKey(facts)], view);
    });
  return {
    name,
    slots: desired?.slots ?? null,
    paused: desired?.paused ?? false,
    generation: desired?.generation ?? null,
    scaled_by: desired?.changedBy.slots ?? null,
    running: slots.filter(({ state }) => state === "running").length,
    versions: versionsOf(name, view.workers, view.now),
    canary: canaryLine(name, desired, { health, slots, now: view.now }),
    canary_stopped: stoppedCanaryLine(desired, view.now),
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
function byTrust(view: Known): (a: [number, Report], b: [number, Report]) => number {
  const weight = ({ slot, worker }: Report) =>
    (isLive(worker, view) ? 2 : 0) + (leaseHolder(slot, view) === worker.id ? 1 : 0);
  return ([, a], [, b]) => weight(a) - weight(b) || a.slot.since - b.slot.since;
}

/** Whether the worker's word still counts: it lives, and what it says to run is not somebody else's, or nobody's, by now. */
function isPresent({ slot, worker }: Report, view: Known): boolean {
  if (!isLive(worker, view) || slot.state === "stopped") return false;
  return slot.state === "stopping" || leaseHolder(slot, view) === worker.id;
}

interface SlotFacts extends SlotRef {
  desired: DesiredAutomation | undefined;
  report: Report | undefined;
}

function slotLine(facts: SlotFacts, health: SlotHealth | undefined, view: Known): SlotLine {
  const { report, slotId, desired } = facts;
  const last = health?.history[0];
  const base = {
    slot_id: slotId,
    iterations: report?.slot.iterations ?? 0,
    restarts: report?.slot.restarts ?? 0,
    last_error: report?.slot.lastError ?? last?.error ?? null,
    last_cause: report?.slot.lastCause ?? (last === undefined ? null : causeOf(last)),
    history: (health?.history ?? []).map(healLine),
  };
  if (report === undefined || !isPresent(report, view)) {
    return {
      ...base,
      state: "waiting",
      worker: leaseHolder(facts, view) ?? null,
      in_state_seconds: null,
      generation: null,
      sent_generation: null,
      rejected: null,
      last_progress_seconds: null,
      waiting: false,
      task: null,
      reason: whyWaiting(facts, view),
      pid: null,
      memory_mb: null,
      cpu_percent: null,
      loop_lag_ms: null,
      circuit: circuitOf(facts, desired, health),
    };
  }
  const { slot, worker } = report;
  const silent = isSilent(worker, view);
  const since = (at: number) => Math.max(0, view.now - at) / 1000;
  return {
    ...base,
    state: silent ? "silent" : slot.state,
    worker: worker.id,
    in_state_seconds: since(silent ? worker.lastSeenAt : slot.since),
    generation: slot.generation,
    sent_generation: slot.sentGeneration ?? null,
    rejected: slot.rejected ?? null,
    last_progress_seconds: slot.lastProgressAt === null ? null : since(slot.lastProgressAt),
    waiting: slot.waiting,
    task: slot.task ? taskLine(slot.task, since(slot.task.since)) : null,
    reason: silent ? silence(report, view) : slot.reason,
    pid: slot.pid,
    memory_mb: slot.pid === null ? null : slot.memoryMb,
    cpu_percent: slot.pid === null ? null : slot.cpuPercent,
    loop_lag_ms: slot.pid === null ? null : slot.loopLagMs,
    circuit: slot.state === "circuit-open" ? circuitOf(facts, desired, health, slot) : null,
  };
}

function taskLine({ id, attempt, count }: RunningTask, seconds: number): TaskLine {
  return { id, attempt, count, seconds };
}

function silence({ slot, worker }: Report, view: Known): string {
  const left = ((worker.expiresAt - view.now) / 1000).toFixed(1);
  const quiet = ((view.now - worker.lastSeenAt) / 1000).toFixed(1);
  return `${worker.id} was last heard of ${quiet} s ago (${slot.state} then); its slots may be taken in ${left} s`;
}

function whyWaiting({ automation, slotId, desired, report }: SlotFacts, view: Known): string {
  if (desired?.paused === true) return "the automation is paused";
  const before =
    report !== undefined && !isLive(report.worker, view) ? `worker ${report.worker.id} is offline; ` : "";
  const open = view.workers.filter(
    (worker) =>
      workerState(worker, view.now) === "online" &&
      worker.wish?.drain === undefined &&
      worker.automations.includes(automation) &&
      lacking(worker, automation).length === 0,
  );
  const assigned = open.find(({ id }) => id === view.assignments[automation]?.[slotId]);
  if (assigned !== undefined) return `${before}assigned to ${assigned.id}, about to start`;
  if (open.some((worker) => !isCordoned(worker) && heldBy(worker, view) < worker.capacity))
    return `${before}not assigned yet`;
  return `${before}${whyUnplaced(automation, false, view.workers, view.now)}`;
}

function heldBy(worker: WorkerRecord, view: Known): number {
  return view.held.get(worker.id) ?? 0;
}

function leaseHolder(slot: SlotRef, view: Known): string | undefined {
  return view.holders.get(slotKey(slot));
}

function isLive(worker: WorkerRecord, view: Known): boolean {
  return workerState(worker, view.now) !== "offline";
}

function isSilent({ lastSeenAt, expiresAt }: WorkerRecord, view: Known): boolean {
  return view.now - lastSeenAt > (expiresAt - lastSeenAt) * SILENT_AFTER;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
