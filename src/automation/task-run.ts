import { setMaxListeners } from "node:events";
import type { StopReason } from "./context.ts";

/**
 * One run of a task (or, with `runMany`, of several), from the first line of its handler to the last: what its signal says. The signal
 * is made when somebody looks at it, because most handlers are over before they could.
 */
export class TaskRun {
  /** Machine-wide monotonic milliseconds. */
  readonly startedAt: number;
  /** 0 for no limit. */
  readonly timeoutMs: number;
  /** Null where several tasks share it. */
  readonly taskId: string | null;
  #controller: AbortController | undefined;
  #aborted: StopReason | null = null;
  #over = false;

  constructor(startedAt: number, timeoutMs: number, taskId: string | null) {
    this.startedAt = startedAt;
    this.timeoutMs = timeoutMs;
    this.taskId = taskId;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      // User code may wait in many places at once; more than ten listeners are no leak.
      setMaxListeners(0, this.#controller.signal);
      if (this.#aborted !== null || this.#over) this.#controller.abort(this.#aborted ?? "ended");
    }
    return this.#controller.signal;
  }

  /** Why the handler was told to end; null while it was not. */
  get aborted(): StopReason | null {
    return this.#aborted;
  }

  /** The first reason counts. */
  abort(reason: StopReason): void {
    if (this.#aborted !== null || this.#over) return;
    this.#aborted = reason;
    this.#controller?.abort(reason);
  }

  isOverdue(now: number): boolean {
    return this.timeoutMs > 0 && now - this.startedAt >= this.timeoutMs;
  }

  /** The handler has ended, and whatever it left going ends too. */
  end(): void {
    this.#over = true;
    this.#controller?.abort("ended" satisfies StopReason);
  }
}
