import type { CheckedRateLimit } from "../contracts/rate-limit.ts";
import { isFleetError, messageOf } from "../errors.ts";
import { backoffMs } from "../internal/backoff.ts";
import { Throttle, type Log } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import type { HeldTasks } from "../protocol/host.ts";
import type { ClaimedTask, Settlement } from "../protocol/task.ts";
import type { QueueStore, TurnResult } from "../store/queue-store.ts";
import type { LimitStore } from "../store/state-store.ts";
import type { Watch } from "../store/watch.ts";
import { AloneRuns } from "./task-alone.ts";
import { DueTimer } from "./task-due.ts";
import { type Ends, TaskEnds } from "./task-ends.ts";
import { missing, type Held } from "./task-held.ts";
import { CANCELLED, type Outcome, RETURNED, settlementOf } from "./task-outcome.ts";
import { TaskPermits } from "./task-permits.ts";
import { meanRun, SOON_MS, tasksAhead, tasksToClaim } from "./task-prefetch.ts";
import { Strangers } from "./task-strangers.ts";

/** Two, so that the next call is made while the answer of the last one is being worked on. */
const CALLS = 2;
/** From so many on, ends that come together travel in two calls: for fewer, a second call costs more than the halves gain. */
const MANY = 32;
/** How often timeouts, and tasks that nobody takes, are looked at while there are any. */
const TICK_MS = SOON_MS;
const RETRY = { baseMs: 50, capMs: 1000, jitter: 0.3 };

/** A slot as its desk sees it. */
export interface DeskSlot {
  readonly slotId: number;
  /** What it has taken and not finished. */
  tasks(): readonly ClaimedTask[];
  /** Its claim of this task is lost, or somebody has cancelled it. */
  abort(token: string, reason: "cancelled" | "lease-lost"): void;
  /** Called on an interval while anything runs; answers whether the slot has something to look at. */
  tick(): boolean;
}

interface Taker {
  slot: DeskSlot;
  wants: number;
  give: (tasks: ClaimedTask[]) => void;
}

export interface TaskDeskParts {
  store: QueueStore;
  queue: string;
  /** Writes the queue's settings, as their owner. */
  declare: () => Promise<void>;
  /** Who claims: this process, by an id that is never used again. */
  holder: string;
  worker: string;
  leaseMs: number;
  /** See `Demand`. */
  limited: boolean;
  /** What each claim needs a permit of, where the queue has a rate limit. */
  permits?: { limits: LimitStore; limit: CheckedRateLimit } | undefined;
  crashLimit: number;
  log: Log;
}

/**
 * What all slots of one process share that run tasks of one queue. Slots take tasks here and say how they ended; the desk gathers both
 * into calls of `QueueStore.turn`. Delivery class of what it hands out: **at least once**.
 *
 * - A finished task's end is sent until the store has answered it, which is safe to repeat.
 * - A slot gets its next tasks only when the ends of its last are written. So where this process is killed, each slot has at most one
 *   task (with `runMany`, one batch) that has had its effect and runs again.
 * - Tasks that no slot takes soon are given back.
 * - Where the queue has a rate limit, a task is claimed only with a permit for it, none is claimed ahead, and none is handed over.
 * - While nothing is there it makes no calls: it is woken by the store's hints, by its supervisor (`tasks`), and when a task falls due.
 */
export class TaskDesk {
  readonly #parts: TaskDeskParts;
  readonly #alone: AloneRuns;
  readonly #permits: TaskPermits | undefined;
  readonly #slots = new Set<DeskSlot>();
  /** Those of them that go on taking tasks. */
  readonly #open = new Set<DeskSlot>();
  readonly #takers: Taker[] = [];
  /** Claimed, and no slot has them yet, oldest first; since when in order. */
  #ready: ClaimedTask[] = [];
  #readySince = 0;
  readonly #ends = new TaskEnds();
  #coming = 0;
  #declaring: Promise<void> | undefined;
  #failures = 0;
  #pause: ReturnType<typeof setTimeout> | undefined;
  #scheduled = false;
  /** The last look found nothing, and nothing was heard since. */
  #dry = false;
  /** How many tasks are there to be claimed, at least, as the store has told last; permits are taken for no more. */
  #there = 1;
  #hints = 0;
  #meanRunMs: number | undefined;
  #ticking = false;
  readonly #due = new DueTimer(() => this.#hint());
  #watch: Watch | undefined;
  readonly #strangers = new Strangers();
  #lastCall = 0;
  /** Numbers of the calls that have not been answered. */
  readonly #calls = new Set<number>();
  #closed: (() => void) | undefined;
  readonly #trouble = new Throttle(5000);

