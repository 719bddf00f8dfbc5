import { setMaxListeners } from "node:events";
import { isQueueContract, type QueueContract } from "../contracts/queue.ts";
import type { Schema } from "../contracts/schema/standard.ts";
import { FleetError } from "../errors.ts";
import { Throttle, type Log } from "../internal/log.ts";
import type { TaskRecord } from "../protocol/task.ts";
import type { Store } from "../store/store.ts";
import { IdlePoller } from "./idle-poller.ts";
import type { OnUse } from "./on-use.ts";
import type { QueueHandle } from "./queue.ts";
import { queueHandle } from "./queue-handle.ts";
import { type EndArgs, QueueReader } from "./queue-reader.ts";
import { settingsOf } from "./queue-settings.ts";
import { QueueSubmitter } from "./queue-submitter.ts";
import { QueueWaiters } from "./queue-waiters.ts";

/** How often trouble with one queue is said. */
const SAY_MS = 5000;

export interface QueuesOptions {
  log: Log;
  /** Interval of the look behind lost hints, in ms; one turn per interval and process. Default 1000. */
  pollMs?: number;
  /** Default nobody. */
  onUse?: OnUse;
}

/** By whom a handle is used, where that is a slot. */
export interface QueueUse {
  /**
   * Ends waits early. Its user ends it before all this is closed; it is used as it is, because a signal that lives long never forgets
   * those that were combined with it, and there is one per task.
   */
  signal?: AbortSignal;
  /** Called when something was submitted or answered, and around waits on purpose. */
  activity?: { progress(): void; waiting(on: boolean): void };
  /** Called before each effect; throws where this user must have none any more. */
  fence?: () => void;
}

/** The queues of one process, from their users' side: what its handles share (submitters, waits for ends, one idle poller). */
export class Queues {
  readonly #store: Store;
  readonly #log: Log;
  readonly #onUse: OnUse | undefined;
  readonly #poller: IdlePoller;
  readonly #submitters = new Map<string, QueueSubmitter>();
  readonly #waiters = new Map<string, QueueWaiters>();
  readonly #quietly = new Map<string, Throttle>();
  readonly #over = new AbortController();

  constructor(store: Store, options: QueuesOptions) {
    this.#store = store;
    this.#log = options.log;
    this.#onUse = options.onUse;
    // As many parts of a process may wait at once as there are; each listens while it waits, so more than ten are no leak.
    setMaxListeners(0, this.#over.signal);
    this.#poller = new IdlePoller(options.pollMs ?? 1000);
  }

  handle<P extends Schema, R extends Schema>(
    contract: QueueContract<P, R>,
    use: QueueUse = {},
  ): QueueHandle<P, R> {
    if (!isQueueContract(contract)) {
      throw new FleetError(
        "FLEET_OPTION_INVALID",
        "expected a queue contract made by defineQueue(name, schema), or a batch automation's `.tasks`",
      );
    }
    if (this.#over.signal.aborted) throw closed();
    return queueHandle({
      contract,
      store: this.#store.queues,
      submitter: this.#submitter(contract),
      reader: this.#reader(contract.name),
      ...use,
      signal: this.#signal(use.signal),
      onUse: this.#onUse,
    });
  }

  /** A task of any queue as it stands when it has ended. Throws `FLEET_TASK_UNKNOWN`, and `FLEET_TASK_PENDING` when the time is over. */
  end(queue: string, args: EndArgs): Promise<TaskRecord> {
    if (this.#over.signal.aborted) throw closed();
    return this.#reader(queue).end(args);
  }

  /** Writes a queue's settings: as owner, who runs its tasks, always; as guest only where there are none. */
  async declare(contract: QueueContract, as: "owner" | "guest"): Promise<void> {
    await this.#store.queues.declare({ queue: contract.name, settings: settingsOf(contract), as });
  }

  /** Waits for every submission accepted so far, then ends all waiting. Idempotent. */
  async close(): Promise<void> {
    await Promise.all([...this.#submitters.values()].map((submitter) => submitter.flushed()));
    this.#over.abort(closed());
    await Promise.all([...this.#waiters.values()].map((waiters) => waiters.close()));
  }

  #signal(own: AbortSignal | undefined): AbortSignal {
    // Its user may wait in as many places at once as there are.
    if (own !== undefined) setMaxListeners(0, own);
    return own ?? this.#over.signal;
  }

  #submitter(contract: QueueContract): QueueSubmitter {
    const known = this.#submitters.get(contract.name);
    if (known !== undefined) return known;
    const made = new QueueSubmitter(this.#store.queues, contract);
    this.#submitters.set(contract.name, made);
    return made;
  }

  #reader(queue: string): QueueReader {
    let waiters = this.#waiters.get(queue);
    if (waiters === undefined) {
      const watch = (onFinished: (id: string) => void) => this.#store.queues.watch({ queue }, { onFinished });
      const ended = (ids: readonly string[]) => this.#store.queues.ended({ queue, ids });
      this.#waiters.set(queue, (waiters = new QueueWaiters(watch, ended, this.#poller)));
    }
    let quietly = this.#quietly.get(queue);
    if (quietly === undefined) this.#quietly.set(queue, (quietly = new Throttle(SAY_MS)));
    return new QueueReader(this.#store.queues, queue, { waiters, log: this.#log, quietly });
  }
}

function closed(): FleetError {
  return new FleetError("FLEET_CLOSED", "this fleet has been closed");
}
