import type { LogFields, LogLevel } from "../internal/log.ts";

/** What a supervisor says to the process (or inline host) that runs slots of one automation. Plain data: it travels over IPC. */
export type ToHost =
  | { type: "run"; slotId: number; token: string; slotCount: number; config: unknown; configKey: string }
  | { type: "config"; slotId: number; config: unknown; configKey: string }
  /** `now`: a task that runs is not waited for. */
  | { type: "stop"; slotId: number; reason: string; now?: boolean }
  | { type: "slot-count"; slotCount: number }
  /**
   * Until when (machine-wide monotonic milliseconds) the leases behind these runs surely hold, by slot id; past that it stops them by
   * itself. For slots that are not named, what was told before stays.
   */
  | { type: "leases"; until: Readonly<Record<number, number>> }
  /** What the process holds of its queue. */
  | ({ type: "tasks" } & HeldTasks)
  /** End once no slot runs any more. */
  | { type: "close" };

/** Claims of one holder as its supervisor has just renewed them; as in `KeepResult`. */
export interface HeldTasks {
  held: readonly { id: string; token: string; cancelling: boolean }[];
  at: string;
  ready: number;
  /** How long until the next scheduled task is due; null when there is none. */
  dueInMs: number | null;
}

/** The task that a slot of a batch automation runs. */
export interface SlotTask {
  id: string;
  token: string;
  attempts: number;
  /** Machine-wide monotonic milliseconds. */
  startedAt: number;
  /** 0 for no limit. */
  timeoutMs: number;
  /** How many run together (`runMany`); of them this is the first. */
  count: number;
}

export type FromHost =
  | { type: "ready" }
  /** The code could not be loaded or the store not be reached: the host ends. */
  | { type: "unfit"; error: string }
  /**
   * User code broke the whole process (an unhandled rejection, a throw in a timer): the host ends. `storeLost`: what nobody caught was
   * thrown because the store was away or the lease was lost, as by an `emit` that is not awaited.
   */
  | { type: "fatal"; error: string; slotId: number | null; storeLost: boolean }
  | { type: "running"; slotId: number }
  | { type: "config-applied"; slotId: number; configKey: string }
  | { type: "ended"; slotId: number; outcome: RunOutcome; error: string | null }
  /** A sign of life, sent on an interval as long as the event loop turns. */
  | { type: "activity"; slots: readonly SlotActivity[]; vitals: HostVitals }
  | { type: "log"; level: LogLevel; message: string; fields: LogFields };

/** How a run of a slot came to its end. */
export type RunOutcome = "stopped" | "returned" | "failed" | "store-lost" | "config-invalid";

export interface SlotActivity {
  slotId: number;
  /** Turns of `ctx.loop` since this run began. */
  iterations: number;
  /** Milliseconds since the last sign of progress. */
  quietMs: number;
  /** Waits on purpose: in `ctx.sleep`, between turns, in a waiting pop. */
  waiting: boolean;
  task: SlotTask | null;
}

export interface HostVitals {
  /** Resident memory. */
  memoryMb: number;
  /** Share of one core since the last sign of life, in percent. */
  cpuPercent: number;
  /** How late the event loop was at worst since then. */
  loopLagMs: number;
}

/** What a child process needs before its first slot. */
export interface HostInit {
  type: "init";
  automation: string;
  module: string;
  worker: string;
  storeUrl: string;
  namespace: string;
  /** Under which name it claims tasks; unique for ever. */
  holder: string;
  /** For how long a claim holds unless it is renewed. */
  leaseMs: number;
  /** Nothing below this is sent. */
  logLevel: LogLevel;
}
