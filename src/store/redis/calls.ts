/**
 * The calls of one store that are under way: one timer watches all their deadlines (a timer per call costs three quarters of
 * the throughput), and one limit keeps them from eating the memory while the server is away or slow.
 *
 * A call's life: waiting (no connection yet) -> sent (`on` a connection) -> settled. A lost connection turns a sent call back
 * into a waiting one if it is `repeatable`, else it fails with outcome "unknown".
 */
import type { FleetError } from "../../errors.ts";
import { monotonicMs } from "../../internal/timers.ts";
import type { Connection } from "./connection.ts";
import { closed, overfull, unanswered } from "./errors.ts";
import type { Target } from "./target.ts";

export interface CallOptions {
  /** A repeat does no harm: it reads, or carries an operation id, or writes the same again. */
  repeatable: boolean;
  /** A key of the call: on a cluster it decides where the call goes. */
  key: string;
  /** What to send instead where the server refuses no more than this way to call a script; `send` sends something of its own before. */
  instead?: (
    reply: string,
    send: (args: readonly string[]) => Promise<unknown>,
  ) => readonly string[] | undefined;
}

export interface Call {
  args: readonly string[];
  readonly options: CallOptions;
  readonly deadline: number;
  readonly bytes: number;
  /** The connection it was sent on, while no answer came. */
  on: Connection | undefined;
  sentAt: number;
  /** A connection it had been sent on was lost: it may have taken effect already. */
  lostOnce: boolean;
  /** Waits for the server to be able to serve it; not to be sent before. */
  parked: boolean;
  settled: boolean;
  /** How often a node of a cluster pointed to another one. */
  redirects: number;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: Error) => void;
}

export interface Trouble {
  text: string;
  /** Given where waiting will not help: wrong password, unsuitable server. */
  error?: () => FleetError;
}

const MAX_CALLS = 20_000;
/** Deadlines closer together than this are looked at together. */
const SOONEST_MS = 5;
/** No answer for so long: then a call that must not be done late is not waited for. */
const SILENT_MS = 1000;
const MAX_BYTES = 64 * 1024 * 1024;

export class Calls {
  readonly #target: Target;
  readonly #deadlineMs: number;
  readonly #pending = new Set<Call>();
  #bytes = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;
  readonly #whenIdle: (() => void)[] = [];
  /** Why there is no connection, for the errors of those who waited for one. */
  trouble: Trouble = { text: "not connected yet" };

  constructor(target: Target, deadlineMs: number) {
    this.#target = target;
    this.#deadlineMs = deadlineMs;
  }

  /** Makes a call and hands it to `submit` at once. */
  make(args: readonly string[], options: CallOptions, submit: (call: Call) => void): Promise<unknown> {
    if (this.#closed) return Promise.reject(closed(this.#target));
    let bytes = 0;
    for (const arg of args) bytes += arg.length;
    if (this.#pending.size >= MAX_CALLS || (this.#bytes + bytes > MAX_BYTES && this.#pending.size > 0)) {
      return Promise.reject(
        overfull(this.#target, `${this.#pending.size} calls of ${Math.round(this.#bytes / 1e6)} MB`),
      );
    }
    return new Promise<unknown>((resolve, reject) => {
      const call: Call = {
        args,
        options,
        bytes,
        deadline: monotonicMs() + this.#deadlineMs,
        on: undefined,
        sentAt: 0,
        lostOnce: false,
        parked: false,
        settled: false,
        redirects: 0,
        resolve,
        reject,
      };
      this.#pending.add(call);
      this.#bytes += bytes;
      if (this.#pending.size === 1) this.#arm();
      submit(call);
    });
  }

  resolve(call: Call, reply: unknown): void {
    if (this.#settle(call)) call.resolve(reply);
  }

  reject(call: Call, error: Error): void {
    if (this.#settle(call)) call.reject(error);
  }

  /** Takes the calls back that were sent on a lost connection; answers those to be sent again, in order. */
  takeBack(connection: Connection, why: string): Call[] {
    const again: Call[] = [];
    for (const call of this.#pending) {
      if (call.on !== connection) continue;
      call.on = undefined;
      call.lostOnce = true;
      // Once closed no connection comes any more to send it again: it would only keep its caller, and the process, till its deadline.
      if (call.options.repeatable && !this.#closed) again.push(call);
      else this.reject(call, unanswered(this.#target, why, true));
    }
    return again;
  }

  /** Fails what waits for a connection. A connection that owes an answer for long is given up first, with all that was sent on it. */
  letGo(): void {
    const now = monotonicMs();
    const silent = new Set<Connection>();
    for (const { on, sentAt } of this.#pending)
      if (on !== undefined && now - sentAt >= SILENT_MS) silent.add(on);
    for (const call of this.#pending) {
      if (call.on !== undefined && !silent.has(call.on)) continue;
      const sent = call.on !== undefined || call.lostOnce;
      this.reject(
        call,
        unanswered(this.#target, "the store is away, and what was to be done must not be done late", sent),
      );
    }
    for (const connection of silent) connection.drop("a call got no answer, and must not be done late");
  }

  /** The calls that wait for a connection, in order. */
  waiting(): Call[] {
    return [...this.#pending].filter((call) => call.on === undefined && !call.parked);
  }

  /** No further calls; those that wait for a connection fail, those that were sent may still settle. */
  close(): void {
    this.#closed = true;
    for (const call of this.#pending) if (call.on === undefined) this.reject(call, closed(this.#target));
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Resolves when nothing is under way any more; at the latest when the last deadline has passed. */
  idle(): Promise<void> {
    if (this.#pending.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  #settle(call: Call): boolean {
    if (call.settled) return false;
    call.settled = true;
    call.on = undefined;
    this.#pending.delete(call);
    this.#bytes -= call.bytes;
    if (this.#pending.size === 0) {
      this.#timer?.unref();
      for (const idle of this.#whenIdle.splice(0)) idle();
    }
    return true;
  }

  /**
   * One timer for all calls. It stays when the last one is answered, so that it need not be made anew with each lone call, nor wake an
   * idle process after each: it is due at a deadline, and looks whose that is then.
   */
  #arm(): void {
    if (this.#timer !== undefined) {
      this.#timer.ref();
      return;
    }
    const [first] = this.#pending;
    const ms = first === undefined ? 0 : first.deadline - monotonicMs();
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.#expire(monotonicMs());
        if (this.#pending.size > 0) this.#arm();
      },
      Math.max(SOONEST_MS, ms),
    );
  }

  #expire(now: number): void {
    const halfOpen = new Set<Connection>();
    for (const call of this.#pending) {
      if (now < call.deadline) continue;
      // A call sent again late in its life says nothing about the connection; one that waited its whole time there does.
      if (call.on !== undefined && now - call.sentAt >= this.#deadlineMs * 0.9) halfOpen.add(call.on);
      this.reject(call, this.#overdue(call));
    }
    for (const connection of halfOpen) connection.drop("a call got no answer within its deadline");
  }

  #overdue(call: Call): Error {
    if (call.on !== undefined) {
      return unanswered(this.#target, `none within ${this.#deadlineMs / 1000} s`, true);
    }
    if (!call.lostOnce && this.trouble.error !== undefined) return this.trouble.error();
    return unanswered(this.#target, this.trouble.text, call.lostOnce);
  }
}
