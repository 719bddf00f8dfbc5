import { FleetError, isFleetError, messageOf } from "../errors.ts";
import { backoffMs } from "../internal/backoff.ts";
import type { Log, Throttle } from "../internal/log.ts";
import { monotonicMs, sleep } from "../internal/timers.ts";
import { isFinished, type TaskRecord } from "../protocol/task.ts";
import type { QueueStore } from "../store/queue-store.ts";
import { pending, unknown } from "./queue-results.ts";
import type { Place, QueueWaiters } from "./queue-waiters.ts";

export interface EndArgs {
  id: string;
  waitSeconds: number;
  /** Ends the wait early: the slot is to end, or the fleet was closed. */
  signal: AbortSignal | undefined;
}

/**
 * Waits for ends of one queue's tasks. A wait is a look that asks to be told, then silence until the watch names the task; what the
 * watch may have overlooked is found by the idle poller. A store that is away is waited out.
 */
export class QueueReader {
  readonly #store: QueueStore;
  readonly #queue: string;
  readonly #waiters: QueueWaiters;
  readonly #log: Log;
  readonly #quietly: Throttle;

  constructor(
    store: QueueStore,
    queue: string,
    { waiters, log, quietly }: { waiters: QueueWaiters; log: Log; quietly: Throttle },
  ) {
    this.#store = store;
    this.#queue = queue;
    this.#waiters = waiters;
    this.#log = log;
    this.#quietly = quietly;
  }

  /** A task as it stands when it has ended. Throws `FLEET_TASK_UNKNOWN`, and `FLEET_TASK_PENDING` when the time is over. */
  async end({ id, waitSeconds, signal }: EndArgs): Promise<TaskRecord> {
    if (waitSeconds > 0) return this.#with(id, (place) => this.#wait(place, { id, waitSeconds, signal }));
    const record = await this.#store.get({ queue: this.#queue, id });
    if (record === undefined) throw unknown(this.#queue, id);
    if (isFinished(record.state)) return record;
    throw pending(record, 0);
  }

  /**
   * The same for a task that is submitted by `submit`, which must ask for its end: so one look less is needed. The wait begins with the
   * submission.
   */
  endOf(
    id: string,
    submit: () => Promise<{ id: string; asked: boolean }>,
    args: Omit<EndArgs, "id">,
  ): Promise<TaskRecord> {
    return this.#with(id, async (place) => {
      const submitted = await submit();
      if (submitted.id !== id) return this.end({ ...args, id: submitted.id });
      return this.#wait(place, { ...args, id }, submitted.asked && place.covered);
    });
  }

  async #with<T>(id: string, use: (place: Place) => Promise<T>): Promise<T> {
    const place = this.#waiters.enter(id);
    try {
      return await use(place);
    } finally {
      place.leave();
    }
  }

  async #wait(place: Place, { id, waitSeconds, signal }: EndArgs, asked = false): Promise<TaskRecord> {
    const until = monotonicMs() + waitSeconds * 1000;
    if (asked) await place.woken(waitSeconds * 1000, signal);
    for (let failures = 0; ;) {
      let record: TaskRecord | undefined;
      try {
        record = await this.#store.ask({ queue: this.#queue, id });
        failures = 0;
      } catch (error) {
        failures += 1;
        if (!(await this.#rideOut(error, failures, until, signal))) throw error;
        continue;
      }
      if (record === undefined) throw unknown(this.#queue, id);
      if (isFinished(record.state)) return record;
      const left = until - monotonicMs();
      if (left <= 0) throw pending(record, waitSeconds);
      if (isAborted(signal)) throw stopped(record, signal);
      await place.woken(left, signal);
    }
  }

  async #rideOut(
    error: unknown,
    failures: number,
    until: number,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    if (!isFleetError(error) || !error.retryable || isAborted(signal)) return false;
    const pause = backoffMs(failures, { baseMs: 50, capMs: 1000, jitter: 0.3 });
    if (monotonicMs() + pause >= until) return false;
    this.#quietly.pass(monotonicMs(), () =>
      this.#log.warn(`queue "${this.#queue}": waiting for the store`, {
        queue: this.#queue,
        error: error.message,
      }),
    );
    await sleep(pause, signal);
    return true;
  }
}

function stopped(record: TaskRecord, signal: AbortSignal | undefined): Error {
  const reason: unknown = signal?.reason;
  if (reason instanceof FleetError) return reason;
  return new FleetError(
    "FLEET_TASK_PENDING",
    `queue "${record.queue}": the wait for task ${record.id} was ended (${messageOf(reason)}); the task goes on`,
    { retryable: true },
  );
}

/** A call, because the compiler would take a property's value as unchanged over an `await`. */
function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}
