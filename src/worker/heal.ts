/**
 * What follows from a run that ended by itself. Pure; `now` is store time.
 *
 * Two limits, because one alone is blind: the back-off (1 s doubling to 5 min, forgiven after 10 healthy minutes) slows down what
 * dies young; the budgets count failures per window and so also see a program that always lives a little longer than "young".
 * A spent budget opens the circuit: the slot stays down, with the reason, until it is recycled by hand or its code changes.
 */
import { backoffMs } from "../internal/backoff.ts";
import type { HealRecord, SlotHealth } from "../protocol/health.ts";

const HISTORY = 20;

export interface Budget {
  /** So many failures within the window open the circuit. */
  failures: number;
  windowMs: number;
}

export interface HealSettings {
  backoffBaseMs: number;
  backoffCapMs: number;
  /** A run that lasted so long forgives the failures before it. */
  healthyMs: number;
  budgets: readonly Budget[];
}

export interface Heal {
  health: SlotHealth;
  /** How long to wait before the next start; null when the circuit has opened. */
  retryInMs: number | null;
}

export function heal(
  health: SlotHealth,
  record: HealRecord,
  code: { version: string; recycles: number },
  settings: HealSettings,
  random: () => number = Math.random,
): Heal {
  const history = [record, ...health.history].slice(0, HISTORY);
  // Somebody else's fault, or a run that came to its end in good order, or a task's: back at once, or after the shortest pause.
  if (record.collateral) return { health: { ...health, history }, retryInMs: 0 };
  if (record.cause === "store-lost" || record.cause === "task-timeout") {
    return { health: { ...health, history }, retryInMs: settings.backoffBaseMs };
  }

  const failures = record.livedMs >= settings.healthyMs ? 1 : health.failures + 1;
  const longest = Math.max(0, ...settings.budgets.map((budget) => budget.windowMs));
  const spent = [record.at, ...health.spent]
    .filter((at) => record.at - at < longest)
    .slice(0, most(settings.budgets));
  const over = settings.budgets.find(
    (budget) => spent.filter((at) => record.at - at < budget.windowMs).length >= budget.failures,
  );
  if (over === undefined) {
    const { backoffBaseMs: baseMs, backoffCapMs: capMs } = settings;
    const retryInMs = backoffMs(failures, { baseMs, capMs, jitter: 0.2 }, random);
    return { health: { history, failures, spent, circuit: null }, retryInMs };
  }
  const reason = `${over.failures} failures within ${minutes(over.windowMs)}; the last: ${record.cause}${record.error === null ? "" : `: ${firstLine(record.error)}`}`;
  return {
    health: { history, failures, spent, circuit: { since: record.at, reason, ...code } },
    retryInMs: null,
  };
}

/** The health to go on with: an open circuit closes when the code changed or somebody recycled since. */
export function reconsider(health: SlotHealth, code: { version: string; recycles: number }): SlotHealth {
  const { circuit } = health;
  if (circuit === null || (circuit.version === code.version && circuit.recycles === code.recycles))
    return health;
  return { history: health.history, failures: 0, spent: [], circuit: null };
}

function most(budgets: readonly Budget[]): number {
  return Math.max(0, ...budgets.map((budget) => budget.failures));
}

function minutes(ms: number): string {
  if (ms < 60_000) return `${Math.round(ms / 1000)} s`;
  return ms < 7_200_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;
}

function firstLine(text: string): string {
  return (text.split("\n", 1)[0] as string).slice(0, 200);
}
