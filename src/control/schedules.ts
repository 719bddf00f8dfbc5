import { FleetError, messageOf } from "../errors.ts";
import { backoffMs } from "../internal/backoff.ts";
import { Throttle, type Log } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import { uuidv7 } from "../internal/uuid.ts";
import type { NewTask, ScheduleRecord, ScheduleSpec } from "../protocol/task.ts";
import type { QueueStore } from "../store/queue-store.ts";
import type { Store } from "../store/store.ts";
import { isOwnFault } from "./damaged.ts";
import { dueTicks, nextTick, tellableTick } from "./ticks.ts";

/** How often the schedules are read anew: so soon does a new or changed one count. */
const REFRESH_MS = 2000;
/** A queue without schedules is asked less often. */
const IDLE_REFRESH_MS = 10_000;
/** The longest sleep: whether this process leads may have changed. */
const LOOK_MS = 1000;
const SHORTEST_MS = 10;
/** A schedule whose task could not be submitted, or whose ticks cannot be told, is left alone for so long, growing. */
const RETRY = { baseMs: 1000, capMs: 60_000, jitter: 0.2 };

export interface SchedulesParts {
  store: Store;
  /** Whether this process leads the fleet at present. */
  leading: () => boolean;
  log: Log;
  /** How often schedules are read anew; default 2000. Tests shorten it. */
  refreshMs?: number;
}

interface QueueSchedules {
  queue: string;
  schedules: ScheduleRecord[];
  readAt: number;
}

/**
 * Fires the ticks of all schedules, in whichever process leads. Exactly one task per tick: the queue itself notes, in the step that submits
 * a task for a tick, up to which tick of that schedule it has been given tasks, so a leader that was replaced without knowing, or that
 * repeats a call, submits nothing twice. What was decided is noted after that (`ticked`): a leader that dies in between leaves a tick
 * that is decided again, and found to be fired. All that it does bears the revision that it has read: a schedule that was changed since
 * fires no tick of its former self, and is not removed for being over.
 */
export class Schedules {
  readonly #parts: SchedulesParts;
  readonly #trouble = new Throttle(30_000);
  #known = new Map<string, QueueSchedules>();
  #listedAt = Number.NEGATIVE_INFINITY;
  /** Schedules that failed, by queue and id: how often in a row, and until when (own time) they are left alone. */
  readonly #failing = new Map<string, { failures: number; until: number }>();
  /** Store time minus own monotonic time. */
  #offset = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #round: Promise<void> | undefined;
  #running = false;

  constructor(parts: SchedulesParts) {
    this.#parts = parts;
  }

