import type { SlotRef } from "./spec.ts";

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
  draining: boolean;
  /** Why it does not receive what is published, if so; null while its self-check passes. */
  deaf?: string | null;
  /** Which processes its pid can be compared with: equal for processes of one running machine and container. */
  processTable?: string;
}

export type WorkerState = "online" | "draining" | "offline";

/** A worker as the store knows it; `lastSeenAt` is store time, so its age is comparable everywhere. */
export interface WorkerRecord extends WorkerInfo {
  /** Counts the incarnations that bore this id; never goes back. */
  generation: number;
  lastSeenAt: number;
  /** Store time after which it counts as offline. */
  expiresAt: number;
  slots: SlotStatus[];
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
  generation: number;
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
