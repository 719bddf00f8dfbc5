import { checkOptions, integer, refuse, type OptionRules } from "../contracts/options.ts";
import type { Budget } from "./heal.ts";

/** All of a worker's times, in milliseconds. Tests shorten them; the bounds in docs/guarantees.md follow from the defaults. */
export interface WorkerTimings {
  /** One store call per worker and interval keeps its record and all its leases. */
  beatMs: number;
  /** A worker not heard of for so long counts as dead, and its slots may be taken. */
  leaseMs: number;
  /** How long a slot may take to end before its process is killed. */
  stopGraceMs: number;
  /** How long a task may go on after its timeout, when its signal has aborted, before its process is killed. */
  taskGraceMs: number;
  /** First delay before a slot that ended starts again; doubles with each failure. */
  backoffBaseMs: number;
  backoffCapMs: number;
  /** A run that lasted so long forgives the failures before it. */
  healthyMs: number;
  /** So many failures within such a window open a slot's circuit. */
  budgets: readonly Budget[];
  /** A slot without progress for so long is stopped, where its automation says nothing else. */
  stuckMs: number;
  /** A process whose event loop does not turn for so long is killed. */
  blockedMs: number;
  /** A process that is not ready after so long is killed. */
  startMs: number;
  /** How often the worker proves to itself that it can still receive. */
  probeMs: number;
  /** How often the leader clears expired entries from all streams. */
  sweepMs: number;
}

export const DEFAULT_TIMINGS: WorkerTimings = {
  beatMs: 1000,
  leaseMs: 10_000,
  stopGraceMs: 10_000,
  taskGraceMs: 5000,
  backoffBaseMs: 1000,
  backoffCapMs: 300_000,
  healthyMs: 600_000,
  budgets: [
    { failures: 12, windowMs: 1_800_000 },
    { failures: 60, windowMs: 86_400_000 },
  ],
  stuckMs: 300_000,
  blockedMs: 30_000,
  startMs: 60_000,
  probeMs: 10_000,
  sweepMs: 20_000,
};

const BUDGET: OptionRules<Budget> = { failures: integer({ min: 1 }), windowMs: integer({ min: 1 }) };

const RULES: OptionRules<WorkerTimings> = {
  beatMs: integer({ min: 50, max: 60_000 }),
  leaseMs: integer({ min: 500, max: 600_000 }),
  stopGraceMs: integer({ min: 0, max: 600_000 }),
  taskGraceMs: integer({ min: 0, max: 600_000 }),
  backoffBaseMs: integer({ min: 1, max: 3_600_000 }),
  backoffCapMs: integer({ min: 1, max: 86_400_000 }),
  healthyMs: integer({ min: 1 }),
  budgets: checkBudgets,
  stuckMs: integer({ min: 100 }),
  // A child gives a sign of life twice a second.
  blockedMs: integer({ min: 1500 }),
  startMs: integer({ min: 100 }),
  probeMs: integer({ min: 100 }),
  sweepMs: integer({ min: 50, max: 55_000 }),
};

/** The defaults, changed by what is given. Throws `FLEET_OPTION_INVALID`, also where two times do not go together. */
export function workerTimings(given: Partial<WorkerTimings> | undefined, where = "timings"): WorkerTimings {
  const timings = { ...DEFAULT_TIMINGS, ...checkOptions<WorkerTimings>(where, given, RULES) };
  const { beatMs, leaseMs, backoffBaseMs, backoffCapMs } = timings;
  if (leaseMs < 3 * beatMs)
    return refuse(
      `${where}: leaseMs`,
      `at least three beats (3 × beatMs = ${3 * beatMs}), so that a late beat costs no slot`,
      leaseMs,
    );
  if (backoffCapMs < backoffBaseMs)
    return refuse(`${where}: backoffCapMs`, `at least backoffBaseMs (${backoffBaseMs})`, backoffCapMs);
  return timings;
}

function checkBudgets(value: unknown, where: string): readonly Budget[] {
  if (!Array.isArray(value))
    return refuse(where, 'an array of budgets, for example [{ "failures": 12, "windowMs": 1800000 }]', value);
  return value.map((entry: unknown, index) => {
    const { failures, windowMs } = checkOptions<Budget>(`${where}[${index}]`, entry ?? null, BUDGET);
    if (failures === undefined) return refuse(`${where}[${index}]: failures`, "a whole number", failures);
    if (windowMs === undefined) return refuse(`${where}[${index}]: windowMs`, "a whole number", windowMs);
    return { failures, windowMs };
  });
}
