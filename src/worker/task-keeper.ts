import { RETURNED, settlementOf } from "../automation/task-outcome.ts";
import { settingsOf } from "../primitives/queue-settings.ts";
import { messageOf } from "../errors.ts";
import { backoffMs } from "../internal/backoff.ts";
import { Throttle, type Log } from "../internal/log.ts";
import { monotonicMs, sleep } from "../internal/timers.ts";
import type { QueueStore } from "../store/queue-store.ts";
import type { Books } from "./books.ts";
import type { TaskHost } from "./hosts.ts";
import type { LostTasks } from "./lost-tasks.ts";

const RETRY = { baseMs: 100, capMs: 2000, jitter: 0.3 };

/** A claim that a killed process had sent may reach the store after its end was told: so long after that, it is told once more. */
const AGAIN_MS = 1000;

export interface TaskKeeperParts {
  queues: QueueStore;
  books: Books;
  log: Log;
  /** The hosts that claim tasks, as they are. */
  hosts: () => readonly TaskHost[];
}

/**
 * Keeps what the children of this worker have claimed: renews all their claims, one call per queue and beat, and tells each what the
 * store has answered. So user code that keeps a child's event loop busy costs it no claim. Says at once what a child that has ended
 * leaves behind.
 */
export class TaskKeeper {
  readonly #parts: TaskKeeperParts;
  readonly #trouble = new Throttle(10_000);
  readonly #keeping = new Set<string>();
  readonly #losing = new Set<Promise<void>>();
  #timer: ReturnType<typeof setInterval> | undefined;
  readonly #stopping = new AbortController();
  #stopped = false;

  constructor(parts: TaskKeeperParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#timer ??= setInterval(() => this.#beat(), this.#parts.books.timings.beatMs);
  }

  /** Waits until the store knows all that was lost. May take as long as the store does. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopping.abort();
    await Promise.allSettled(this.#losing);
  }

  /** Ends what `stop` still waits for. */
  giveUp(): void {
    this.#stopped = true;
  }

  /** The store came back empty: settings are written anew, before any guest's stand in their place. */
  async declareAnew(): Promise<void> {
    const queues = new Map(this.#parts.hosts().map(({ tasks }) => [tasks.queue, tasks.options]));
    await Promise.all(
      [...queues].map(([queue, options]) =>
        this.#parts.queues.declare({ queue, settings: settingsOf({ options }), as: "owner" }),
      ),
    );
  }

  /** A host has ended. */
  lost(tasks: LostTasks): void {
    const losing = this.#loseAll(tasks);
    this.#losing.add(losing);
    void losing.finally(() => this.#losing.delete(losing));
  }

  #beat(): void {
    const queues = new Map<string, TaskHost[]>();
    for (const host of this.#parts.hosts()) {
      const known = queues.get(host.tasks.queue);
      if (known === undefined) queues.set(host.tasks.queue, [host]);
      else known.push(host);
    }
    for (const [queue, hosts] of queues) void this.#keep(queue, hosts);
  }

  async #keep(queue: string, hosts: readonly TaskHost[]): Promise<void> {
    if (this.#keeping.has(queue)) return;
    this.#keeping.add(queue);
    const { queues, books } = this.#parts;
    const { leaseMs } = books.timings;
    try {
      const holders = hosts.map(({ holder }) => holder);
      const idle = hosts.filter((host) => host.takes).map(({ holder }) => holder);
      const { held, at, ready, nextDueAt } = await queues.keep({ queue, holders, leaseMs, idle });
      const now = books.storeOffset + monotonicMs();
      const dueInMs = nextDueAt === null ? null : nextDueAt - now;
      for (const [index, host] of hosts.entries())
        host.tell({ type: "tasks", held: held[index] ?? [], at, ready, dueInMs });
    } catch (error) {
      this.#say("the claims of a queue's tasks could not be renewed; trying again", queue, error);
    } finally {
      this.#keeping.delete(queue);
    }
  }

  /** Until the store has it: once the claims expire by themselves, they would all count as crashes. */
  async #loseAll(tasks: LostTasks): Promise<void> {
    await this.#lose(tasks);
    await sleep(AGAIN_MS, this.#stopping.signal);
    await this.#lose({ ...tasks, settle: [] });
  }

  async #lose({ queue, holder, crashed, begun, error, ...lost }: LostTasks): Promise<void> {
    const { queues, books, log } = this.#parts;
    const { id: worker } = books.member;
    const { leaseMs } = books.timings;
    for (let failures = 1; !this.#stopped; failures++) {
      try {
        // What it had claimed ahead, its flight mark does not show. It is handed nothing more from here on.
        const { held } = await queues.keep({ queue, holders: [holder], leaseMs, idle: [] });
        const ahead = (held[0] ?? []).filter(({ token }) => !begun.includes(token));
        const settle = [...lost.settle, ...ahead.map((task) => settlementOf(task, RETURNED))];
        // Before the rest is given up: a holder that has none left is forgotten.
        if (settle.length > 0) await queues.turn({ queue, holder, worker, leaseMs, settle, claim: 0 });
        const count = await queues.lose({ queue, holders: [holder], crashed, error });
        if (count.crashed + count.interrupted + lost.settle.length > 0)
          log.warn("tasks have lost their process", { queue, ...count, timed_out: lost.settle.length });
        return;
      } catch (thrown) {
        this.#say("tasks that have lost their process could not be given back; trying again", queue, thrown);
        await new Promise((resolve) => setTimeout(resolve, backoffMs(failures, RETRY)).unref());
      }
    }
  }

  #say(message: string, queue: string, error: unknown): void {
    this.#trouble.pass(monotonicMs(), (swallowed) =>
      this.#parts.log.warn(message, {
        queue,
        error: messageOf(error),
        ...(swallowed > 0 ? { failures: swallowed } : {}),
      }),
    );
  }
}
