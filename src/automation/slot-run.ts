import { setMaxListeners } from "node:events";
import { messageOf } from "../errors.ts";
import type { Log, LogFields, LogLevel } from "../internal/log.ts";
import { LeaseBook } from "../primitives/lease-book.ts";
import type { OnUse } from "../primitives/on-use.ts";
import type { Pools } from "../primitives/pools.ts";
import type { Queues } from "../primitives/queues.ts";
import type { SharedState } from "../primitives/state.ts";
import type { Streams } from "../primitives/streams.ts";
import type { RunOutcome, SlotActivity, SlotTask } from "../protocol/host.ts";
import type { ClaimedTask } from "../protocol/task.ts";
import type { Store } from "../store/store.ts";
import { Activity } from "./activity.ts";
import { parseConfig } from "./config-resolve.ts";
import { inSlot } from "./current-slot.ts";
import type { Context, StopReason } from "./context.ts";
import type { Automation } from "./definition.ts";
import { BatchRun } from "./batch-run.ts";
import { slotContext, type SlotContextParts } from "./slot-context.ts";
import type { TaskScope } from "./task-context.ts";
import type { TaskDesk } from "./task-desk.ts";
import { isStoreLost } from "./store-lost.ts";
import { shownText, traceOf } from "./trace.ts";

export interface SlotRunParts {
  automation: Automation;
  slotId: number;
  /** Fencing token of the slot's lease. */
  token: string;
  /** Config in its input form, as it stands in the store. */
  config: unknown;
  slotCount: () => number;
  worker: string;
  store: Store;
  streams: Streams;
  queues: Queues;
  pools: Pools;
  shared: SharedState;
  /** Where slots of a batch automation get their tasks. */
  desk: TaskDesk | undefined;
  log: Log;
  onUse: OnUse;
  /** Called once, when user code is about to start. */
  onRunning: () => void;
  /** Throws `FLEET_LEASE_LOST` when the slot's lease is not sure any more: before every effect on the store. */
  fence: () => void;
  /** Called whenever this slot's own code is about to go on. */
  touched: (slotId: number) => void;
  /** Notes the tasks that this slot begins to run; see `BatchRunParts`. */
  markTask: (slotId: number, task: SlotTask | null, all: readonly ClaimedTask[]) => void;
}

export interface Ended {
  outcome: RunOutcome;
  error: string | null;
}

/** One run of one slot: parse the config, build the context, call `runSlot` or run tasks, and name how it ended. */
export class SlotRun {
  readonly ended: Promise<Ended>;
  readonly #parts: SlotRunParts;
  readonly #abort = new AbortController();
  readonly #activity: Activity;
  readonly #leases = new LeaseBook();
  #config: unknown;
  #context: Context | undefined;
  #batch: BatchRun | undefined;

  constructor(parts: SlotRunParts) {
    this.#parts = parts;
    this.#activity = new Activity(() => parts.touched(parts.slotId));
    // User code may wait in many places at once; more than ten listeners are no leak.
    setMaxListeners(0, this.#abort.signal);
    this.ended = inSlot(parts.slotId, () => this.#run());
  }

  /** A slot that runs a task finishes it first, unless `now`. */
  stop(reason: StopReason, now = false): void {
    if (this.#batch === undefined) this.#abort.abort(reason);
    else this.#batch.stop(reason, now);
  }

  activity(): SlotActivity {
    return { ...this.#activity.report(this.#parts.slotId), task: this.#batch?.task ?? null };
  }

  /**
   * Takes a new config live. Throws where it does not fit; the old one stays in place then. False when the run has not begun or is
   * over, also by the time that its code has answered: nobody is there to take it, and the slot's next run is not to be taken for this one.
   */
  async reconfigure(config: unknown): Promise<boolean> {
    const parsed = await parseConfig(this.#parts.automation, config);
    const context = this.#context;
    if (context === undefined || this.#abort.signal.aborted) return false;
    const before = this.#config;
    this.#config = parsed;
    try {
      await this.#parts.automation.options.onConfig?.(parsed, context);
    } catch (error) {
      this.#config = before;
      if (!this.#abort.signal.aborted) throw error;
    }
    return !this.#abort.signal.aborted;
  }

  async #run(): Promise<Ended> {
    const { automation, onRunning } = this.#parts;
    const { signal } = this.#abort;
    try {
      this.#config = await parseConfig(automation, this.#parts.config);
    } catch (error) {
      return { outcome: "config-invalid", error: shownText(messageOf(error)) };
    }
    if (signal.aborted) return { outcome: "stopped", error: null };
    const parts: SlotContextParts = {
      ...this.#parts,
      config: () => this.#config,
      signal,
      activity: this.#activity,
      leases: this.#leases,
      countTurns: automation.kind === "continuous",
    };
    this.#context = slotContext(parts);
    const work = this.#prepare(parts, this.#context);
    onRunning();
    this.#activity.progress();
    try {
      await work();
      const stopped = signal.aborted || automation.kind === "batch";
      return { outcome: stopped ? "stopped" : "returned", error: null };
    } catch (error) {
      // What code throws because it was told to end (an aborted fetch, say) is an orderly end.
      if (signal.aborted) return { outcome: "stopped", error: null };
      return { outcome: isStoreLost(error) ? "store-lost" : "failed", error: traceOf(error) };
    } finally {
      // Whatever the run left going (loops beside the one that failed, waiting pops) ends with it: the next run starts alone.
      this.#abort.abort("ended" satisfies StopReason);
      // Not waited for: the store may be away, and then leases end by their time.
      void this.#leases.releaseAll();
    }
  }

  /** What the run consists of. */
  #prepare(parts: SlotContextParts, context: Context): () => Promise<void> {
    const { automation, desk, slotId, markTask } = this.#parts;
    if (automation.kind === "continuous") return async () => automation.options.runSlot(context);
    if (desk === undefined) throw new Error("a batch automation needs a desk");
    const scope: TaskScope = {
      slot: context,
      log: (taskId) => (taskId === null ? parts.log : naming(taskId, parts.log)),
      ofTask: (taskSignal, leases) => slotContext({ ...parts, signal: taskSignal, leases }),
    };
    const batch = new BatchRun({
      automation,
      slotId,
      desk,
      activity: this.#activity,
      scope,
      mark: (task, all) => markTask(slotId, task, all),
    });
    this.#batch = batch;
    return () => batch.run();
  }
}

function naming(task: string, log: Log): Log {
  const at = (level: LogLevel) => (message: string, fields?: LogFields) =>
    log[level](message, { task, ...fields });
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