  constructor(parts: TaskDeskParts) {
    this.#parts = parts;
    this.#alone = new AloneRuns(parts.crashLimit);
    const onChange = () => this.#schedule();
    this.#permits = parts.permits && new TaskPermits({ ...parts.permits, log: parts.log, onChange });
  }

  join(slot: DeskSlot): void {
    this.#slots.add(slot);
    this.#open.add(slot);
    const { store, queue, holder } = this.#parts;
    this.#watch ??= store.watch(
      { queue, taker: holder },
      { onReady: () => this.#hint(), onTasks: (tasks) => this.#receive(tasks) },
    );
  }

  leave(slot: DeskSlot): void {
    this.dismiss(slot);
    this.#slots.delete(slot);
    this.#alone.over(slot);
    this.#schedule();
  }

  /** Up to `most` tasks, at least one; none when the slot is dismissed meanwhile, or after `ms`. */
  take(slot: DeskSlot, most: number, ms?: number): ClaimedTask[] | Promise<ClaimedTask[]> {
    this.#alone.over(slot);
    if (this.#ready.length > 0 && !this.#ends.isOwedBy(slot.slotId) && !this.#alone.hold(this.#ready))
      return this.#handOut(most);
    return new Promise((resolve) => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const taker: Taker = {
        slot,
        wants: most,
        give: (tasks) => {
          clearTimeout(timer);
          resolve(tasks);
        },
      };
      if (ms !== undefined) timer = setTimeout(() => this.#dismissTaker(taker), ms);
      this.#takers.push(taker);
      this.#schedule();
    });
  }

  /** It takes nothing any more. Where no slot does, the store is to hand nothing over. */
  dismiss(slot: DeskSlot): void {
    if (this.#open.delete(slot) && this.#open.size === 0 && this.#dry) void this.#turn([], 0);
    for (const taker of this.#takers.filter((waiting) => waiting.slot === slot)) this.#dismissTaker(taker);
    if (this.#permits !== undefined) this.#schedule();
    this.#giveBackAbove(tasksAhead({ slots: this.#open.size, ...this.#pace() }));
  }

  /** A task that its slot has taken and will not start now: somebody else here may, or it is given back. */
  putBack(tasks: readonly ClaimedTask[]): void {
    if (this.#ready.length === 0) this.#readySince = monotonicMs();
    this.#ready = this.#alone.order([...tasks, ...this.#ready]);
    this.#deliver();
  }

  /** How a slot's task has ended; `ranMs` where it has run. */
  ended({ slotId }: DeskSlot, task: ClaimedTask, outcome: Outcome, ranMs?: number): void {
    if (ranMs !== undefined) this.#meanRunMs = meanRun(this.#meanRunMs, ranMs);
    // It took long: what is held ahead would wait for its like, while others have time for it.
    if (ranMs !== undefined && ranMs >= SOON_MS && this.#ready.length > 0)
      this.#giveBackAbove(tasksAhead({ slots: this.#open.size, ...this.#pace() }));
    this.#end(task, outcome, slotId);
  }

  /** What the store says this process holds, by way of its supervisor. */
  hear({ held, at, ready, dueInMs }: HeldTasks): void {
    if (ready > 0) this.#hint(ready);
    else if (this.#permits !== undefined) this.#dryUp();
    this.#due.in(dueInMs);
    const running = [...this.#slots].flatMap((slot) => slot.tasks().map((task) => ({ slot, task })));
    const tokens = new Map(running.map(({ slot, task }) => [task.token, slot]));
    const lost = new Set(missing([...tokens.keys(), ...this.#ready.map(({ token }) => token)], held, at));
    for (const token of lost) tokens.get(token)?.abort(token, "lease-lost");
    this.#ready = this.#ready.filter(({ token }) => !lost.has(token));
    for (const { token, cancelling } of held) if (cancelling) this.#cancelled(token, tokens.get(token));
    this.#giveBackStrange(held, tokens);
  }

  /** Looks at once: something may be there. */
  #hint(there = 1): void {
    this.#hints += 1;
    this.#dry = false;
    this.#there = Math.max(this.#there, there);
    if (this.#takers.length > 0) this.#schedule();
  }

  /** Nothing is there: no permits are held for it. */
  #dryUp(): void {
    this.#dry = true;
    this.#there = 1;
    this.#schedule();
  }

  /** Gives back what no slot has, and waits until the store has answered everything, at most as long as a lease. */
  async close(): Promise<void> {
    this.#giveBackAbove(0);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, this.#parts.leaseMs);
      this.#closed = () => {
        clearTimeout(timer);
        resolve();
      };
      this.#checkClosed();
    });
    clearTimeout(this.#pause);
    this.#due.stop();
    await Promise.all([this.#permits?.close(), this.#watch?.close()]);
  }

  /** Something began that `tick` must look at. */
  arm(): void {
    if (this.#ticking) return;
    this.#ticking = true;
    setTimeout(() => this.#tick(), TICK_MS).unref();
  }

  #tick(): void {
    this.#ticking = false;
    let busy = false;
    for (const slot of this.#slots) busy = slot.tick() || busy;
    if (this.#ready.length > 0 && monotonicMs() - this.#readySince >= SOON_MS) {
      // They took longer than their like: hold none until it has become better.
      if (!this.#alone.hold(this.#ready)) this.#meanRunMs = Math.max(this.#meanRunMs ?? 0, SOON_MS);
      this.#giveBackAbove(0);
    }
    this.#beginReady();
    if (busy || this.#ready.length > 0) this.arm();
  }

  #pace(): { meanRunMs: number | undefined; limited: boolean } {
    const limited = this.#parts.limited || this.#permits !== undefined;
    return { meanRunMs: this.#meanRunMs, limited };
  }

  #handOut(most: number): ClaimedTask[] {
    this.#readySince = monotonicMs();
    const tasks = this.#ready.splice(0, most);
    this.#schedule();
    return tasks;
  }

  /** When all slots have what they were given: of what is to run alone, the next may begin. */
  #beginReady(): void {
    const at = this.#takers.findIndex(({ slot }) => !this.#ends.isOwedBy(slot.slotId));
    const taker = this.#takers[at];
    if (taker !== undefined && this.#alone.mayBegin(this.#ready, this.#slots)) {
      this.#takers.splice(at, 1);
      // No mark of what has ended stays beside it.
      for (const slot of this.#slots) slot.tick();
      this.#alone.begin(taker.slot);
      taker.give(this.#handOut(1));
    } else this.#deliver();
  }

  #deliver(): void {
    if (this.#ready.length === 0) return;
    const takers = this.#takers.splice(0);
    for (const taker of takers) {
      const waits = this.#ends.isOwedBy(taker.slot.slotId);
      if (waits || this.#ready.length === 0 || this.#alone.hold(this.#ready)) this.#takers.push(taker);
      else taker.give(this.#handOut(taker.wants));
    }
    if (this.#ready.length > 0) this.arm();
  }

  #end(task: Pick<ClaimedTask, "id" | "token">, outcome: Outcome, slotId: number | null): void {
    this.#ends.add(settlementOf(task, outcome), slotId);
    this.#schedule();
  }

  #receive(claimed: readonly ClaimedTask[]): void {
    const tasks = claimed.filter(({ token }) => !this.#strangers.wasGivenBack(token));
    if (tasks.length > 0) {
      this.#readySince = monotonicMs();
      this.#ready = this.#alone.order([...this.#ready, ...tasks]);
    }
    this.#deliver();
    if (this.#open.size === 0) this.#giveBackAbove(0);
  }

  #dismissTaker(taker: Taker): void {
    const at = this.#takers.indexOf(taker);
    if (at < 0) return;
    this.#takers.splice(at, 1);
    taker.give([]);
  }

  #giveBackAbove(most: number): void {
    const alone = this.#open.size === 0 ? 0 : this.#alone.waiting(this.#ready);
    for (const task of this.#ready.splice(Math.max(most, alone))) {
      this.#end(task, RETURNED, null);
      this.#permits?.returned(task.token);
    }
  }

  #cancelled(token: string, slot: DeskSlot | undefined): void {
    slot?.abort(token, "cancelled");
    const at = this.#ready.findIndex((task) => task.token === token);
    for (const task of at < 0 ? [] : this.#ready.splice(at, 1)) this.#end(task, CANCELLED, null);
  }

  #giveBackStrange(held: readonly Held[], running: ReadonlyMap<string, unknown>): void {
    const known = new Set(running.keys());
    for (const { token } of this.#ready) known.add(token);
    for (const token of this.#ends.tokens()) known.add(token);
    for (const one of this.#strangers.find(held, known, this.#calls, this.#lastCall))
      this.#end(one, RETURNED, null);
  }

  /** After the slots have done what they can at once: so all that they have to say travels together. */
  #schedule(): void {
    if (this.#scheduled || this.#pause !== undefined) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      if (this.#ready.length > 0) this.#beginReady();
      this.#send();
    });
  }

  /**
   * Where many slots end together, half of them travels in a first call and the others in a second a moment later: from then on the
   * store works for one half while the other is at work. Sent together, they would be answered together.
   */
  #send(): void {
    if (this.#calls.size < CALLS && this.#pause === undefined) {
      const { waiting } = this.#ends;
      const ends = this.#ends.take(
        this.#calls.size === 0 && waiting >= MANY ? Math.ceil(waiting / 2) : waiting,
      );
      const claim = this.#closed === undefined ? this.#permitted(this.#toClaim()) : 0;
      if (ends.length > 0 || (claim > 0 && !this.#dry)) void this.#turn(ends, claim);
      else this.#ends.written(ends);
      // Not before the first has left: what is written together is read together.
      if (this.#ends.waiting > 0) setImmediate(() => this.#schedule());
    }
    this.#checkClosed();
  }

  /** A slot's claim travels with the ends of its last tasks, and not before them. */
  #toClaim(): number {
    if (this.#alone.hold(this.#ready)) return 0;
    const behind = this.#ends.slotsWaiting();
    let wanted = 0;
    for (const { slot, wants } of this.#takers) if (!behind.has(slot.slotId)) wanted += wants;
    return tasksToClaim({
      slots: this.#open.size,
      wanted,
      held: this.#ready.length,
      coming: this.#coming,
      ...this.#pace(),
    });
  }

  /** Those of them that may be claimed now. Nothing is taken from a limit for tasks that are not there. */
  #permitted(claim: number): number {
    if (this.#permits === undefined) return claim;
    return Math.min(claim, this.#permits.want(this.#dry ? 0 : Math.min(claim, this.#there)));
  }

  async #turn(ends: Ends, claim: number): Promise<void> {
    const { store, queue, holder, worker, leaseMs } = this.#parts;
    const hints = this.#hints;
    const call = ++this.#lastCall;
    const permits = this.#permits?.use(claim) ?? [];
    const over = () => {
      this.#calls.delete(call);
      this.#coming -= claim;
    };
    this.#calls.add(call);
    this.#coming += claim;
    try {
      await (this.#declaring ??= this.#parts.declare());
      // Whoever is handed a task has no permit for it.
      const idle = claim > 0 && this.#takers.length > 0 && this.#permits === undefined;
      const settle = ends.map(({ one }) => one);
      const answer = await store.turn({ queue, holder, worker, leaseMs, settle, claim, idle });
      over();
      this.#failures = 0;
      this.#ends.written(ends);
      this.#permits?.claimed(permits, answer.tasks);
      this.#take(answer, settle, claim, hints);
    } catch (error) {
      over();
      this.#failed(error, ends);
    }
    this.#schedule();
  }

  #take(answer: TurnResult, settle: readonly Settlement[], claim: number, hints: number): void {
    const { tasks, ready } = answer;
    this.#there = Math.max(1, ready);
    // Where nothing came at all, there is nothing for this process, whatever there is for others.
    if (claim > 0)
      this.#dry = hints === this.#hints && (tasks.length === 0 || (tasks.length < claim && ready === 0));
    else if (ready > 0) this.#dry = false;
    if (this.#permits !== undefined && ready === 0 && hints === this.#hints) this.#dryUp();
    this.#due.in(answer.nextDueAt === null ? null : answer.nextDueAt - answer.now);
    this.#receive(tasks);
    const lost = settle.filter(
      (one, at) => answer.settled[at] === "lease-lost" && one.outcome !== "returned",
    );
    if (lost.length === 0) return;
    this.#trouble.pass(monotonicMs(), () =>
      this.#parts.log.warn("the end of a task was not taken: its lease had ended, so it runs again", {
        task: lost[0]?.id,
        tasks: lost.length,
      }),
    );
  }

  #failed(error: unknown, ends: Ends): void {
    // Written anew before the next call, where that was what failed.
    this.#declaring = undefined;
    this.#ends.takeBack(ends);
    // The store is not to be used any more: what is left is taken back with its lease.
    if (isFleetError(error, "FLEET_CLOSED")) this.#ends.forget();
    this.#failures += 1;
    this.#trouble.pass(monotonicMs(), () =>
      this.#parts.log.warn("tasks wait for the store", {
        error: messageOf(error),
        finished: this.#ends.waiting,
      }),
    );
    this.#pause ??= setTimeout(
      () => {
        this.#pause = undefined;
        this.#schedule();
      },
      backoffMs(this.#failures, RETRY),
    );
  }

  #checkClosed(): void {
    if (this.#ends.waiting === 0 && this.#calls.size === 0) this.#closed?.();
  }
}
