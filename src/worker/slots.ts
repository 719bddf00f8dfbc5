import { backoffMs } from "../internal/backoff.ts";
import type { RunOutcome, SlotActivity } from "../protocol/host.ts";
import { slotKey, type SlotRef } from "../protocol/spec.ts";
import type { SlotState, SlotStatus } from "../protocol/status.ts";
import { blockKeyOf, type ActualSlot, type WantedSlot } from "./reconcile.ts";
import type { WorkerTimings } from "./timings.ts";

interface Entry extends ActualSlot {
  generation: number;
  /** True between being told to run and user code starting. */
  starting: boolean;
  startedAt: number;
  /** Turns of all runs so far, and of the present one. */
  iterations: number;
  runIterations: number;
  restarts: number;
  failures: number;
  /** Whether the last run ended by itself: the next start then is a restart. */
  endedItself: boolean;
  lastError: string | null;
  reason: string | null;
  shown: SlotState;
  since: number;
}

/**
 * The slots of this worker as they are. Only the supervisor touches it. `now` is monotonic; what is reported is converted to
 * store time by the caller.
 */
export class Slots {
  readonly #timings: WorkerTimings;
  readonly #entries = new Map<string, Entry>();

  constructor(timings: WorkerTimings) {
    this.#timings = timings;
  }

  actual(): ActualSlot[] {
    return [...this.#entries.values()];
  }

  busy(): number {
    return [...this.#entries.values()].filter((entry) => entry.state !== "idle").length;
  }

  isIdle(slot: SlotRef): boolean {
    return (this.#entries.get(slotKey(slot))?.state ?? "idle") === "idle";
  }

  /** Slots of a host that have not ended. */
  on(host: string): SlotRef[] {
    return [...this.#entries.values()].filter((entry) => entry.host === host && entry.state !== "idle");
  }

  run(slot: WantedSlot, host: string, now: number): void {
    const before = this.#entries.get(slotKey(slot));
    this.#entries.set(slotKey(slot), {
      automation: slot.automation,
      slotId: slot.slotId,
      state: "running",
      host,
      token: slot.token,
      version: slot.version,
      configKey: slot.configKey,
      generation: slot.generation,
      stoppingSince: 0,
      retryAt: 0,
      blockedFor: null,
      starting: true,
      startedAt: now,
      iterations: before?.iterations ?? 0,
      runIterations: 0,
      restarts: (before?.restarts ?? 0) + (before?.endedItself === true ? 1 : 0),
      failures: before?.failures ?? 0,
      endedItself: false,
      lastError: before?.lastError ?? null,
      reason: "starting",
      shown: "starting",
      since: now,
    });
  }

  running(slot: SlotRef, now: number): void {
    this.#update(slot, now, { starting: false, startedAt: now, shown: "running", reason: null });
  }

  stopping(slot: SlotRef, reason: string, now: number): void {
    this.#update(slot, now, { state: "stopping", stoppingSince: now, shown: "stopping", reason });
  }

  configApplied(slot: SlotRef, configKey: string, generation: number, now: number): void {
    this.#update(slot, now, { configKey, generation });
  }

  active(slot: SlotRef, activity: SlotActivity): void {
    const entry = this.#entries.get(slotKey(slot));
    if (entry === undefined) return;
    entry.iterations += Math.max(0, activity.iterations - entry.runIterations);
    entry.runIterations = activity.iterations;
  }

  ended(slot: SlotRef, outcome: RunOutcome, error: string | null, now: number): void {
    const entry = this.#entries.get(slotKey(slot));
    if (entry === undefined || entry.state === "idle") return;
    const end = { state: "idle" as const, host: null, starting: false, stoppingSince: 0 };
    if (outcome === "stopped" || (entry.state === "stopping" && outcome === "returned")) {
      return this.#update(slot, now, { ...end, shown: "stopped", reason: entry.reason });
    }
    if (outcome === "config-invalid") {
      return this.#update(slot, now, {
        ...end,
        blockedFor: blockKeyOf(entry),
        shown: "blocked",
        lastError: error,
        reason: error,
      });
    }
    const healthy = now - entry.startedAt >= this.#timings.healthyMs;
    const failures = healthy ? 1 : entry.failures + 1;
    const { backoffBaseMs: baseMs, backoffCapMs: capMs } = this.#timings;
    const pause = backoffMs(failures, { baseMs, capMs, jitter: 0.2 });
    this.#update(slot, now, {
      ...end,
      failures,
      endedItself: true,
      retryAt: now + pause,
      shown: "backing-off",
      lastError: error ?? entry.lastError,
      reason: `${outcome === "returned" ? "the run returned" : "the run failed"}; starts again in ${(pause / 1000).toFixed(1)} s`,
    });
  }

  /** Forgets an ended slot that this worker does not run any more. */
  forget(slot: SlotRef): void {
    if (this.isIdle(slot)) this.#entries.delete(slotKey(slot));
  }

  statuses(toStoreTime: (monotonic: number) => number): SlotStatus[] {
    return [...this.#entries.values()].map((entry) => ({
      automation: entry.automation,
      slotId: entry.slotId,
      state: entry.shown,
      since: Math.round(toStoreTime(entry.since)),
      iterations: entry.iterations,
      restarts: entry.restarts,
      generation: entry.generation,
      lastError: entry.lastError,
      reason: entry.reason,
    }));
  }

  #update(slot: SlotRef, now: number, change: Partial<Entry>): void {
    const entry = this.#entries.get(slotKey(slot));
    if (entry === undefined) return;
    if (change.shown !== undefined && change.shown !== entry.shown) entry.since = now;
    Object.assign(entry, change);
  }
}
