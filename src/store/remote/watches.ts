/**
 * Hints and events that a store asks for over its link. What is watched is kept here and not on the other side, so after any number of lost
 * links it is all watched again. Hints may have been lost meanwhile: each watch that had been ready is told so once it is ready again.
 */
import { messageOf } from "../../errors.ts";
import { errorFromWire, type ToStore, type WireError } from "../../protocol/remote.ts";
import type { Watch } from "../watch.ts";
import type { Connection } from "./connection.ts";
import { closed, unanswered } from "./errors.ts";
import type { RemoteTarget } from "./target.ts";

export interface Listener {
  deliver: (values: readonly unknown[]) => void;
  /** The link was lost and is back: something may have been missed. */
  onRestored?: () => void;
}

/** As a watch; `answer` is what the other side told once it was ready for the first time. */
export interface Subscription extends Watch {
  readonly answer: Promise<unknown>;
}

/** How long after a failure a watch is asked for again. */
const AGAIN_MS = 500;

interface Entry {
  readonly id: number;
  readonly text: string;
  readonly listener: Listener;
  /** Until when `ready` may take. */
  readonly deadline: number;
  /** Undefined once `ready` has settled. */
  waiting: { resolve: (answer: unknown) => void; reject: (error: Error) => void } | undefined;
  /** It has been ready on some link. */
  wasReady: boolean;
}

export class Watches {
  readonly #target: RemoteTarget;
  readonly #entries = new Map<number, Entry>();
  #unready = 0;

  readonly #log: (message: string) => void;

  constructor(target: RemoteTarget, log: (message: string) => void) {
    this.#target = target;
    this.#log = log;
  }

  /** How many have not been ready yet. */
  get unready(): number {
    return this.#unready;
  }

  add(
    watch: { id: number; kind: string; args: unknown; deadline: number },
    listener: Listener,
    connection: () => Connection | undefined,
  ): Subscription {
    const { id, kind, args, deadline } = watch;
    const text = JSON.stringify({ id, watch: kind, args } satisfies ToStore);
    const entry: Entry = { id, text, listener, deadline, waiting: undefined, wasReady: false };
    const answer = new Promise<unknown>((resolve, reject) => (entry.waiting = { resolve, reject }));
    this.#unready += 1;
    this.#entries.set(id, entry);
    connection()?.out.add(text);
    const ready = answer.then(() => undefined);
    // Whoever does not wait for it is not to be ended by it.
    for (const promise of [answer, ready]) promise.catch(() => undefined);
    return {
      ready,
      answer,
      close: () => {
        if (!this.#entries.delete(id)) return Promise.resolve();
        this.#settle(entry)?.reject(closed(this.#target));
        connection()?.out.add(JSON.stringify({ cancel: id } satisfies ToStore));
        return Promise.resolve();
      },
    };
  }

  /** A new link is up. */
  renew(connection: Connection): void {
    for (const { text } of this.#entries.values()) connection.out.add(text);
  }

  /** True where the answer was for a watch. */
  answer(id: number, { ok, error }: { ok?: unknown; error?: WireError }, connection: Connection): boolean {
    const entry = this.#entries.get(id);
    if (entry === undefined) return false;
    if (error !== undefined) {
      const waiting = this.#settle(entry);
      waiting?.reject(errorFromWire(error));
      // The store behind could not do it now, but the link is well: asked for again, until it can.
      if (error.retryable === true) this.#again(entry, connection);
      else this.#entries.delete(id);
      return true;
    }
    const restored = entry.wasReady || entry.waiting === undefined;
    entry.wasReady = true;
    this.#settle(entry)?.resolve(ok);
    if (restored) this.#call(() => entry.listener.onRestored?.());
    return true;
  }

  push(id: number, values: readonly unknown[]): void {
    this.#call(() => this.#entries.get(id)?.listener.deliver(values));
  }

  /** Fails `ready` of those that are not within their time, but goes on trying. */
  expire(now: number, why: string): void {
    for (const entry of this.#entries.values())
      if (now >= entry.deadline) this.#settle(entry)?.reject(unanswered(this.#target, why, false));
  }

  close(): void {
    for (const entry of this.#entries.values()) this.#settle(entry)?.reject(closed(this.#target));
    this.#entries.clear();
  }

  /** What a listener throws must not cost the others their messages. */
  #call(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      this.#log(`a listener of the store threw: ${messageOf(error)}`);
    }
  }

  #again({ id, text }: Entry, connection: Connection): void {
    setTimeout(() => {
      // A new link asks for all by itself.
      if (connection.isUp && this.#entries.has(id)) connection.out.add(text);
    }, AGAIN_MS).unref();
  }

  #settle(entry: Entry): Entry["waiting"] {
    const { waiting } = entry;
    if (waiting !== undefined) this.#unready -= 1;
    entry.waiting = undefined;
    return waiting;
  }
}