  start(): void {
    if (this.#running) return;
    this.#running = true;
    this.#sleep(0);
  }

  /** Waits for the round under way. */
  async stop(): Promise<void> {
    this.#running = false;
    clearTimeout(this.#timer);
    await this.#round;
  }

  #sleep(ms: number): void {
    if (!this.#running) return;
    this.#timer = setTimeout(
      () => {
        this.#round = this.#turn().finally(() => this.#sleep(this.#untilNext()));
      },
      Math.max(SHORTEST_MS, Math.min(ms, LOOK_MS, this.#parts.refreshMs ?? REFRESH_MS)),
    );
  }

  async #turn(): Promise<void> {
    if (!this.#parts.leading()) {
      // What others have decided meanwhile is not known here: it is read anew before anything is fired.
      this.#known.clear();
      this.#listedAt = Number.NEGATIVE_INFINITY;
      return;
    }
    try {
      await this.#refresh();
      for (const entry of this.#known.values()) {
        for (const schedule of entry.schedules) await this.#tend(entry.queue, schedule);
      }
    } catch (error) {
      this.#trouble.pass(monotonicMs(), () =>
        this.#parts.log.warn("schedules could not be looked at; trying again", { error: messageOf(error) }),
      );
    }
  }

  /** One that cannot be told or submitted keeps none of the others. */
  async #tend(queue: string, schedule: ScheduleRecord): Promise<void> {
    const key = `${queue} ${schedule.spec.id}`;
    const failing = this.#failing.get(key);
    if (failing !== undefined && monotonicMs() < failing.until) return;
    try {
      await this.#decide(queue, schedule);
      this.#failing.delete(key);
    } catch (error) {
      const failures = (failing?.failures ?? 0) + 1;
      this.#failing.set(key, { failures, until: monotonicMs() + backoffMs(failures, RETRY) });
      this.#trouble.pass(monotonicMs(), () =>
        this.#parts.log.warn("a schedule could not be followed; trying again", {
          queue,
          schedule: schedule.spec.id,
          error: messageOf(error),
        }),
      );
    }
  }

  async #refresh(): Promise<void> {
    const { queues } = this.#parts.store;
    const every = this.#parts.refreshMs ?? REFRESH_MS;
    if (monotonicMs() - this.#listedAt >= every) {
      const known = new Map<string, QueueSchedules>();
      for (const queue of await queues.list()) {
        known.set(
          queue,
          this.#known.get(queue) ?? { queue, schedules: [], readAt: Number.NEGATIVE_INFINITY },
        );
      }
      this.#known = known;
      this.#listedAt = monotonicMs();
    }
    for (const entry of this.#known.values()) {
      const wait =
        entry.schedules.length === 0 ? Math.max(every, this.#parts.refreshMs ?? IDLE_REFRESH_MS) : every;
      if (monotonicMs() - entry.readAt < wait) continue;
      const started = monotonicMs();
      try {
        const { now, schedules } = await queues.schedules({ queue: entry.queue });
        this.#offset = now - monotonicMs();
        entry.schedules = schedules;
      } catch (error) {
        if (!isOwnFault(error)) throw error;
        entry.schedules = [];
        this.#trouble.pass(
          monotonicMs(),
          () =>
            this.#parts.log.error("the schedules of a queue cannot be read", {
              queue: entry.queue,
              error: messageOf(error),
            }),
          entry.queue,
        );
      }
      entry.readAt = started;
    }
  }

  async #decide(queue: string, schedule: ScheduleRecord): Promise<void> {
    const { leading, log, store } = this.#parts;
    const { fire, upTo, skipped } = dueTicks(schedule, monotonicMs() + this.#offset);
    if (upTo === null) return;
    const { spec, revision } = schedule;
    if (skipped > 0) log.warn("ticks of a schedule were missed", { queue, schedule: spec.id, skipped });
    for (const tick of fire) {
      if (!leading()) return;
      const task = { ...taskOf(spec, tick), tick: { schedule: spec.id, at: tick, revision } };
      const answer = await store.queues.submit({ queue, lists: [[task]] });
      // Not decided then: it is due again.
      if (answer.outcome === "undeclared") throw new Error("its queue's settings are not in the store");
      const [result] = answer.lists;
      if (result?.outcome === "accepted" && result.tasks[0]?.outcome === "outdated")
        return this.#readAnew(queue);
      if (result?.outcome === "full")
        throw new Error(`its task was refused: the queue is full (${result.length} of ${result.maxLength})`);
    }
    await store.queues.ticked({ queue, id: spec.id, tick: upTo, revision });
    schedule.lastTick = upTo;
    // A single time that is over, and that nobody's definition would bring back.
    if (spec.origin === "runtime" && nextTick(spec.timing, upTo) === null)
      await store.queues.removeSchedule({ queue, id: spec.id, revision });
  }

  /** What was read of a queue's schedules is past: somebody has changed one. */
  #readAnew(queue: string): void {
    const entry = this.#known.get(queue);
    if (entry !== undefined) entry.readAt = Number.NEGATIVE_INFINITY;
  }

  #untilNext(): number {
    const now = monotonicMs() + this.#offset;
    let least = LOOK_MS;
    for (const { queue, schedules } of this.#known.values()) {
      for (const { spec, since, lastTick } of schedules) {
        if (this.#failing.has(`${queue} ${spec.id}`)) continue;
        const next = tellableTick(spec.timing, Math.max(lastTick ?? since, since));
        if (next !== null) least = Math.min(least, next - now);
      }
    }
    return least;
  }
}

/** The task of one tick. */
export function taskOf(spec: ScheduleSpec, tick: number, random: () => number = Math.random): NewTask {
  const { id, payload, overlap, jitterMs, task } = spec;
  return {
    ...task,
    id: uuidv7(),
    payload,
    delayMs: 0,
    ...(jitterMs > 0 ? { runAt: tick + Math.floor(random() * jitterMs) } : {}),
    // While the task of an earlier tick is unfinished it bears the key, and this one is not written.
    ...(overlap === "skip"
      ? { dedupe: { key: `schedule:${id}`, onDuplicate: "ignore" as const, windowMs: 0 } }
      : {}),
    tick: { schedule: id, at: tick },
  };
}

/** Submits a task of a schedule now, beside its ticks. Answers the task's id. */
export async function runNow(queues: QueueStore, queue: string, spec: ScheduleSpec): Promise<string> {
  const { tick: _tick, runAt: _runAt, dedupe: _dedupe, ...task } = taskOf(spec, 0);
  const answer = await queues.submit({ queue, lists: [[task]] });
  const [result] = answer.outcome === "done" ? answer.lists : [];
  if (result?.outcome === "accepted") return task.id;
  const refused = `queue "${queue}": the task was not submitted`;
  if (result === undefined)
    throw new FleetError(
      "FLEET_STORE_FAILED",
      `${refused}: the queue's settings are not in the store; start a worker that runs it, which writes them`,
      { retryable: true },
    );
  throw new FleetError(
    "FLEET_QUEUE_FULL",
    `${refused}: ${result.length} tasks wait, maxLength is ${result.maxLength}; wait and try again, add slots, or raise maxLength`,
    { retryable: true },
  );
}
