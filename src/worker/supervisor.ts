import { hostname } from "node:os";
import { applyDeploy } from "../control/deploy.ts";
import { Leader } from "../control/leader.ts";
import { messageOf } from "../errors.ts";
import { Throttle, type Log } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import { eventBus, type Events } from "../primitives/events.ts";
import type { FromHost } from "../protocol/host.ts";
import type { Program } from "../protocol/program.ts";
import { slotKey, type SlotRef } from "../protocol/spec.ts";
import type { WorkerInfo } from "../protocol/status.ts";
import type { FleetView, Store, Watch } from "../store/store.ts";
import { HeldLeases } from "./held-leases.ts";
import { Hosts, type HostEnd } from "./hosts.ts";
import { reconcile, type Action } from "./reconcile.ts";
import type { Runtime } from "./runtime.ts";
import { Slots } from "./slots.ts";
import type { WorkerTimings } from "./timings.ts";
import { planFor, type Plan } from "./wanted.ts";

/** How often leases are checked against the own clock, whether or not the store answers. */
const GUARD_MS = 100;
/** A hint can be lost: the view is read anew at least so often. */
const VIEW_MS = 15_000;
/** How long leaving may take once all slots have ended. */
const LEAVE_MS = 3000;

export interface SupervisorParts {
  store: Store;
  worker: WorkerInfo;
  program: Program;
  runtime: Runtime;
  timings: WorkerTimings;
  log: Log;
}

/**
 * Keeps what runs in line with what is desired. User code never runs here.
 *
 * Two movements that do not wait for each other: `#tick` talks with the store (beat, view, claims, leader's work) and may be slow
 * or fail; `#act` compares and acts on what is known, at once, without the store: on the guard's interval, on every message of a
 * host, after every tick. So a store that hangs never keeps a lost lease's slot running.
 */
export class Supervisor {
  readonly #parts: SupervisorParts;
  readonly #log: Log;
  readonly #leases = new HeldLeases();
  readonly #slots: Slots;
  readonly #hosts: Hosts;
  readonly #leader: Leader;
  readonly #events: Events;
  readonly #trouble = new Throttle(10_000);
  #program: Program;
  #worker: WorkerInfo;
  #view: FleetView | undefined;
  /** The latest that the store has told. */
  #revision: number | undefined;
  #viewReadAt = Number.NEGATIVE_INFINITY;
  #beatAt = Number.NEGATIVE_INFINITY;
  /** Store time minus own monotonic time, from the last beat. */
  #storeOffset = Date.now() - monotonicMs();
  #reported = "";
  #ticking = false;
  #again = false;
  #stopped = false;
  #timers: ReturnType<typeof setInterval>[] = [];
  #watch: Watch | undefined;
  #settled: (() => void)[] = [];

