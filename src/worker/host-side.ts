import { Throttle, type Log } from "../internal/log.ts";
import { machineMs, monotonicMs } from "../internal/timers.ts";
import type { SlotHealth } from "../protocol/health.ts";
import type { FromHost, LeaseMessage, ToHost } from "../protocol/host.ts";
import { recyclesOf, slotKey, type SlotRef } from "../protocol/spec.ts";
import type { RejectedConfig, SlotStatus } from "../protocol/status.ts";
import type { VerdictAnswer } from "../protocol/verdict.ts";
import { blame } from "./blame.ts";
import type { Books } from "./books.ts";
import { Hosts, type HostEnd, type LeaseHost, type TaskHost } from "./hosts.ts";
import { lostTasks, type LostTasks } from "./lost-tasks.ts";
import { hostKeyOf, reconcile, type Action, type WantedSlot } from "./reconcile.ts";
import type { Runtime } from "./runtime.ts";
import type { ConfigMessage } from "./slot-config.ts";
import type { SlotEnd } from "./slots.ts";
import type { Turns } from "./turns.ts";
import { epochKeyOf, possibleHosts } from "./wanted.ts";

/** The guard looks twice a second at least; a gap of so long means that this process did not run. */
const FROZEN_MS = 1000;
/** While all is calm it is compared anew only so often; with each beat the store side has it compared as well. */
const SOON_ENOUGH_MS = 400;

export interface HostSideParts {
  books: Books;
  runtime: Runtime;
  turns: Pick<Turns, "mayMove" | "ask" | "end">;
  log: Log;
  started: (slot: SlotRef) => void;
  /** A run has refused a config and goes on with the one that it has; said once for each config. */
  rejected: (slot: SlotRef, config: RejectedConfig) => void;
  /** A host that claims tasks has ended, with what it held. */
  lost: (tasks: LostTasks) => void;
  /** A host said something of the leases that it holds on items and locks. */
  holds: (host: LeaseHost, message: LeaseMessage) => void;
  /** A host has judged payloads. */
  judged: (answer: VerdictAnswer) => void;
  /** A host has ended; `orderly`: when it was told to. */
  gone: (holder: string, orderly: boolean) => void;
  /** A run has ended; `health` is given where it needed healing. */
  ended: (slot: SlotRef, end: SlotEnd, health: SlotHealth | undefined) => void;
  /** It is calm no longer: see `calm`. */
  stirred: () => void;
}

/**
 * The half of a supervisor that never waits for the store: it compares what should run with what runs and acts, at once. On an
 * interval, on every message of a host, after every round with the store.
 */
export class HostSide {
  readonly #parts: HostSideParts;
  readonly #hosts: Hosts;
  /** Slots because of which this supervisor killed a host. */
  readonly #accused = new Map<string, number[]>();
  /** Until when each host was told that its runs may go on, by slot id; 0 for those that may not. */
  readonly #told = new Map<string, Map<number, number>>();
  /** Since when each host has had no slot. */
  #idleSince = new Map<string, number>();
  readonly #storeLost = new Throttle(10_000);
  #settled: (() => void)[] = [];
  #lookedAt = monotonicMs();
  #actedAt = 0;
  #calm = false;

