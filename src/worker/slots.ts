import type { StopReason } from "../automation/context.ts";
import { HEALTHY, type HealCause, type HealRecord, type SlotHealth } from "../protocol/health.ts";
import type { RunOutcome, SlotActivity, SlotTask } from "../protocol/host.ts";
import { slotKey, type SlotRef } from "../protocol/spec.ts";
import type { SlotState, SlotStatus } from "../protocol/status.ts";
import type { HeldLease } from "../store/store.ts";
import type { Flight } from "./flight-mark.ts";
import { heal, reconsider } from "./heal.ts";
import type { ActualSlot, WantedSlot } from "./reconcile.ts";
import * as config from "./slot-config.ts";
import { type ConfigMessage, NO_CONFIG, type SlotConfig } from "./slot-config.ts";
import type { WorkerTimings } from "./timings.ts";

interface Entry extends Omit<ActualSlot, "stuck" | "finishes" | "overdue" | "configKey" | "offer"> {
  recycles: number;
  config: SlotConfig;
  startedAt: number;
  /** Turns of all runs so far, and of the present one. */
  iterations: number;
  runIterations: number;
  /** When its last progress was; kept up while it waits on purpose. */
  progressAt: number;
  waiting: boolean;
  /** When its process was last seen to be blocked, by whichever of its slots. */
  blockedAt: number;
  restarts: number;
  /** Whether the last run ended by itself: the next start then is a restart. */
  endedItself: boolean;
  /** The task that it runs, as last heard: since when (by the supervisor's clock), and for how long by then. */
  task: (SlotTask & { since: number; ranMs: number }) | null;
  health: SlotHealth;
  reason: string | null;
  shown: SlotState;
  since: number;
}

/** What an automation asks of its slots. */
export interface SlotLimits {
  /** A slot without progress for so long is stopped. */
  stuckMs: number;
  /** Told to stop, its slots finish what they have begun. */
  finishes: boolean;
}

/** How a run came to its end, as the supervisor knows it. */
export interface SlotEnd {
  outcome: RunOutcome;
  /** Given when nobody had asked for the end. */
  cause: HealCause | null;
  collateral: boolean;
  error: string | null;
  exitCode: number | null;
  signal: string | null;
}

/**
 * The slots of this worker as they are. Only the supervisor touches it. Times are monotonic; what is reported or kept in the store is
 * converted to store time.
 */
export class Slots {
  readonly #timings: WorkerTimings;
  readonly #toStoreTime: (monotonic: number) => number;
  readonly #entries = new Map<string, Entry>();

  constructor(timings: WorkerTimings, toStoreTime: (monotonic: number) => number) {
    this.#timings = timings;
    this.#toStoreTime = toStoreTime;
  }

