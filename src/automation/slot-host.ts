import { FleetError, isFleetError } from "../errors.ts";
import { cleanFields, cleanMessage } from "../internal/log-fields.ts";
import type { Log, LogFields, LogLevel } from "../internal/log.ts";
import { machineMs } from "../internal/timers.ts";
import { publisherOf } from "../primitives/event-publisher.ts";
import { Pools } from "../primitives/pools.ts";
import { Queues } from "../primitives/queues.ts";
import { SharedState } from "../primitives/state.ts";
import { Streams } from "../primitives/streams.ts";
import type { FromHost, SlotTask, ToHost } from "../protocol/host.ts";
import type { ClaimedTask } from "../protocol/task.ts";
import type { Store } from "../store/store.ts";
import { ConfigOffers } from "./config-offers.ts";
import { parseConfig } from "./config-resolve.ts";
import { hideSecrets } from "./config-secrets.ts";
import type { StopReason } from "./context.ts";
import type { Automation } from "./definition.ts";
import { KeptLeases } from "./kept-leases.ts";
import { ObservedUse } from "./observed-use.ts";
import { SlotRun } from "./slot-run.ts";
import { TaskDesk } from "./task-desk.ts";
import { shownText, traceOf } from "./trace.ts";
import { judge } from "./verdict.ts";
import { Vitals } from "./vitals.ts";

/** How often the leases are looked at: a process that was frozen stops its slots this soon after it goes on. */
const GUARD_MS = 250;
/** With each so many of these looks a sign of life is sent: twice a second. One timer for both wakes an idle process less often. */
const LOOKS_PER_REPORT = 2;

export interface SlotHostParts {
  automation: Automation;
  store: Store;
  worker: string;
  /** Under which name this process claims tasks, unique for ever, and for how long a claim holds unless it is renewed. */
  holder: string;
  leaseMs: number;
  say: (message: FromHost) => void;
  /** Called after "close", once everything has ended and was flushed. */
  onClosed: () => void;
  /** Where the supervisor finds, after a crash, which slot ran and what. */
  marks: RunMarks;
  /** Until when the lease behind a slot's run surely holds, as the supervisor knows it by now, though nothing was heard of it yet. */
  leasedUntil?: (slotId: number) => number;
  /** The same for leases on items and locks, by where this process has said that it looks for them. */
  keptUntil?: (place: number, number: number) => number;
}

/** What this process notes of its slots as they run; see `worker/flight-mark.ts`. */
export interface RunMarks {
  /** This slot's code goes on now. */
  slot(slotId: number): void;
  /** This slot begins these tasks now (of which `task` tells the first), or, with null, has none any more. */
  task(slotId: number, task: SlotTask | null, all: readonly ClaimedTask[]): void;
}

/** Runs slots of one automation in this process, as it is told, and reports. Both runtimes drive one of these. */
export class SlotHost {
  readonly #parts: SlotHostParts;
  readonly #use: ObservedUse;
  readonly #streams: Streams;
  readonly #queues: Queues;
  readonly #pools: Pools;
  readonly #shared: SharedState;
  readonly #kept: KeptLeases;
  readonly #desk: TaskDesk | undefined;
  readonly #runs = new Map<number, SlotRun>();
  readonly #offers: ConfigOffers;
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #vitals = new Vitals(GUARD_MS);
  #slotCount = 0;
  #closing = false;
  /** By slot id. */
  readonly #leasedUntil = new Map<number, number>();
  #revoked = false;
  #letGoUntil: number | undefined;
  #marked = -1;
  #looks = 0;

  constructor(parts: SlotHostParts) {
    this.#parts = parts;
    const log = this.#log({});
    const from = { kind: "automation", name: parts.automation.name } as const;
    this.#use = new ObservedUse({ store: parts.store.edges, from, log });
    const { onUse } = this.#use;
    this.#streams = new Streams(parts.store, { log, fence: (slotId) => this.#fence(slotId), onUse });
    this.#queues = new Queues(parts.store, { log, onUse });
    this.#kept = new KeptLeases(parts.say, parts.keptUntil);
    const held = { log, holder: parts.holder, keeper: this.#kept };
    this.#pools = new Pools(parts.store, { ...held, onUse });
    this.#shared = new SharedState(parts.store, held);
    this.#desk = this.#deskOf(parts);
    this.#offers = new ConfigOffers({
      check: (config) => parseConfig(parts.automation, config),
      take: async (slotId, config) => (await this.#runs.get(slotId)?.reconfigure(config)) ?? false,
      wordsOf: (error) => (isFleetError(error) ? shownText(error.message) : traceOf(error)),
      say: parts.say,
    });
    this.#timer = setInterval(() => this.#look(), GUARD_MS);
    this.#timer.unref();
  }

  hear(message: ToHost): void {
    switch (message.type) {
      case "run":
        return this.#start(message);
      case "config":
        return this.#offers.hear(message);
      case "stop":
        return this.#runs.get(message.slotId)?.stop(message.reason as StopReason, message.now);
      case "slot-count":
        this.#slotCount = message.slotCount;
        return;
      case "leases":
        for (const [id, until] of Object.entries(message.until)) this.#leasedUntil.set(Number(id), until);
        return;
      case "tasks":
        return this.#desk?.hear(message);
      case "kept":
        return this.#kept.hear(message.leases);
      case "judge":
        return void this.#judge(message);
      case "close":
        this.#closing = true;
        return void this.#closeWhenIdle();
    }
  }

