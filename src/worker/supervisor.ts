import { hostname } from "node:os";
import { FLEET_TOPICS } from "../contracts/life-cycle.ts";
import type { TopicContract } from "../contracts/topic.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import { eventBus, type EventInput, type Events } from "../primitives/events.ts";
import type { SlotHealth } from "../protocol/health.ts";
import type { Program } from "../protocol/program.ts";
import type { SlotRef } from "../protocol/spec.ts";
import type { DrainStatus, DrainWish, WorkerInfo, WorkerPartition } from "../protocol/status.ts";
import type { Store } from "../store/store.ts";
import { Books } from "./books.ts";
import { DrainDeadline } from "./drain-deadline.ts";
import { HostSide } from "./host-side.ts";
import { ChildLeaseKeeper } from "./lease-keeper.ts";
import { Membership } from "./membership.ts";
import type { Runtime } from "./runtime.ts";
import type { SlotEnd } from "./slots.ts";
import { StoreSide } from "./store-side.ts";
import { TaskKeeper } from "./task-keeper.ts";
import type { WorkerTimings } from "./timings.ts";
import { Turns } from "./turns.ts";
import { VerdictDesk } from "./verdicts.ts";

/** How often leases, progress and limits are looked at, whether or not the store answers. */
const GUARD_MS = 100;
/** The same while all runs as it should and no lease ends meanwhile: a worker that only waits is not to cost what one that works does. */
const CALM_MS = 500;
/** A child sends nothing by a lease that has ended; for so long what it sent before may still arrive here. */
const LAST_WORDS_MS = 1000;
/**
 * How long the rest of a drain may take, once all slots have ended or its deadline has passed: the store may be away. With what an end
 * of the process costs, a worker is gone 2 s after its deadline.
 */
const LEAVE_MS = 1500;
/** How long tasks may take to end once they are interrupted, at the deadline of a drain. */
const INTERRUPT_MS = 1000;
/** How much of that is left for signing off, however long killing took. */
const SIGN_OFF_MS = 500;

export interface SupervisorParts {
  store: Store;
  worker: WorkerInfo;
  program: Program;
  runtime: Runtime;
  timings: WorkerTimings;
  partition: WorkerPartition;
  log: Log;
  /** Told that somebody wants this worker to drain; maybe more than once. */
  asked: (request: DrainRequest) => void;
  /** Told that the store has been away for so long that the worker is to leave; again and again. */
  lost: () => void;
}

export interface DrainRequest {
  by: string;
  deadlineSeconds: number;
}

/**
 * Keeps what runs in line with what is desired. User code never runs here.
 *
 * Two halves that do not wait for each other: `StoreSide` talks with the store and may be slow or fail; `HostSide` compares and acts on
 * what is known, at once. So a store that hangs never keeps a lost lease's slot running. What they share stands in `Books`.
 */
export class Supervisor {
  readonly #parts: SupervisorParts;
  readonly #books: Books;
  readonly #storeSide: StoreSide;
  readonly #hostSide: HostSide;
  readonly #keeper: TaskKeeper;
  readonly #leases: ChildLeaseKeeper;
  readonly #events: Events;
  readonly #verdicts: VerdictDesk;
  #guard: ReturnType<typeof setTimeout> | undefined;
  /** The last drain that was asked of this worker: each view shows it again. */
  #wish: DrainWish | undefined;
  /** Of the drain under way. */
  #drain: { status: DrainStatus; deadline: DrainDeadline } | undefined;

