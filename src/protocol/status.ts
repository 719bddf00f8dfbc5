import type { SlotRef } from "./spec.ts";

/** What a worker does while it cannot reach the store; see `worker/partition.ts`. */
export const PARTITION_POLICIES = ["finish", "stop", "exit"] as const;
export type PartitionPolicy = (typeof PARTITION_POLICIES)[number];

export interface WorkerPartition {
  policy: PartitionPolicy;
  /** Of `"exit"`: without the store for so long it leaves; null for the others. */
  afterSeconds: number | null;
}

/** What a worker says of itself when it registers, and whenever that changes. */
export interface WorkerInfo {
  id: string;
  /** New for every process. */
  incarnation: string;
  host: string;
  pid: number;
  version: string;
  startedAt: number;
  /** Most slots it runs at once. */
  capacity: number;
  labels: Record<string, string>;
  /** Names of the automations it can run. */
  automations: string[];
  /** What placement and status need of their manifests, by name; left out by a worker of a version without. */
  known?: Readonly<Record<string, KnownAutomation>>;
  draining: boolean;
  /** Of the drain under way, or of the one that it left with. */
  drain?: DrainStatus;
  /** Why it does not receive what is published, if so; null while its self-check passes. */
  deaf?: string | null;
  /** Left out by a worker of a version without: `"finish"`. */
  partition?: WorkerPartition;
  /** Which processes its pid can be compared with: equal for processes of one running machine and container. */
  processTable?: string;
}

/** One automation as this worker has it. */
export interface KnownAutomation {
  /** Content hash of the built code. */
  version: string;
  /** Labels that a worker must bear to run it, as its manifest says here. */
  labels: Readonly<Record<string, string>>;
}

export interface DrainStatus {
  /** Store time. */
  since: number;
  /** Store time at which what still runs is interrupted, then killed. */
  until: number;
  /** Who asked; null for a signal. */
  by: string | null;
  /** Its deadline has passed, and something had to be interrupted or killed. */
  forced: boolean;
}

/** What somebody asked of a worker. Kept in the store by the worker's id, so a restart of the worker or of anybody else changes nothing. */
export interface WorkerWish {
  /** No new slots here, until that is taken back. */
  cordon?: Cordon;
  /** End all slots and leave. Meant for one incarnation; the next is not asked any more. */
  drain?: DrainWish;
}

export interface Cordon {
  by: string;
  /** Store time. */
  at: number;
}

export interface DrainWish extends Cordon {
  incarnation: string;
  deadlineMs: number;
}

export type WorkerState = "online" | "draining" | "offline";

/** A worker as the store knows it; `lastSeenAt` is store time, so its age is comparable everywhere. */
export interface WorkerRecord extends WorkerInfo {
  /** Counts the incarnations that bore this id; never goes back. */
  generation: number;
  lastSeenAt: number;
  /** Store time after which it counts as offline; of one that signed off, when it was last seen. */
  expiresAt: number;
  slots: SlotStatus[];
  /** What is asked of it; left out where that is nothing. */
  wish?: WorkerWish;
}

export const SLOT_STATES = [
  "starting",
  "running",
  "backing-off",
  "stopping",
  "stopped",
  "blocked",
  "circuit-open",
] as const;
export type SlotState = (typeof SLOT_STATES)[number];

/** Observed state of one slot, as its worker reports it. */
export interface SlotStatus extends SlotRef {
  state: SlotState;
  /** Store time at which this state began. */
  since: number;
  iterations: number;
  restarts: number;
  /** Generation of the desired state whose config its code has. */
  generation: number;
  /** The same of the config that was sent to its process last; left out by a worker of a version without. */
  sentGeneration?: number;
  /** Why its code goes on with an older config: it has refused this one. */
  rejected?: RejectedConfig | null;
  lastError: string | null;
  /** Cause of the last heal. */
  lastCause: string | null;
  /** Store time of the last sign of progress; null while it does not run. */
  lastProgressAt: number | null;
  /** It waits on purpose: in a sleep, between turns, in a waiting pop. */
  waiting: boolean;
  /** The task that it runs, in a batch automation; left out by a worker of a version without. */
  task?: RunningTask | null;
  /** Why it is not running, in words; null while it runs. */
  reason: string | null;
  /** Its process. Slots of one automation may share it. */
  pid: number | null;
  memoryMb: number;
  cpuPercent: number;
  loopLagMs: number;
}

export interface RejectedConfig {
  generation: number;
  reason: string;
}

export interface RunningTask {
  id: string;
  /** 1 for the first. */
  attempt: number;
  /** How many run together; of them this is the first. */
  count: number;
  /** Store time. */
  since: number;
}

export function workerState(worker: Pick<WorkerRecord, "draining" | "expiresAt">, now: number): WorkerState {
  if (worker.expiresAt <= now) return "offline";
  return worker.draining ? "draining" : "online";
}

/** Whether it signed off; one that is offline and did not was lost. */
export function signedOff({
  lastSeenAt,
  expiresAt,
}: Pick<WorkerRecord, "lastSeenAt" | "expiresAt">): boolean {
  return expiresAt <= lastSeenAt;
}