  async #judge({ id, ...judged }: Extract<ToHost, { type: "judge" }>): Promise<void> {
    const { automation, say } = this.#parts;
    say({ type: "verdicts", id, verdicts: await judge(automation, judged) });
  }

  /** Nothing of it may reach the store any more, whatever its code goes on with. */
  revoke(): void {
    this.#revoked = true;
    this.#guard();
    this.#use.stop();
    void this.#desk?.close();
  }

  #start({ slotId, token, slotCount, config }: Extract<ToHost, { type: "run" }>): void {
    const { automation, store, worker, say } = this.#parts;
    this.#slotCount = slotCount;
    const run = new SlotRun({
      automation,
      slotId,
      token,
      config,
      slotCount: () => this.#slotCount,
      worker,
      store,
      streams: this.#streams,
      queues: this.#queues,
      pools: this.#pools,
      shared: this.#shared,
      desk: this.#desk,
      log: this.#log({ slot: slotId }),
      onUse: this.#use.onUse,
      onRunning: () => say({ type: "running", slotId }),
      fence: () => this.#fence(slotId),
      touched: (slot) => this.#touch(slot),
      markTask: (slot, task, all) => this.#markTask(slot, task, all),
    });
    this.#runs.set(slotId, run);
    void run.ended.then(({ outcome, error }) => {
      this.#report();
      this.#runs.delete(slotId);
      say({ type: "ended", slotId, outcome, error });
      void this.#closeWhenIdle();
    });
  }

  /**
   * Nothing of a slot may reach the store once its lease is not sure any more: it may run elsewhere by then. A process that was
   * frozen comes here before it hears anything from its supervisor.
   */
  #fence(slotId: number): void {
    if (this.#leaseIsSure(slotId)) return;
    const { name } = this.#parts.automation;
    throw new FleetError(
      "FLEET_LEASE_LOST",
      `"${name}": the lease of slot ${slotId} has ended; it may run elsewhere by now`,
    );
  }

  /** One that was only busy for long has not heard yet that its supervisor has kept the leases: it looks, rather than stop. */
  #leaseIsSure(slotId: number, at = machineMs()): boolean {
    if (this.#revoked) return false;
    const known = this.#leasedUntil.get(slotId) ?? 0;
    if (at < known) return true;
    const until = this.#parts.leasedUntil?.(slotId) ?? known;
    this.#leasedUntil.set(slotId, until);
    return at < until;
  }

  #look(): void {
    this.#vitals.turned();
    this.#guard();
    this.#looks += 1;
    if (this.#looks % LOOKS_PER_REPORT === 0) this.#report();
  }

  #guard(): void {
    this.#letGoInTime();
    for (const [slotId, run] of this.#runs) if (!this.#leaseIsSure(slotId)) run.stop("lease-lost");
  }

  /** All leases end before the next look: the store is away. What waits for it must not be done when it is back, for others run then. */
  #letGoInTime(): void {
    const now = machineMs();
    const soon = now + GUARD_MS;
    const slots = [...this.#runs.keys()];
    if (slots.length > 0)
      this.#letGoUntil = slots.every((slotId) => !this.#leaseIsSure(slotId, soon)) ? soon : undefined;
    if (this.#letGoUntil === undefined) return;
    this.#parts.store.letGo?.();
    // Once more when they have ended, also when the runs ended sooner: what is sent in between waits as well.
    if (now >= this.#letGoUntil) this.#letGoUntil = undefined;
  }

  /** Code of a slot is about to go on. This process may have been frozen until now: then it must not. */
  #touch(slotId: number): void {
    if (!this.#leaseIsSure(slotId)) this.#runs.get(slotId)?.stop("lease-lost");
    if (this.#marked === slotId) return;
    this.#marked = slotId;
    this.#parts.marks.slot(slotId);
  }

  /** Also tells that this slot's code goes on. */
  #markTask(slotId: number, task: SlotTask | null, all: readonly ClaimedTask[]): void {
    if (task !== null) {
      this.#marked = slotId;
      this.#use.onUse("run", this.#parts.automation.name, all.length);
    }
    this.#parts.marks.task(slotId, task, all);
  }

  #deskOf({ automation, store, holder, worker, leaseMs }: SlotHostParts): TaskDesk | undefined {
    if (automation.kind !== "batch") return undefined;
    const { tasks } = automation;
    const { rateLimit: limit } = tasks.options;
    return new TaskDesk({
      store: store.queues,
      queue: tasks.name,
      declare: () => this.#queues.declare(tasks, "owner"),
      holder,
      worker,
      leaseMs,
      limited: tasks.options.concurrency > 0,
      permits: limit === null ? undefined : { limits: store.state.limits, limit },
      crashLimit: tasks.options.crashLimit,
      log: this.#log({}),
    });
  }

  #report(): void {
    const slots = [...this.#runs.values()].map((run) => run.activity());
    this.#parts.say({ type: "activity", slots, vitals: this.#vitals.read() });
  }

  async #closeWhenIdle(): Promise<void> {
    if (!this.#closing || this.#runs.size > 0) return;
    this.#closing = false;
    clearInterval(this.#timer);
    await Promise.all([this.#streams.close(), this.#desk?.close()]);
    await Promise.all([this.#queues.close(), this.#pools.close(), this.#shared.close()]);
    await publisherOf(this.#parts.store.events).flushed();
    await this.#use.close();
    this.#parts.onClosed();
  }

  #log(fields: LogFields): Log {
    const at = (level: LogLevel) => (message: string, more?: LogFields) =>
      this.#parts.say({
        type: "log",
        level,
        message: cleanMessage(message, hideSecrets),
        fields: cleanFields([{ automation: this.#parts.automation.name, ...fields }, more], hideSecrets),
      });
    return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  }
}
