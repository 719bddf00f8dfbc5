/** Why a run of a slot ended that nobody had asked to end. */
export const HEAL_CAUSES = [
  /** `runSlot` threw. */
  "failed",
  /** `runSlot` returned. */
  "returned",
  /** An unhandled rejection or a throw outside `runSlot` (in a timer, in an emitter's listener). */
  "uncaught",
  /** The process called `process.exit`, with whatever code. */
  "exited",
  /** The process was ended by a signal, or by itself with `abort`. */
  "killed",
  "out-of-memory",
  /** No progress within the automation's limit. */
  "stuck",
  /** The process's event loop did not turn for longer than its limit. */
  "loop-blocked",
  /** It did not end in time when told to. */
  "would-not-stop",
  /** A task went on for too long after its timeout: it has limits of its own, so it costs nothing of the budget. */
  "task-timeout",
  /** The store was away, or the lease went with it: nobody's fault, so it costs nothing of the budget. */
  "store-lost",
] as const;
export type HealCause = (typeof HEAL_CAUSES)[number];

/** One heal of a slot: what ended its run, and what is known of it. */
export interface HealRecord {
  /** Store time of the end. */
  at: number;
  cause: HealCause;
  /** True when another slot of the same process was the cause: costs this slot nothing of its budget. */
  collateral: boolean;
  exitCode: number | null;
  signal: string | null;
  /** Message and stack, at most 4000 characters. */
  error: string | null;
  livedMs: number;
}

/** An open circuit: the slot is not started again until somebody recycles it or its code changes. */
export interface OpenCircuit {
  since: number;
  reason: string;
  /** Version and recycle count for which it is open; it closes with another of either. */
  version: string;
  recycles: number;
}

/** What outlives a worker: kept in the store per slot, written at each heal. */
export interface SlotHealth {
  /** The newest heals, newest first, at most 20. */
  history: readonly HealRecord[];
  /** Failures in a row; a run that lasts long enough forgives them. */
  failures: number;
  /** Store times of recent failures, newest first: what the restart budgets count. */
  spent: readonly number[];
  circuit: OpenCircuit | null;
}

export const HEALTHY: SlotHealth = { history: [], failures: 0, spent: [], circuit: null };