  actual(now: number, limitsOf: (automation: string) => SlotLimits): ActualSlot[] {
    return [...this.#entries.values()].map((entry) => {
      const { stuckMs, finishes } = limitsOf(entry.automation);
      const { task } = entry;
      const longest =
        task === null || task.timeoutMs === 0 ? Infinity : task.timeoutMs + this.#timings.taskGraceMs;
      // Field by field: this is done for each slot several times a second.
      return {
        automation: entry.automation,
        slotId: entry.slotId,
        state: entry.state,
        host: entry.host,
        token: entry.token,
        version: entry.version,
        build: entry.build,
        starting: entry.starting,
        stopReason: entry.stopReason,
        stoppingSince: entry.stoppingSince,
        retryAt: entry.retryAt,
        blockedFor: entry.blockedFor,
        configKey: entry.config.applied?.configKey ?? "",
        offer: entry.config.offer,
        // Also while it finishes its task: it may have no timeout.
        stuck:
          (entry.state === "running" || (entry.state === "stopping" && finishes)) &&
          !entry.waiting &&
          now - Math.max(entry.progressAt, entry.blockedAt) > stuckMs,
        finishes,
        overdue: task !== null && task.ranMs > longest,
      };
    });
  }

  busy(): number {
    return [...this.#entries.values()].filter((entry) => entry.state !== "idle").length;
  }

  idle(): SlotRef[] {
    return [...this.#entries.values()].filter((entry) => entry.state === "idle");
  }

  knows(slot: SlotRef): boolean {
    return this.#entries.has(slotKey(slot));
  }

  isIdle(slot: SlotRef): boolean {
    return (this.#entries.get(slotKey(slot))?.state ?? "idle") === "idle";
  }

  /** Runs of a host that have not ended, each with the token of the lease that it was started under. */
  on(host: string): HeldLease[] {
    return [...this.#entries.values()].filter((entry) => entry.host === host && entry.state !== "idle");
  }

  hostOf(slot: SlotRef): string | null {
    return this.#entries.get(slotKey(slot))?.host ?? null;
  }

  /** A newly claimed slot, with what is known of its health. An open circuit stays open until its code changes or it is recycled. */
  adopt(slot: SlotRef & { token: string }, health: SlotHealth | undefined, now: number): void {
    const before = this.#entries.get(slotKey(slot));
    if (before !== undefined && before.state !== "idle") return;
    const known = health ?? before?.health ?? HEALTHY;
    this.#entries.set(slotKey(slot), {
      automation: slot.automation,
      slotId: slot.slotId,
      state: "idle",
      host: null,
      token: slot.token,
      version: "",
      build: "",
      starting: false,
      // What this very worker knows of it; another one begins anew.
      config: before?.config ?? NO_CONFIG,
      recycles: 0,
      stoppingSince: 0,
      retryAt: 0,
      blockedFor: before?.blockedFor ?? null,
      startedAt: 0,
      iterations: before?.iterations ?? 0,
      runIterations: 0,
      progressAt: now,
      waiting: false,
      blockedAt: now,
      restarts: before?.restarts ?? 0,
      endedItself: false,
      stopReason: null,
      task: null,
      health: known,
      reason: "waiting for its process",
      shown: "starting",
      since: now,
    });
  }

  /** Whether the restart budget of this slot is spent for the code that it should run. Closes the circuit where that changed. */
  circuitOpen(slot: SlotRef, code: { version: string; recycles: number }, now: number): boolean {
    const entry = this.#entries.get(slotKey(slot));
    if (entry === undefined) return false;
    entry.health = reconsider(entry.health, code);
    const open = entry.health.circuit;
    if (open !== null && entry.state === "idle") this.#show(entry, now, "circuit-open", open.reason);
    return open !== null;
  }

  run(slot: WantedSlot, recycles: number, host: string, now: number): void {
    const entry = this.#entries.get(slotKey(slot));
    if (entry === undefined) return;
    Object.assign(entry, {
      state: "running",
      host,
      token: slot.token,
      version: slot.version,
      build: slot.build,
      config: config.started(entry.config, slot),
      recycles,
      retryAt: 0,
      blockedFor: null,
      startedAt: now,
      starting: true,
      runIterations: 0,
      progressAt: now,
      waiting: false,
      restarts: entry.restarts + (entry.endedItself ? 1 : 0),
      endedItself: false,
      stopReason: null,
    });
    this.#show(entry, now, "starting", "starting");
  }

  running(slot: SlotRef, now: number): void {
    const entry = this.#entries.get(slotKey(slot));
    if (entry === undefined || entry.state !== "running") return;
    entry.starting = false;
    entry.startedAt = now;
    entry.progressAt = now;
    this.#show(entry, now, "running", null);
  }

  stopping(slot: SlotRef, reason: StopReason, now: number): void {
    const entry = this.#entries.get(slotKey(slot));
    if (entry === undefined) return;
    Object.assign(entry, { state: "stopping", stoppingSince: now, stopReason: reason });
    this.#show(entry, now, "stopping", reason);
  }

  /** The slot as it is to be started: see `startWith`. */
  startOf(slot: WantedSlot): WantedSlot {
    const entry = this.#entries.get(slotKey(slot));
    return entry === undefined ? slot : config.startWith(slot, entry.config);
  }

  configOffered(slot: WantedSlot, host: string, now: number): void {
    const entry = this.#entries.get(slotKey(slot));
    if (entry !== undefined) entry.config = config.offered(entry.config, slot, host, now);
  }

  /** What was offered to this process is not answered any more. */
  hostEnded(host: string): void {
    for (const entry of this.#entries.values()) entry.config = config.hostEnded(entry.config, host);
  }

  /** Takes in what came of an offer. Answers true where it was refused for the first time. */
  configAnswered(slot: SlotRef, message: ConfigMessage, at: { host: string; now: number }): boolean {
    const entry = this.#entries.get(slotKey(slot));
    if (entry === undefined || entry.state === "idle") return false;
    const before = entry.config.rejected;
    entry.config = config.answered(entry.config, message, at);
    const { rejected } = entry.config;
    return rejected !== null && rejected !== before && rejected.times === 1;
  }

  /** Slots that run with just what is wanted of them have followed, whether or not anything had to be done for that. */
  agree(wanted: readonly WantedSlot[]): void {
    for (const slot of wanted) {
      const entry = this.#entries.get(slotKey(slot));
      if (entry?.state !== "running" || entry.starting || entry.build !== slot.build) continue;
      if (entry.config.applied?.configKey === slot.configKey)
        entry.config = config.agreed(entry.config, slot);
    }
  }

  /** Takes in a sign of life; answers how many turns it adds. `ahead`: the machine's monotonic clock minus this process's own. */
  active(slot: SlotRef, activity: SlotActivity, now: number, ahead: number): number {
    const entry = this.#entries.get(slotKey(slot));
    if (entry === undefined) return 0;
    const turns = Math.max(0, activity.iterations - entry.runIterations);
    entry.iterations += turns;
    entry.runIterations = activity.iterations;
    entry.waiting = activity.waiting;
    this.#runs(entry, activity.task, now, ahead);
    entry.progressAt = activity.waiting ? now : Math.max(entry.progressAt, now - activity.quietMs);
    return turns;
  }

  /**
   * A host says nothing: of its slots only the one that ran last can run, with what stands in the flight mark. Where several tasks have
   * begun, any of them may have gone on after an `await` and blocks the others: then none is accused, nor taken for stuck.
   */
  silent(host: string, flight: Flight, now: number, ahead: number): void {
    for (const entry of this.#entries.values()) {
      if (entry.host !== host) continue;
      if (flight.tasks.length > 1) {
        entry.blockedAt = now;
        continue;
      }
      const mark = flight.tasks.find(({ slotId }) => slotId === entry.slotId);
      const [first] = mark?.tasks ?? [];
      const runs = mark !== undefined && first !== undefined && flight.lastSlot === entry.slotId;
      this.#runs(entry, runs ? { ...mark, ...first, count: mark.tasks.length } : null, now, ahead);
    }
  }

  stopReasonOf(slot: SlotRef): StopReason | null {
    return this.#entries.get(slotKey(slot))?.stopReason ?? null;
  }

  /** Takes in the end of a run. Answers the slot's new health where that is to be kept. */
  ended(slot: SlotRef, end: SlotEnd, now: number): SlotHealth | undefined {
    const entry = this.#entries.get(slotKey(slot));
    if (entry === undefined || entry.state === "idle") return undefined;
    const { stopReason } = entry;
    Object.assign(entry, {
      state: "idle",
      host: null,
      starting: false,
      stoppingSince: 0,
      stopReason: null,
      waiting: false,
      task: null,
    });
    if (end.outcome === "config-invalid") {
      entry.blockedFor = config.blockKey(entry, entry.config);
      entry.config = { ...NO_CONFIG, sent: entry.config.sent };
      this.#show(entry, now, "blocked", end.error);
      return undefined;
    }
    const cause = stopReason === "stuck" ? (end.cause ?? "stuck") : end.cause;
    if (cause === null || (stopReason !== null && stopReason !== "stuck" && !isFault(cause))) {
      this.#show(entry, now, "stopped", stopReason);
      return undefined;
    }
    return this.#heal(entry, cause, end, now);
  }

  /** The supervisor stood still for so long: nothing of it counts as a lack of progress, nor as slow to stop. */
  forgive(ms: number): void {
    for (const entry of this.#entries.values()) {
      entry.progressAt += ms;
      entry.stoppingSince += ms;
    }
  }

  /** Forgets an ended slot that this worker does not run any more. */
  forget(slot: SlotRef): void {
    if (this.isIdle(slot)) this.#entries.delete(slotKey(slot));
  }

  statuses(
    about: (host: string) => Pick<SlotStatus, "pid" | "memoryMb" | "cpuPercent" | "loopLagMs"> | undefined,
  ): SlotStatus[] {
    return [...this.#entries.values()].map((entry) => {
      const last = entry.health.history[0];
      const host = entry.host === null ? undefined : about(entry.host);
      return {
        automation: entry.automation,
        slotId: entry.slotId,
        state: entry.shown,
        since: Math.round(this.#toStoreTime(entry.since)),
        iterations: entry.iterations,
        restarts: entry.restarts,
        ...config.shown(entry.config),
        lastError: last?.error ?? null,
        lastCause: last === undefined ? null : `${last.cause}${last.collateral ? " (collateral)" : ""}`,
        lastProgressAt: entry.state === "idle" ? null : Math.round(this.#toStoreTime(entry.progressAt)),
        waiting: entry.waiting,
        task: entry.task && {
          id: entry.task.id,
          attempt: entry.task.attempts + 1,
          count: entry.task.count,
          since: Math.round(this.#toStoreTime(entry.task.since)),
        },
        reason: entry.reason,
        pid: host?.pid ?? null,
        memoryMb: host?.memoryMb ?? 0,
        cpuPercent: host?.cpuPercent ?? 0,
        loopLagMs: host?.loopLagMs ?? 0,
      };
    });
  }

  #heal(entry: Entry, cause: HealCause, end: SlotEnd, now: number): SlotHealth {
    const record: HealRecord = {
      at: Math.round(this.#toStoreTime(now)),
      cause,
      collateral: end.collateral,
      exitCode: end.exitCode,
      signal: end.signal,
      error: cause === "stuck" ? "no progress for longer than stuckSeconds" : end.error,
      livedMs: Math.round(now - entry.startedAt),
    };
    const code = { version: entry.version, recycles: entry.recycles };
    const { health, retryInMs } = heal(entry.health, record, code, this.#timings);
    entry.health = health;
    entry.endedItself = true;
    entry.retryAt = now + (retryInMs ?? 0);
    if (retryInMs === null) this.#show(entry, now, "circuit-open", health.circuit?.reason ?? null);
    else
      this.#show(
        entry,
        now,
        "backing-off",
        `${wordsOf(record)}; starts again ${retryInMs === 0 ? "at once" : `after a pause of ${(retryInMs / 1000).toFixed(1)} s`}`,
      );
    return health;
  }

  #runs(entry: Entry, task: SlotTask | null, now: number, ahead: number): void {
    const since = (task?.startedAt ?? 0) - ahead;
    entry.task = task && { ...task, since, ranMs: now - since };
  }

  #show(entry: Entry, now: number, shown: SlotState, reason: string | null): void {
    if (shown !== entry.shown) entry.since = now;
    entry.shown = shown;
    entry.reason = reason;
  }
}

/** A cause that is one whether or not the slot had been told to stop. */
function isFault(cause: HealCause): boolean {
  return cause === "would-not-stop" || cause === "loop-blocked" || cause === "task-timeout";
}

function wordsOf({ cause, collateral }: HealRecord): string {
  if (collateral) return `lost its process to another slot (${cause})`;
  return cause === "returned" ? "the run returned" : `the run ended: ${cause}`;
}