  constructor(parts: SupervisorParts) {
    const { store, worker, timings, log } = parts;
    this.#parts = parts;
    this.#log = log;
    this.#program = parts.program;
    this.#worker = worker;
    this.#slots = new Slots(timings);
    this.#hosts = new Hosts(
      parts.runtime,
      (key, message) => this.#onMessage(key, message),
      (end) => this.#onHostEnd(end),
    );
    this.#leader = new Leader({
      store,
      candidate: `${worker.id} ${worker.incarnation}`,
      leaseMs: timings.leaseMs,
      sweepMs: timings.sweepMs,
      log,
    });
    this.#events = eventBus({ store: store.events, source: worker.id, own: true });
  }

  /** Process ids of the children. */
  get pids(): number[] {
    return this.#hosts.pids();
  }

  start(): void {
    const { beatMs } = this.#parts.timings;
    this.#timers = [setInterval(() => this.#guard(), GUARD_MS), setInterval(() => void this.#tick(), beatMs)];
    this.#watch = this.#parts.store.registry.watch(() => {
      this.#revision = undefined;
      this.#viewReadAt = Number.NEGATIVE_INFINITY;
      void this.#tick();
    });
    this.#watch.ready.catch(() => undefined);
    this.#announce("fleet.worker.online", { worker: this.#worker.id, host: hostname() });
    void this.#tick();
  }

  /** Puts another program in place; unchanged automations go on untouched. */
  async replace(program: Program): Promise<void> {
    this.#program = program;
    this.#worker = { ...this.#worker, automations: program.automations.map(({ manifest }) => manifest.name) };
    await this.#register();
    await applyDeploy(this.#parts.store.registry, program, this.#log);
    this.#viewReadAt = Number.NEGATIVE_INFINITY;
    await this.#tick();
  }

  /** Ends all slots, gives their leases back and leaves. True when slots had to be killed. */
  async drain(deadlineMs: number): Promise<boolean> {
    this.#worker = { ...this.#worker, draining: true };
    this.#act();
    void this.#register().catch(() => undefined);
    await this.#untilSettled(deadlineMs);
    const forced = this.#hosts.size > 0;
    if (forced) {
      this.#log.warn("the drain's deadline has passed: killing what still runs", {
        slots: this.#slots.busy(),
      });
      for (const { key } of this.#hosts.actual()) this.#hosts.kill(key);
      await this.#untilSettled(2000);
    }
    this.#stopped = true;
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.race([this.#leave(), new Promise((resolve) => setTimeout(resolve, LEAVE_MS).unref())]);
    return forced;
  }

  async #leave(): Promise<void> {
    const { registry } = this.#parts.store;
    try {
      await this.#leader.resign();
      await registry.deregister({ workerId: this.#worker.id, incarnation: this.#worker.incarnation });
      await this.#events.publish("fleet.worker.offline", { worker: this.#worker.id, reason: "drain" });
      await this.#watch?.close();
    } catch (error) {
      this.#log.warn("could not sign off from the store; this worker will count as lost", {
        error: messageOf(error),
      });
    }
  }

  // ── With the store ─────────────────────────────────────────────────────────────────────────────────────────────────

  async #tick(): Promise<void> {
    if (this.#ticking || this.#stopped) {
      this.#again = true;
      return;
    }
    this.#ticking = true;
    try {
      do {
        this.#again = false;
        await this.#beat();
        if (!this.#worker.draining) await this.#leader.turn(this.#revision);
        await this.#look();
        await this.#claim();
        this.#act();
        await this.#release();
      } while (this.#again && !this.#stopped);
    } catch (error) {
      this.#trouble.pass(monotonicMs(), () =>
        this.#log.warn("the store does not answer; trying again", { error: messageOf(error) }),
      );
    } finally {
      this.#ticking = false;
    }
  }

  async #beat(): Promise<void> {
    const { store, timings } = this.#parts;
    const started = monotonicMs();
    if (started - this.#beatAt < timings.beatMs * 0.8) return;
    const leases = this.#leases.all();
    const slots = this.#slots.statuses((at) => at + this.#storeOffset);
    const text = JSON.stringify(slots);
    const result = await store.registry.beat({
      workerId: this.#worker.id,
      incarnation: this.#worker.incarnation,
      ttlMs: timings.leaseMs,
      leaseMs: timings.leaseMs,
      leases,
      ...(text === this.#reported ? {} : { slots }),
    });
    if (result.outcome === "unknown") return this.#reenter();
    this.#beatAt = started;
    this.#reported = text;
    this.#storeOffset = result.now - monotonicMs();
    this.#leases.renewed(leases, result.lost, started + timings.leaseMs);
    for (const lost of result.lost)
      this.#log.warn("lost a slot: its lease has gone to somebody else", { slot: slotKey(lost) });
    this.#revision = result.revision;
    if (result.revision !== this.#view?.revision) this.#viewReadAt = Number.NEGATIVE_INFINITY;
  }

  /** The store has forgotten this worker (it was away for long, or the store came back empty). */
  async #reenter(): Promise<void> {
    this.#log.warn("the store does not know this worker any more; registering anew");
    if (!(await this.#register())) return;
    this.#reported = "";
    await this.#reseed();
    this.#viewReadAt = Number.NEGATIVE_INFINITY;
  }

  /** Where the store has lost desired state, what this worker knew last is better than nothing; generations never go back. */
  async #reseed(): Promise<void> {
    const { registry } = this.#parts.store;
    const { desired } = await registry.view();
    for (const [name, known] of Object.entries(this.#view?.desired ?? {})) {
      if (desired[name] === undefined) await registry.putDesired({ name, desired: known, expected: 0 });
    }
    await applyDeploy(registry, this.#program, this.#log);
  }

  async #register(): Promise<boolean> {
    const { store, timings } = this.#parts;
    const manifests = this.#program.automations.map(({ manifest }) => manifest);
    const result = await store.registry.register({ worker: this.#worker, manifests, ttlMs: timings.leaseMs });
    if (result.outcome === "taken") {
      this.#trouble.pass(monotonicMs(), () =>
        this.#log.error(`another live worker bears the id "${this.#worker.id}" now`, {
          host: result.host,
          pid: result.pid,
        }),
      );
    }
    return result.outcome === "registered";
  }

  async #look(): Promise<void> {
    const now = monotonicMs();
    if (now - this.#viewReadAt < VIEW_MS) return;
    this.#view = await this.#parts.store.registry.view();
    this.#viewReadAt = now;
    for (const [automation, { slots }] of Object.entries(this.#view.desired))
      this.#hosts.tellSlotCount(automation, slots);
  }

  async #claim(): Promise<void> {
    const { claim } = this.#plan();
    if (claim.length === 0) return;
    const { store, timings } = this.#parts;
    const started = monotonicMs();
    const { id: workerId, incarnation } = this.#worker;
    const granted = await store.registry.claimSlots({
      workerId,
      incarnation,
      leaseMs: timings.leaseMs,
      slots: claim,
    });
    this.#leases.granted(granted, started + timings.leaseMs);
  }

  /** Gives back what is not wanted here any more and has ended. */
  async #release(): Promise<void> {
    const over = [...this.#plan().unwanted.keys()];
    const leases = this.#leases
      .all()
      .filter((lease) => over.includes(slotKey(lease)) && this.#slots.isIdle(lease));
    if (leases.length === 0) return;
    for (const lease of leases) {
      this.#leases.drop(lease);
      this.#slots.forget(lease);
    }
    await this.#parts.store.registry.releaseSlots({ leases });
  }

  // ── Without the store ──────────────────────────────────────────────────────────────────────────────────────────────

  #guard(): void {
    this.#leases.dropUnsure(monotonicMs());
    this.#act();
  }

  #plan(): Plan {
    if (this.#view === undefined) return { claim: [], wanted: [], unwanted: new Map() };
    return planFor({
      workerId: this.#worker.id,
      view: this.#view,
      program: this.#program,
      held: this.#leases.all(),
      draining: this.#worker.draining,
    });
  }

  #act(): void {
    const { wanted, unwanted } = this.#plan();
    const slots = this.#slots.actual();
    for (const slot of slots) {
      if (!this.#leases.has(slot))
        unwanted.set(slotKey(slot), this.#worker.draining ? "drain" : "lease-lost");
    }
    const now = monotonicMs();
    const actions = reconcile(
      {
        wanted,
        slots,
        hosts: this.#hosts.actual(),
        unwanted,
        hostRetryAt: this.#hosts.retryAt(),
        // A drain has a deadline of its own.
        stopGraceMs: this.#worker.draining ? Number.POSITIVE_INFINITY : this.#parts.timings.stopGraceMs,
      },
      now,
    );
    for (const action of actions) this.#carryOut(action, now);
    if (this.#slots.busy() === 0 && this.#hosts.size === 0)
      for (const resolve of this.#settled.splice(0)) resolve();
  }

  #carryOut(action: Action, now: number): void {
    switch (action.do) {
      case "start-host": {
        const program = this.#program.automations.find(({ manifest }) => manifest.name === action.automation);
        if (program !== undefined) this.#hosts.start(action.host, program, monotonicMs);
        return;
      }
      case "close-host":
        return this.#hosts.close(action.host);
      case "kill-host":
        this.#log.warn("slots do not end in time: killing their process", { host: action.host });
        return this.#hosts.kill(action.host);
      case "run": {
        const { slotId, token, slotCount, config, configKey } = action.slot;
        this.#slots.run(action.slot, action.host, now);
        return this.#hosts.tell(action.host, { type: "run", slotId, token, slotCount, config, configKey });
      }
      case "reconfigure": {
        const { slotId, config, configKey, generation } = action.slot;
        this.#slots.configApplied(action.slot, configKey, generation, now);
        return this.#hosts.tell(action.host, { type: "config", slotId, config, configKey });
      }
      case "stop":
        this.#slots.stopping(action.slot, action.reason, now);
        return this.#hosts.tell(action.host, {
          type: "stop",
          slotId: action.slot.slotId,
          reason: action.reason,
        });
    }
  }

  #onMessage(host: string, message: FromHost): void {
    const now = monotonicMs();
    const automation = host.slice(0, host.search(/[/@]/));
    const at = (slotId: number): SlotRef => ({ automation, slotId });
    switch (message.type) {
      case "log":
        return this.#log[message.level](message.message, message.fields);
      case "activity":
        for (const activity of message.slots) this.#slots.active(at(activity.slotId), activity);
        return;
      case "running":
        this.#slots.running(at(message.slotId), now);
        this.#announce("fleet.slot.started", { automation, slot: message.slotId, worker: this.#worker.id });
        break;
      case "ended":
        this.#onSlotEnd(at(message.slotId), message.outcome, message.error);
        break;
      case "unfit":
        this.#log.error(`"${automation}" cannot be started`, { error: message.error });
        break;
      case "ready":
      case "fatal":
      case "config-applied":
        break;
    }
    this.#act();
  }

  #onHostEnd({ key, automation, error }: HostEnd): void {
    const slots = this.#slots.on(key);
    if (error !== null && slots.length > 0)
      this.#log.error(`the process of "${automation}" has ended`, {
        slots: slots.map((slot) => slot.slotId),
        error,
      });
    for (const slot of slots) this.#onSlotEnd(slot, this.#worker.draining ? "stopped" : "failed", error);
    this.#act();
  }

  #onSlotEnd(
    slot: SlotRef,
    outcome: Extract<FromHost, { type: "ended" }>["outcome"],
    error: string | null,
  ): void {
    this.#slots.ended(slot, outcome, error, monotonicMs());
    const { automation, slotId } = slot;
    if (outcome === "failed" || outcome === "config-invalid")
      this.#log.error(`${slotKey(slot)} has failed`, { error });
    const topic =
      outcome === "failed" || outcome === "config-invalid" ? "fleet.slot.crashed" : "fleet.slot.stopped";
    this.#announce(topic, { automation, slot: slotId, worker: this.#worker.id, outcome, error });
    // An ended slot may have to be given back, or claimed by its next worker: do not wait for the interval.
    void this.#tick();
  }

  #announce(topic: string, payload: unknown): void {
    this.#events
      .publish(topic, payload)
      .catch((error: unknown) => this.#log.debug(`${topic} was not published`, { error: messageOf(error) }));
  }

  #untilSettled(ms: number): Promise<void> {
    this.#act();
    if (this.#slots.busy() === 0 && this.#hosts.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#settled.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}