  constructor(parts: SupervisorParts) {
    const { store, worker, program, timings, partition, runtime, log } = parts;
    this.#parts = parts;
    const member = new Membership({ store, worker, program, ttlMs: timings.leaseMs, log });
    const books = new Books({ program, member, timings, partition });
    this.#books = books;
    this.#events = eventBus({ store: store.events, source: worker.id, own: true });
    const changed = () => this.#hostSide.act();
    const turns = new Turns({ registry: store.registry, books, log, changed });
    this.#keeper = new TaskKeeper({
      queues: store.queues,
      books,
      log,
      hosts: () => this.#hostSide.takers(),
    });
    this.#leases = new ChildLeaseKeeper({
      pools: store.pools,
      locks: store.state.locks,
      beatMs: timings.beatMs,
      log,
    });
    this.#hostSide = new HostSide({
      books,
      runtime,
      turns,
      log,
      started: (slot) => this.#announce(FLEET_TOPICS.slotStarted, this.#about(slot)),
      rejected: (slot, config) =>
        this.#announce(FLEET_TOPICS.configRejected, { ...this.#about(slot), ...config }),
      lost: (tasks) => this.#keeper.lost(tasks),
      holds: (host, message) => this.#leases.hear(host, message),
      judged: (answer) => this.#verdicts.hear(answer),
      gone: (holder, orderly) => this.#leases.gone(holder, orderly),
      ended: (slot, end, health) => this.#onEnded(slot, end, health),
      stirred: () => this.#lookAgain(),
    });
    this.#verdicts = new VerdictDesk({
      events: store.events,
      worker,
      hostOf: (automation) => this.#hostSide.listener(automation),
      log,
    });
    this.#storeSide = new StoreSide({
      store,
      books,
      turns,
      log,
      emptied: () => this.#keeper.declareAnew(),
      statuses: () => this.#hostSide.statuses(),
      asked: (wish) => this.#onAsked(wish),
      changed,
    });
  }

  /** Process ids of the children. */
  get pids(): number[] {
    return this.#hostSide.pids;
  }

  start(): void {
    if (this.#guard !== undefined) return;
    this.#guard = setTimeout(() => this.#look(), GUARD_MS);
    this.#storeSide.start();
    this.#keeper.start();
    this.#verdicts.start();
    this.#announce(FLEET_TOPICS.workerOnline, { worker: this.#books.member.id, host: hostname() });
  }

  #look(): void {
    // The store is away. What the children have sent through here must not be done when it is back, also what is read of them only now.
    if (this.#leasesAreOver()) this.#parts.store.letGo?.();
    this.#hostSide.guard();
    if (this.#books.partitioned(monotonicMs()).leaves) this.#parts.lost();
    this.#lookAgain();
  }

  #leasesAreOver(): boolean {
    return this.#books.leases.areOver(monotonicMs(), { aheadMs: GUARD_MS, sinceMs: LAST_WORDS_MS });
  }

  #lookAgain(): void {
    if (this.#guard === undefined) return;
    clearTimeout(this.#guard);
    const ending =
      this.#books.leases.someEndBy(monotonicMs() + CALM_MS + 2 * GUARD_MS) || this.#leasesAreOver();
    const later = this.#hostSide.calm && !ending;
    this.#guard = setTimeout(() => this.#look(), later ? CALM_MS : GUARD_MS);
  }

  /** Puts another program in place; unchanged automations go on untouched. */
  async replace(program: Program): Promise<void> {
    this.#books.program = program;
    this.#books.member.setProgram(program);
    await this.#storeSide.programChanged();
  }

  /** Ends all slots, gives their leases back and leaves. True when slots had to be killed. `by`: who asked; null for a signal. */
  async drain(deadlineMs: number, by: string | null): Promise<boolean> {
    const { slots } = this.#books;
    const { log, runtime } = this.#parts;
    const deadline = new DrainDeadline(deadlineMs, monotonicMs());
    const since = this.#storeTime();
    const drain = { deadline, status: { since, until: since + deadlineMs, by, forced: false } };
    this.#drain = drain;
    this.#tellDrain();
    do await this.#hostSide.untilSettled(deadline.left(monotonicMs()), deadline.moved);
    while (this.#hostSide.hosts > 0 && deadline.left(monotonicMs()) > 0);
    const forced = this.#hostSide.hosts > 0;
    if (forced) {
      // For whoever waits for it to leave: the record outlives this process.
      drain.status = { ...drain.status, forced };
      this.#tellDrain();
    }
    if (forced && this.#hostSide.interrupt() > 0) {
      log.warn("the drain's deadline has passed: interrupting tasks");
      await this.#hostSide.untilSettled(INTERRUPT_MS);
    }
    const until = monotonicMs() + LEAVE_MS;
    if (this.#hostSide.hosts > 0) {
      log.warn("the drain's deadline has passed: killing what still runs", { slots: slots.busy() });
      this.#hostSide.killAll();
      await this.#hostSide.untilSettled(LEAVE_MS - SIGN_OFF_MS);
    }
    clearTimeout(this.#guard);
    this.#guard = undefined;
    // Tasks first: without a worker that leaves in good order they come back only when their claims expire.
    const leaving = Promise.all([this.#keeper.stop(), this.#leases.stop(), this.#verdicts.stop()])
      .then(() => this.#storeSide.leave())
      .then(() => this.#sayGoodbye());
    const left = Math.max(SIGN_OFF_MS, until - monotonicMs());
    await Promise.race([leaving, new Promise((resolve) => setTimeout(resolve, left).unref())]);
    this.#keeper.giveUp();
    this.#leases.giveUp();
    await runtime.close();
    return forced;
  }

  /** Whoever started this worker is told, and drains it; a later wish, with another deadline, moves that of the drain under way. */
  #onAsked(wish: DrainWish): void {
    const before = this.#wish;
    if (before?.at === wish.at && before.deadlineMs === wish.deadlineMs) return;
    this.#wish = wish;
    const { by, deadlineMs } = wish;
    const deadlineSeconds = deadlineMs / 1000;
    this.#parts.asked({ by, deadlineSeconds });
    const drain = this.#drain;
    if (drain === undefined || drain.status.forced) return;
    this.#parts.log.info(`asked by ${by}: the drain may take ${deadlineSeconds} s from now on`);
    drain.deadline.move(deadlineMs, monotonicMs());
    drain.status = { ...drain.status, until: this.#storeTime() + deadlineMs, by };
    this.#tellDrain();
  }

  #tellDrain(): void {
    if (this.#drain !== undefined) this.#books.member.drain(this.#drain.status);
    void this.#storeSide.tick();
  }

  #storeTime(): number {
    return Math.round(monotonicMs() + this.#books.storeOffset);
  }

  #onEnded(slot: SlotRef, end: SlotEnd, health: SlotHealth | undefined): void {
    const fault = health !== undefined || end.outcome === "config-invalid";
    const { outcome, cause, error } = end;
    this.#announce(fault ? FLEET_TOPICS.slotCrashed : FLEET_TOPICS.slotStopped, {
      ...this.#about(slot),
      outcome,
      cause,
      error,
    });
    if (health?.circuit) {
      this.#announce(FLEET_TOPICS.slotCircuitOpened, { ...this.#about(slot), reason: health.circuit.reason });
    }
    const token = this.#books.leases.tokenOf(slot);
    if (health !== undefined && token !== undefined) {
      this.#parts.store.registry
        .setSlotHealth({ ...slot, token, health })
        .catch((thrown: unknown) =>
          this.#parts.log.debug("a slot's health was not kept", { error: messageOf(thrown) }),
        );
    }
    // An ended slot may have to be given back, or claimed by its next worker: do not wait for the interval.
    void this.#storeSide.tick();
  }

  #about({ automation, slotId }: SlotRef): { automation: string; slot: number; worker: string } {
    return { automation, slot: slotId, worker: this.#books.member.id };
  }

  async #sayGoodbye(): Promise<void> {
    const { id } = this.#books.member;
    await this.#events
      .publish(FLEET_TOPICS.workerOffline, { worker: id, reason: "drain" })
      .catch(() => undefined);
  }

  #announce<T extends TopicContract>(topic: T, payload: EventInput<T>): void {
    this.#events
      .publish(topic, payload)
      .catch((error: unknown) =>
        this.#parts.log.debug(`${topic.name} was not published`, { error: messageOf(error) }),
      );
  }
}
