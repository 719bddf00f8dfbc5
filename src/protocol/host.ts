import type { LogFields, LogLevel } from "../internal/log.ts";
import type { Judged, VerdictAnswer } from "./verdict.ts";

export type LeaseKind = "pool" | "lock";

/** A lease on an item or a lock that is to be renewed until its holder lets it go. */
export interface LeaseToKeep {
  /** Which of its host's leases this is: 1, 2, 3, …; no number twice. */
  number: number;
  /** Where its host looks for news of it; see `worker/lease-marks.ts`. Free again once it was let go. */
  place: number;
  kind: LeaseKind;
  /** Of the pool or lock. */
  name: string;
  /** Of the item; of a lock its key. */
  id: string;
  token: string;
  holdMs: number;
}

/** What a supervisor says to the process (or inline host) that runs slots of one automation. Plain data: it travels over IPC. */
export type ToHost =
  | { type: "run"; slotId: number; token: string; slotCount: number; config: unknown; configKey: string }
  /** Take this config live, or (not `live`) only say whether it fits: answered by one of the `config-…` messages, where the run goes on. */
  | { type: "config"; slotId: number; config: unknown; configKey: string; generation: number; live: boolean }
  /** `now`: a task that runs is not waited for. */
  | { type: "stop"; slotId: number; reason: string; now?: boolean }
  | { type: "slot-count"; slotCount: number }
  /**
   * Until when (machine-wide monotonic milliseconds) the leases behind these runs surely hold, by slot id; past that it stops them by
   * itself. For slots that are not named, what was told before stays. A process finds in its flight mark how far they were renewed: it is
   * told only where one has ended, or where there is no room for the mark.
   */
  | { type: "leases"; until: Readonly<Record<number, number>> }
  /** What the process holds of its queue. */
  | ({ type: "tasks" } & HeldTasks)
  /** Leases that this host wants to be kept: until when (machine-wide monotonic milliseconds) each surely holds; null where it is lost. */
  | { type: "kept"; leases: readonly { number: number; place: number; until: number | null }[] }
  /** Say whether these fit the automation's own schema, or that of the pool's contract that it declares: answered by `verdicts`. */
  | ({ type: "judge"; id: string } & Judged)
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
  | ({ type: "config-applied" } & ConfigAnswer)
  | ({ type: "config-fits" } & ConfigAnswer)
  /** The run goes on with the config that it has. */
  | ({ type: "config-rejected"; reason: string } & ConfigAnswer)
  | { type: "ended"; slotId: number; outcome: RunOutcome; error: string | null }
  /** A sign of life, sent on an interval as long as the event loop turns. */
  | { type: "activity"; slots: readonly SlotActivity[]; vitals: HostVitals }
  | LeaseMessage
  | ({ type: "verdicts" } & VerdictAnswer)
  | { type: "log"; level: LogLevel; message: string; fields: LogFields };

/**
 * What a child process has read by a reference in a config. It goes to whoever keeps the end of the child's standard error, stays in
 * memory there, and goes no further.
 */
export interface SecretMessage {
  type: "secret";
  value: string;
  reference: string;
}

/** What a host says of the leases on items and locks that it holds. */
export type LeaseMessage =
  /** It may hold some of this pool or lock from now on. Said before the first is asked for. */
  | { type: "uses"; kind: LeaseKind; name: string }
  | { type: "keep"; lease: LeaseToKeep }
  /** `over`: the store knows that this lease has ended; else it is to be released. */
  | { type: "let-go"; number: number; over: boolean };

/** Which offer is answered. */
export interface ConfigAnswer {
  slotId: number;
  configKey: string;
  generation: number;
}

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
  /** What opens the store, where that is served by the supervisor. */
  storeToken?: string;
  namespace: string;
  /** Under which name it claims tasks; unique for ever. */
  holder: string;
  /** For how long a claim holds unless it is renewed. */
  leaseMs: number;
  /** Nothing below this is sent. */
  logLevel: LogLevel;
}