  constructor(parts: HostSideParts) {
    this.#parts = parts;
    this.#hosts = new Hosts(
      parts.runtime,
      parts.books.timings,
      (key, message) => this.#onMessage(key, message),
      (end) => this.#onHostEnd(end),
    );
  }

  get pids(): number[] {
    return this.#hosts.pids();
  }

  get hosts(): number {
    return this.#hosts.size;
  }

  /** All runs as it should: until something is heard, only a limit or the end of a lease can change that. */
  get calm(): boolean {
    return this.#calm;
  }

  statuses(): SlotStatus[] {
    return this.#parts.books.slots.statuses((host) => {
      const about = this.#hosts.about(host);
      return about && { pid: about.pid, ...about.vitals };
    });
  }

  /** Looks at leases, limits and progress, then acts where that may be due. */
  guard(): void {
    const now = monotonicMs();
    this.#forgiveGap(now);
    const dropped = this.#parts.books.leases.dropUnsure(now);
    const due = this.#hosts.due(now);
    for (const key of due) this.#nextEpoch(key);
    const silent = this.#hosts.silent(now);
    for (const { key, flight } of silent) this.#parts.books.slots.silent(key, flight, now, machineMs() - now);
    const { stops } = this.#parts.books.partitioned(now);
    const stirred = !this.#calm || stops || dropped || due.length > 0 || silent.length > 0;
    if (stirred || now - this.#actedAt >= SOON_ENOUGH_MS) this.act();
  }

  act(): void {
    const { books } = this.#parts;
    const now = monotonicMs();
    this.#forgiveGap(now);
    this.#actedAt = now;
    // A host ends runs by itself at the very moment their leases end: by one that is over nothing may be started again.
    books.leases.dropUnsure(now);
    const { stops, kills } = books.partitioned(now);
    const { unwanted, awaited, ...plan } = books.plan();
    // Their processes stay, for when the store is back.
    for (const slot of stops ? plan.wanted : []) awaited.add(hostKeyOf(slot));
    const wanted: readonly WantedSlot[] = stops ? [] : plan.wanted;
    for (const key of this.#lingering(now)) awaited.add(key);
    const wantedHosts = new Set(wanted.map((slot) => hostKeyOf(slot)));
    this.#hosts.forgetFailures((key) => wantedHosts.has(key) || awaited.has(key));
    books.slots.agree(wanted);
    const { draining } = books.member;
    const slots = books.slots.actual(now, (automation) => books.limits(automation));
    for (const slot of slots) {
      if (stops) unwanted.set(slotKey(slot), "lease-lost");
      else if (!books.leases.has(slot)) unwanted.set(slotKey(slot), draining ? "drain" : "lease-lost");
    }
    const hosts = this.#hosts.actual(now);
    const actions = reconcile(
      {
        // A slot whose health is not known yet waits for it.
        wanted: wanted.filter((slot) => books.slots.knows(slot)),
        slots,
        hosts,
        unwanted,
        awaited,
        hostRetryAt: this.#hosts.retryAt(),
        mayMove: this.#parts.turns.mayMove(now),
        // A drain has a deadline of its own.
        stopGraceMs: draining ? Number.POSITIVE_INFINITY : books.timings.stopGraceMs,
        storeGone: kills,
      },
      now,
    );
    for (const action of actions) this.#carryOut(action, now);
    for (const [automation, { slots: count }] of Object.entries(books.view?.desired ?? {})) {
      this.#hosts.tellSlotCount(automation, count);
    }
    for (const { key } of this.#hosts.actual(now)) this.#tellLeases(key, now);
    if (books.slots.busy() === 0 && this.#hosts.size === 0)
      for (const resolve of this.#settled.splice(0)) resolve();
    this.#calmBy(
      !draining &&
        actions.length === 0 &&
        hosts.every(({ state }) => state === "ready") &&
        slots.every(({ state, starting, offer }) => state === "running" && !starting && offer === null),
    );
  }

  #calmBy(calm: boolean): void {
    const stirred = this.#calm && !calm;
    this.#calm = calm;
    if (stirred) this.#parts.stirred();
  }

  /** While this process itself stood still it heard nothing of anybody: that time counts against no host and no slot. */
  #forgiveGap(now: number): void {
    const gap = now - this.#lookedAt;
    this.#lookedAt = now;
    if (gap < FROZEN_MS) return;
    this.#parts.books.absence.forgive(gap);
    this.#hosts.forgive(gap);
    this.#parts.books.slots.forgive(gap);
  }

  /** Tells slots that finish their tasks to do so no longer. Answers how many there are. */
  interrupt(): number {
    const { slots } = this.#parts.books;
    let told = 0;
    for (const { key } of this.#hosts.takers()) {
      for (const { slotId } of slots.on(key)) {
        this.#hosts.tell(key, { type: "stop", slotId, reason: "drain", now: true });
        told += 1;
      }
    }
    return told;
  }

  /** The hosts that claim tasks. */
  takers(): readonly TaskHost[] {
    return this.#hosts.takers();
  }

  /** A process that runs slots of this automation and whose loop turns: the one that was started last. */
  listener(automation: string): { tell(message: ToHost): void } | undefined {
    return this.#hosts.listener(automation);
  }

  killAll(): void {
    for (const { key } of this.#hosts.actual(monotonicMs())) this.#hosts.kill(key, "would-not-stop");
  }

  /** Resolves when nothing runs any more, after `ms`, or when `signal` is aborted. */
  untilSettled(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal?.addEventListener("abort", done, { once: true });
      this.#settled.push(done);
      this.act();
    });
  }

  /**
   * Hosts without slots that stay for the length of a lease, as slots may be given back to them soon: after the store came back empty,
   * say, when all is placed anew.
   */
  #lingering(now: number): string[] {
    const { books } = this.#parts;
    const idle = this.#hosts
      .actual(now)
      .filter(({ key, state }) => state !== "closing" && books.slots.on(key).length === 0)
      .map(({ key }) => key);
    this.#idleSince = new Map(idle.map((key) => [key, this.#idleSince.get(key) ?? now]));
    const recent = idle.filter(
      (key) => now - Math.max(this.#idleSince.get(key) ?? now, books.answersSince) < books.timings.leaseMs,
    );
    if (recent.length === 0 || books.member.draining || books.member.standsBy) return [];
    const possible = possibleHosts(books.program, books.view?.desired ?? {}, books.epochs);
    return recent.filter((key) => possible.has(key));
  }

  #carryOut(action: Action, now: number): void {
    const { books, log } = this.#parts;
    switch (action.do) {
      case "start-host": {
        const program = books.automation(action.automation);
        if (program !== undefined) this.#hosts.start(action.host, program, monotonicMs);
        return;
      }
      case "close-host":
        return this.#hosts.close(action.host);
      case "kill-host":
        // Said once: it is told again until it is gone.
        if (!this.#accused.has(action.host))
          log.warn("killing a process", { host: action.host, cause: action.cause });
        this.#accused.set(
          action.host,
          action.slots.map((slot) => slot.slotId),
        );
        return this.#hosts.kill(action.host, action.cause);
      case "run": {
        const slot = books.slots.startOf(action.slot);
        const { slotId, token, slotCount, config, configKey } = slot;
        const desired = books.view?.desired[slot.automation];
        books.slots.run(slot, desired === undefined ? 0 : recyclesOf(desired, slotId), action.host, now);
        this.#tellLeases(action.host, now);
        return this.#hosts.tell(action.host, { type: "run", slotId, token, slotCount, config, configKey });
      }
      case "offer-config": {
        const { slotId, config, configKey, generation } = action.slot;
        const { live } = action;
        books.slots.configOffered(action.slot, action.host, now);
        return this.#hosts.tell(action.host, { type: "config", slotId, config, configKey, generation, live });
      }
      case "ask-turn":
        return this.#parts.turns.ask(action.automation, now);
      case "end-turn":
        return this.#parts.turns.end(action.automation);
      case "stop":
        books.slots.stopping(action.slot, action.reason, now);
        return this.#hosts.tell(action.host, {
          type: "stop",
          slotId: action.slot.slotId,
          reason: action.reason,
        });
    }
  }

  /**
   * How long each run on a host may go on: as long as the lease that it was started under surely holds. A newer lease of the same slot
   * says nothing about a run that was started before: in between, the slot may have run elsewhere.
   */
  #tellLeases(host: string, now: number): void {
    const { leases, slots } = this.#parts.books;
    const told = this.#told.get(host) ?? new Map<number, number>();
    this.#told.set(host, told);
    const ahead = machineMs() - now;
    const until: Record<number, number> = {};
    for (const run of slots.on(host)) {
      const sure = leases.sureUntil(run) ?? 0;
      if (told.get(run.slotId) === sure) continue;
      told.set(run.slotId, sure);
      until[run.slotId] = sure === 0 ? 0 : sure + ahead;
    }
    if (Object.keys(until).length > 0) this.#hosts.tell(host, { type: "leases", until });
  }

  #onMessage(host: string, message: FromHost): void {
    const { books, log, started } = this.#parts;
    const now = monotonicMs();
    const automation = automationOf(host);
    const at = (slotId: number): SlotRef => ({ automation, slotId });
    switch (message.type) {
      case "log":
        return log[message.level](message.message, message.fields);
      case "uses":
      case "keep":
      case "let-go": {
        const holder = this.#hosts.holderOf(host);
        if (holder !== undefined) this.#parts.holds(holder, message);
        return;
      }
      case "verdicts":
        return this.#parts.judged(message);
      case "activity":
        for (const activity of message.slots) {
          this.#hosts.turned(host, books.slots.active(at(activity.slotId), activity, now, machineMs() - now));
        }
        return;
      case "running":
        books.slots.running(at(message.slotId), now);
        started(at(message.slotId));
        break;
      case "ended": {
        const { outcome, error } = message;
        if (outcome === "store-lost")
          this.#storeLost.pass(now, () =>
            log.warn("slots end because the store is away; they start again", { automation, error }),
          );
        const cause = outcome === "stopped" || outcome === "config-invalid" ? null : outcome;
        this.#onSlotEnd(at(message.slotId), {
          outcome,
          cause,
          collateral: false,
          error,
          exitCode: null,
          signal: null,
        });
        break;
      }
      case "unfit":
        log.error(`"${automation}" cannot be started`, { error: message.error });
        break;
      case "config-applied":
      case "config-fits":
      case "config-rejected":
        this.#onConfig(at(message.slotId), message, { host, now });
        break;
      case "ready":
      case "fatal":
        break;
    }
    this.act();
  }

  #onConfig(slot: SlotRef, message: ConfigMessage, from: { host: string; now: number }): void {
    const { books, log, rejected } = this.#parts;
    if (!books.slots.configAnswered(slot, message, from) || message.type !== "config-rejected") return;
    const { generation, reason } = message;
    log.error(`${slotKey(slot)} has refused a config; its run goes on with the one that it has`, {
      generation,
      reason,
    });
    rejected(slot, { generation, reason });
  }

  #onHostEnd(end: HostEnd): void {
    const { books, log } = this.#parts;
    const slots = books.slots.on(end.key);
    books.slots.hostEnded(end.key);
    const { cause, error, guilty, tasksBear } = blame(end, slots, this.#accused.get(end.key) ?? []);
    this.#accused.delete(end.key);
    this.#told.delete(end.key);
    if (!end.orderly && slots.length > 0) {
      const ids = slots.map((slot) => slot.slotId);
      log.error(`the process of "${end.automation}" has ended`, { cause, slots: ids, error });
    }
    const lost = lostTasks(end, {
      guilty,
      error,
      draining: books.member.draining,
      stopReasonOf: (slotId) => books.slots.stopReasonOf({ automation: end.automation, slotId }),
    });
    if (lost !== undefined) this.#parts.lost(lost);
    this.#parts.gone(end.holder, end.orderly);
    const { code: exitCode, signal } = end.exit;
    for (const slot of slots) {
      const collateral = guilty.length === 0 ? tasksBear : !guilty.includes(slot.slotId);
      this.#onSlotEnd(slot, { outcome: "failed", cause, collateral, error, exitCode, signal });
    }
    this.act();
  }

  #onSlotEnd(slot: SlotRef, end: SlotEnd): void {
    const { books, log, ended } = this.#parts;
    const seen = books.member.draining ? { ...end, cause: null } : end;
    const health = books.slots.ended(slot, seen, monotonicMs());
    if ((health !== undefined && end.outcome !== "store-lost") || end.outcome === "config-invalid") {
      const cause = health?.history[0]?.cause ?? end.outcome;
      log.error(`${slotKey(slot)} has ended`, { cause, error: end.error });
    }
    ended(slot, end, health);
  }

  /** A process has reached a limit: what runs on it moves to a fresh one. */
  #nextEpoch(host: string): void {
    const { books, log } = this.#parts;
    const program = books.automation(automationOf(host));
    const [slot] = books.slots.on(host);
    if (program === undefined || slot === undefined) return;
    const key = epochKeyOf(program, slot);
    const epoch = books.epochs.get(key) ?? 0;
    // Once per process: one that is due already and not gone yet belongs to the epoch before.
    if (!host.endsWith(`.${epoch}`)) return;
    books.epochs.set(key, epoch + 1);
    log.info(`recycling the process of "${program.manifest.name}": it has reached a limit`, { host });
  }
}

/** Host keys are `automation@build` or `automation/slot@build`; names contain neither. */
function automationOf(host: string): string {
  return host.slice(0, host.search(/[/@]/));
}
