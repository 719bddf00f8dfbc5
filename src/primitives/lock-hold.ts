import { FleetError, messageOf } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { after, monotonicMs, type Timer } from "../internal/timers.ts";
import type { LockStore } from "../store/state-store.ts";
import type { Held, LeaseBook } from "./lease-book.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";

/** The lease ends here so much before it ends in the store: the tenth part of its hold, but not more than this. */
const MARGIN_MS = 250;
const LOST = "its time was over, or somebody took it away";

export interface LockHoldParts {
  name: string;
  key: string;
  token: string;
  holdMs: number;
  /** Own (monotonic) time before which the lease cannot end in the store. */
  untilMs: number;
  store: LockStore;
  log: Log;
  /** Renews it, where it was asked to extend itself. */
  keeper: LeaseKeeper | undefined;
  /** Where it is entered as long as it is held. */
  books: readonly LeaseBook[];
}

/**
 * The hold on one lock: until when it surely lasts, and what ends it. Times are counted from before the call that was answered, in this
 * process's own monotonic time, so it ends here before it ends in the store: a process that was frozen sees so before it does anything else.
 */
export class LockHold implements Held {
  readonly #parts: LockHoldParts;
  readonly #lost = new AbortController();
  #untilMs: number;
  #timer: Timer | undefined;
  #unkeep: (() => void) | undefined;
  #state: "held" | "lost" | "released" = "held";
  #why = "";
  #releasing: Promise<void> | undefined;

  constructor(parts: LockHoldParts) {
    this.#parts = parts;
    this.#untilMs = parts.untilMs - marginOf(parts.holdMs);
    for (const book of parts.books) book.add(this);
    this.#arm();
    const { name, key, token, holdMs, keeper } = parts;
    this.#unkeep = keeper?.keep({
      kind: "lock",
      name,
      id: key,
      token,
      holdMs,
      renew: () => this.#renew(),
      renewed: (untilMs) => this.#holdUntil(untilMs, holdMs),
      lost: () => this.#lose(LOST),
    });
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  async extend(holdMs: number): Promise<void> {
    this.#check();
    const { name, key, token, store } = this.#parts;
    const started = monotonicMs();
    const answer = await store.extend({ name, key, token, holdMs });
    if (answer.outcome === "extended") return this.#holdUntil(started + holdMs, holdMs);
    this.#lose(LOST);
    throw this.#error();
  }

  async release(): Promise<void> {
    if (this.#state === "released") return;
    this.#check();
    this.#releasing ??= this.#release().finally(() => (this.#releasing = undefined));
    await this.#releasing;
  }

  /** Never fails: what cannot be given back ends by its time. */
  async giveUp(): Promise<void> {
    const { name, key, token, store, log } = this.#parts;
    try {
      if (this.#state === "held") return await this.release();
      // Lost as far as its holder may tell, but perhaps not ended yet in the store: nobody has to wait for that.
      if (this.#state === "lost") await store.release({ name, key, token });
    } catch (error) {
      log.debug("a lock was not released; its lease ends by its time", {
        lock: name,
        key,
        error: messageOf(error),
      });
    } finally {
      this.#finish("released");
    }
  }

  async #release(): Promise<void> {
    const { name, key, token, store } = this.#parts;
    const sureUntil = this.#untilMs;
    const answer = await store.release({ name, key, token });
    // A repeat after a lost answer finds it released by the first; nobody else could have ended it so early.
    if (answer === "released" || monotonicMs() < sureUntil) return this.#finish("released");
    this.#lose(LOST);
    throw this.#error();
  }

  async #renew(): Promise<boolean> {
    if (this.#state !== "held") return false;
    try {
      await this.extend(this.#parts.holdMs);
      return true;
    } catch (error) {
      if (this.#isOver()) return false;
      throw error;
    }
  }

  /** A call, because the compiler would take the state as unchanged over an `await`. */
  #isOver(): boolean {
    return this.#state !== "held";
  }

  #check(): void {
    if (this.#state === "held" && monotonicMs() >= this.#untilMs) this.#lose("its time is over");
    if (this.#isOver()) throw this.#error();
  }

  #holdUntil(untilMs: number, holdMs: number): void {
    if (this.#isOver()) return;
    this.#untilMs = Math.max(this.#untilMs, untilMs - marginOf(holdMs));
    this.#arm();
  }

  #arm(): void {
    this.#timer?.cancel();
    const ended = () => {
      // A timer may fire a little early.
      if (monotonicMs() < this.#untilMs) this.#arm();
      else this.#lose("its time is over");
    };
    this.#timer = after(this.#untilMs - monotonicMs(), ended, { unref: true });
  }

  #lose(why: string): void {
    if (this.#isOver()) return;
    this.#why = why;
    this.#finish("lost");
    this.#lost.abort(this.#error());
  }

  #finish(state: "lost" | "released"): void {
    if (this.#state === "held") this.#state = state;
    this.#timer?.cancel();
    this.#unkeep?.();
    for (const book of this.#parts.books) book.delete(this);
  }

  #error(): FleetError {
    const { name, key } = this.#parts;
    const why = this.#state === "released" ? "it was released" : this.#why;
    return new FleetError(
      "FLEET_LEASE_LOST",
      `${lockText(name, key)}: the lease has ended: ${why}; ask for the lock again`,
    );
  }
}

export function lockText(name: string, key: string): string {
  return key === "" ? `lock "${name}"` : `lock "${name}", key ${JSON.stringify(key)}`;
}

function marginOf(holdMs: number): number {
  return Math.min(MARGIN_MS, holdMs / 10);
}
