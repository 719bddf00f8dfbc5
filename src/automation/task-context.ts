import type { Log } from "../internal/log.ts";
import { LeaseBook } from "../primitives/lease-book.ts";
import type { Context } from "./context.ts";
import type { TaskRun } from "./task-run.ts";

/** What all tasks of one run of a slot share. */
export interface TaskScope {
  /** The slot's own context. */
  readonly slot: Context;
  /** Its log, naming this task. */
  log(taskId: string | null): Log;
  /** The slot's context, with waits that end when `signal` aborts, and what is claimed entered in `leases`. */
  ofTask(signal: AbortSignal, leases: LeaseBook): Context;
}

/**
 * What the handler of one task gets: the slot's context, but for the signal and for all that waits, which belong to the task. Those are
 * made when they are used: a handler that uses none of them costs nothing.
 */
export class TaskContext implements Context {
  readonly #scope: TaskScope;
  readonly #run: TaskRun;
  #own: Context | undefined;
  #leases: LeaseBook | undefined;
  #log: Log | undefined;

  constructor(scope: TaskScope, run: TaskRun) {
    this.#scope = scope;
    this.#run = run;
  }

  get #waiting(): Context {
    return (this.#own ??= this.#scope.ofTask(this.#run.signal, (this.#leases = new LeaseBook())));
  }

  /** What its handler still holds, to be given back. */
  get held(): LeaseBook | undefined {
    return this.#leases?.size === 0 ? undefined : this.#leases;
  }

  get signal(): Context["signal"] {
    return this.#run.signal;
  }

  get automation(): Context["automation"] {
    return this.#scope.slot.automation;
  }
  get slotId(): Context["slotId"] {
    return this.#scope.slot.slotId;
  }
  get slotCount(): Context["slotCount"] {
    return this.#scope.slot.slotCount;
  }
  get owns(): Context["owns"] {
    return this.#scope.slot.owns;
  }
  get worker(): Context["worker"] {
    return this.#scope.slot.worker;
  }
  get config(): Context["config"] {
    return this.#scope.slot.config;
  }
  get log(): Context["log"] {
    return (this.#log ??= this.#scope.log(this.#run.taskId));
  }
  get emit(): Context["emit"] {
    return this.#scope.slot.emit;
  }
  get emitMany(): Context["emitMany"] {
    return this.#scope.slot.emitMany;
  }
  get progress(): Context["progress"] {
    return this.#scope.slot.progress;
  }
  get state(): Context["state"] {
    return this.#scope.slot.state;
  }

  get stream(): Context["stream"] {
    return this.#waiting.stream;
  }
  get queue(): Context["queue"] {
    return this.#waiting.queue;
  }
  get submit(): Context["submit"] {
    return this.#waiting.submit;
  }
  get call(): Context["call"] {
    return this.#waiting.call;
  }
  get pool(): Context["pool"] {
    return this.#waiting.pool;
  }
  get lock(): Context["lock"] {
    return this.#waiting.lock;
  }
  get counter(): Context["counter"] {
    return this.#waiting.counter;
  }
  get rateLimit(): Context["rateLimit"] {
    return this.#waiting.rateLimit;
  }
  get events(): Context["events"] {
    return this.#waiting.events;
  }
  get loop(): Context["loop"] {
    return this.#waiting.loop;
  }
  get sleep(): Context["sleep"] {
    return this.#waiting.sleep;
  }
}
