import type { CheckedRateLimit } from "../contracts/rate-limit.ts";
import { messageOf } from "../errors.ts";
import { backoffMs } from "../internal/backoff.ts";
import { Throttle, type Log } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import { uuidv7 } from "../internal/uuid.ts";
import type { ClaimedTask } from "../protocol/task.ts";
import type { LimitStore } from "../store/state-store.ts";

/** Beyond its first, a process reserves only permits that are due so soon: others, and what is killed, are to hold few that they cannot use. */
const AHEAD_MS = 500;
/** A permit that could not be used so long after its time is not used at all. */
const LAPSE_MS = 100;
/** Most calls under way. */
const MOST_ASKED = 16;
/** How long it is known with which permit a task was claimed. */
const KNOWN_MS = 1000;
const LONGEST_TIMER_MS = 3_600_000;
const RETRY = { baseMs: 50, capMs: 1000, jitter: 0.3 };

/** The right to start one task. */
export interface Permit {
  /** Store time of the grant. */
  readonly at: number;
  readonly request: string;
  /** Local monotonic time from which it may be used: never before `at`. */
  readonly dueAt: number;
}

export interface TaskPermitsParts {
  limits: LimitStore;
  limit: CheckedRateLimit;
  log: Log;
  /** A permit has come due, or more may be asked for: `want` is to be called again. */
  onChange: () => void;
}

/**
 * The permits of a queue with a rate limit, for one process. A permit is taken **before** the claim that it is for: what has a task has had
 * a permit, so tasks never start faster than permits are granted. One that is not used is given back. Each process stands in line with
 * others by the place in time that is reserved for it, and is told how long it has to wait: nothing is polled.
 */
export class TaskPermits {
  readonly #parts: TaskPermitsParts;
  readonly #ref: { name: string; key: string; cost: number; windows: CheckedRateLimit["windows"] };
  /** Reserved and not used, the earliest first. */
  #held: Permit[] = [];
  #asking = 0;
  #wanted = 0;
  /** Beyond the first, nothing is asked for before. */
  #askAt = 0;
  #failures = 0;
  #closed = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** By token of the task, the oldest first. */
  readonly #used = new Map<string, Permit>();
  readonly #calls = new Set<Promise<void>>();
  readonly #trouble = new Throttle(5000);

  constructor(parts: TaskPermitsParts) {
    this.#parts = parts;
    const { name, key, cost, windows } = parts.limit;
    this.#ref = { name, key, cost, windows };
  }

  /** Sees to it that so many permits are held or asked for, and no more. Answers how many of them may be used now. */
  want(wanted: number): number {
    const now = monotonicMs();
    this.#wanted = this.#closed ? 0 : wanted;
    const lapsed = this.#held.filter(({ dueAt }) => dueAt < now - LAPSE_MS);
    this.#held = this.#held.slice(lapsed.length);
    this.giveBack([...lapsed, ...this.#held.splice(this.#wanted)]);
    this.#ask(now);
    this.#wake(now);
    return this.#held.filter(({ dueAt }) => dueAt <= now).length;
  }

  /** For a claim of so many tasks, as many as `want` has answered at most. */
  use(count: number): Permit[] {
    return this.#held.splice(0, count);
  }

  /** What the claim has brought; what it has not is given back. */
  claimed(permits: readonly Permit[], tasks: readonly ClaimedTask[]): void {
    const now = monotonicMs();
    for (const [token, { dueAt }] of this.#used) {
      if (dueAt >= now - KNOWN_MS) break;
      this.#used.delete(token);
    }
    for (const [at, { token }] of tasks.entries()) {
      const permit = permits[at];
      if (permit !== undefined) this.#used.set(token, permit);
    }
    this.giveBack(permits.slice(tasks.length));
  }

  /** A task goes back without having been started, and its permit with it. */
  returned(token: string): void {
    const permit = this.#used.get(token);
    this.#used.delete(token);
    if (permit !== undefined) this.giveBack([permit]);
  }

  /** The last first: so those behind which nobody stands are as if they had never been taken. */
  giveBack(permits: readonly Permit[]): void {
    for (const { at, request } of permits.toReversed())
      this.#track(this.#parts.limits.giveBack({ ...this.#ref, at, request }).then(() => undefined));
  }

  /** Gives back what is held, and waits for what is under way. */
  async close(): Promise<void> {
    this.#closed = true;
    this.want(0);
    clearTimeout(this.#timer);
    while (this.#calls.size > 0) await Promise.all(this.#calls);
  }

  #ask(now: number): void {
    while (this.#asking < MOST_ASKED && this.#held.length + this.#asking < this.#wanted) {
      const first = this.#held.length + this.#asking === 0 && this.#failures === 0;
      if (!first && now < this.#askAt) return;
      this.#asking += 1;
      this.#track(this.#take(first ? Number.POSITIVE_INFINITY : AHEAD_MS));
    }
  }

  async #take(withinMs: number): Promise<void> {
    const request = uuidv7();
    try {
      const { outcome, waitMs, at } = await this.#parts.limits.take({ ...this.#ref, withinMs, request });
      const dueAt = monotonicMs() + waitMs;
      this.#asking -= 1;
      this.#failures = 0;
      // Later ones are due later still.
      this.#askAt = dueAt - AHEAD_MS;
      if (outcome === "granted") this.#hold({ at, request, dueAt });
    } catch (error) {
      this.#asking -= 1;
      this.#failures += 1;
      this.#askAt = monotonicMs() + backoffMs(this.#failures, RETRY);
      this.#trouble.pass(monotonicMs(), () =>
        this.#parts.log.warn("tasks wait for a permit, and the store does not answer", {
          limit: this.#ref.name,
          error: messageOf(error),
        }),
      );
    }
    this.#parts.onChange();
    this.#wake(monotonicMs());
  }

  #hold(permit: Permit): void {
    this.#held = [...this.#held, permit].toSorted((a, b) => a.dueAt - b.dueAt);
    this.giveBack(this.#held.splice(this.#wanted));
  }

  /** When the next permit is due, or more may be asked for. */
  #wake(now: number): void {
    clearTimeout(this.#timer);
    if (this.#closed || this.#wanted === 0) return;
    const lacks = this.#held.length + this.#asking < this.#wanted;
    const next = this.#held.find(({ dueAt }) => dueAt > now)?.dueAt ?? Number.POSITIVE_INFINITY;
    const at = lacks && this.#asking === 0 ? Math.min(next, this.#askAt) : next;
    if (at === Number.POSITIVE_INFINITY) return;
    const wake = () => this.#parts.onChange();
    this.#timer = setTimeout(wake, Math.min(Math.max(1, Math.ceil(at - now)), LONGEST_TIMER_MS));
    this.#timer.unref();
  }

  /** A permit whose return fails is lost: it counts as used. */
  #track(call: Promise<void>): void {
    const over = call.catch(() => undefined).finally(() => this.#calls.delete(over));
    this.#calls.add(over);
  }
}
