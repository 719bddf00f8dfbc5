/**
 * The calls of one store that are under way. One limit keeps them from eating the memory while the other side is away or slow; their
 * deadlines are watched by one timer, the link's.
 *
 * A call's life: waiting (no link, or the socket is busy) -> sent -> settled. One that was sent is never sent again: if its link is lost it
 * fails with outcome "unknown". One that was not waits for the next link, until its deadline.
 */
import type { FleetError } from "../../errors.ts";
import { errorFromWire, MAX_REQUEST_BYTES, MAX_REQUESTS, type WireError } from "../../protocol/remote.ts";
import type { Connection } from "./connection.ts";
import { closed, overfull, tooLong, unanswered } from "./errors.ts";
import type { Message } from "./outbox.ts";
import type { RemoteTarget } from "./target.ts";

export interface Call {
  readonly id: number;
  readonly text: string;
  readonly urgent: boolean;
  readonly deadline: number;
  /** The link that it was given to, and what it is there. */
  on: Connection | undefined;
  message: Message | undefined;
  /** How much had come in over that link when it was sent. */
  receivedBefore: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

export interface Trouble {
  text: string;
  /** Given where waiting will not help: a wrong token, another version. */
  error?: () => FleetError;
}

const MAX_BYTES = 64 * 1024 * 1024;
/** What keeps leases is never kept out by what only fills them. */
const RESERVE = 1000;
/** No answer for so long: then a call that must not be done late is not waited for. */
const SILENT_MS = 1000;

export class Calls {
  readonly #target: RemoteTarget;
  readonly #deadlineMs: number;
  readonly #pending = new Map<number, Call>();
  #bytes = 0;
  #closed = false;
  readonly #whenIdle: (() => void)[] = [];

  constructor(target: RemoteTarget, deadlineMs: number) {
    this.#target = target;
    this.#deadlineMs = deadlineMs;
  }

  get size(): number {
    return this.#pending.size;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Makes a call of the text of its message, and hands it to `submit` at once. */
  make(
    call: { id: number; text: string; urgent: boolean; now: number },
    submit: (call: Call) => void,
  ): Promise<unknown> {
    if (this.#closed) return Promise.reject(closed(this.#target));
    const { id, text, urgent, now } = call;
    if (text.length > MAX_REQUEST_BYTES / 3) {
      const bytes = Buffer.byteLength(text);
      if (bytes > MAX_REQUEST_BYTES - 2)
        return Promise.reject(tooLong(this.#target, bytes, MAX_REQUEST_BYTES));
    }
    const most = urgent ? MAX_REQUESTS : MAX_REQUESTS - RESERVE;
    const full = !urgent && this.#bytes + text.length > MAX_BYTES && this.#pending.size > 0;
    if (this.#pending.size >= most || full)
      return Promise.reject(overfull(this.#target, this.#pending.size, this.#bytes));
    return new Promise((resolve, reject) => {
      const made: Call = {
        id,
        text,
        urgent,
        deadline: now + this.#deadlineMs,
        on: undefined,
        message: undefined,
        receivedBefore: 0,
        resolve,
        reject,
      };
      this.#pending.set(id, made);
      this.#bytes += text.length;
      submit(made);
    });
  }

  /** Takes an answer in; one that nobody waits for any more is dropped. */
  answer(id: number, { ok, error }: { ok?: unknown; error?: WireError }): void {
    const call = this.#pending.get(id);
    if (call === undefined) return;
    this.#settle(call);
    if (error === undefined) call.resolve(ok);
    else call.reject(errorFromWire(error));
  }

  /** The link is lost: fails what was sent on it. The rest waits for the next one. */
  lost(connection: Connection, why: string): void {
    for (const call of this.#pending.values()) {
      if (call.on !== connection) continue;
      if (call.message?.sent === true) this.#fail(call, unanswered(this.#target, why, true));
      else call.on = call.message = undefined;
    }
  }

  /**
   * Fails what was not sent, and what was sent so long ago that its answer should be there. Answers the links that owe such an answer
   * and on which nothing came in since.
   */
  letGo(now: number): Set<Connection> {
    const silent = new Set<Connection>();
    for (const { on, message, receivedBefore, deadline } of this.#pending.values()) {
      const late = now - (deadline - this.#deadlineMs) >= SILENT_MS;
      if (on !== undefined && message?.sent === true && late && on.received === receivedBefore)
        silent.add(on);
    }
    for (const call of this.#pending.values()) {
      const sent = call.message?.sent === true;
      if (sent && !(call.on !== undefined && silent.has(call.on))) continue;
      this.#fail(
        call,
        unanswered(this.#target, "it is away, and what was to be done must not be done late", sent),
      );
    }
    return silent;
  }

  waiting(): Call[] {
    return [...this.#pending.values()].filter((call) => call.on === undefined);
  }

  /** Fails what is past its deadline. Answers the links on which nothing at all came in while a call waited there. */
  expire(now: number, trouble: Trouble): Set<Connection> {
    const dead = new Set<Connection>();
    for (const call of this.#pending.values()) {
      if (now < call.deadline) continue;
      const { on, message } = call;
      const sent = message?.sent === true;
      if (on !== undefined && sent && on.received === call.receivedBefore) dead.add(on);
      this.#fail(call, this.#overdue(call, trouble));
    }
    return dead;
  }

  /** No further calls; those that were not sent fail, the others may still settle. */
  close(): void {
    this.#closed = true;
    for (const call of this.#pending.values())
      if (call.message?.sent !== true) this.#fail(call, closed(this.#target));
  }

  /** Resolves when nothing is under way any more. */
  idle(): Promise<void> {
    if (this.#pending.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  #overdue({ on, message }: Call, trouble: Trouble): Error {
    if (on === undefined) return trouble.error?.() ?? unanswered(this.#target, trouble.text, false);
    const sent = message?.sent === true;
    const why = sent ? `none within ${this.#deadlineMs / 1000} s` : "it does not take what is sent to it";
    return unanswered(this.#target, why, sent);
  }

  #fail(call: Call, error: Error): void {
    this.#settle(call);
    call.reject(error);
  }

  #settle(call: Call): void {
    // Should it still wait in the outbox: nobody wants it done any more.
    if (call.message !== undefined) call.message.dropped = true;
    this.#pending.delete(call.id);
    this.#bytes -= call.text.length;
    if (this.#pending.size === 0) for (const idle of this.#whenIdle.splice(0)) idle();
  }
}
