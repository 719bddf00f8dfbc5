import { FleetError, messageOf } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { after, monotonicMs, type Timer } from "../internal/timers.ts";
import type { LockStore } from "../store/state-store.ts";
import type { Held, LeaseBook } from "./lease-book.ts";
import type { Keeping, LeaseKeeper } from "./lease-keeper.ts";

/** The lease ends here so much before it ends in the store: the tenth part of its hold, but not more than this. */
const MARGIN_MS = 250;
const LATE = "its time is over";
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
  #keeping: Keeping | undefined;
  #state: "held" | "lost" | "released" = "held";
  #why = "";
  #releasing: Promise<void> | undefined;

  constructor(parts: LockHoldParts) {
    this.#parts = parts;
    this.#untilMs = parts.untilMs - marginOf(parts.holdMs);
    for (const book of parts.books) book.add(this);
    this.#arm();
    const { name, key, token, holdMs, keeper } = parts;
    this.#keeping = keeper?.keep({
      kind: "lock",
      name,
      id: key,
      token,
      holdMs,
      renew: () => this.#renew(),
      renewed: (untilMs) => this.#holdUntil(untilMs, holdMs),
      lost: () => this.#hearLost(),
    });
  }

  /** Aborted already where the time is over and this process was too busy, or frozen, to notice. */
  get signal(): AbortSignal {
    this.look();
    return this.#lost.signal;
  }

  async extend(holdMs: number): Promise<void> {
    this.#check();
    const { name, key, token, store } = this.#parts;
    const started = monotonicMs();
    const answer = await store.extend({ name, key, token, holdMs });
    if (answer.outcome === "extended") return this.#holdUntil(started + holdMs, holdMs);
    this.#lose(LOST, true);
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
      this.#finish("released", false);
    }
  }

  async #release(): Promise<void> {
    const { name, key, token, store } = this.#parts;
    const sureUntil = this.#untilMs;
    const answer = await store.release({ name, key, token });
    // A repeat after a lost answer finds it released by the first; nobody else could have ended it so early.
    if (answer === "released" || monotonicMs() < sureUntil) return this.#finish("released", true);
    this.#lose(LOST, true);
    throw this.#error();
  }

  /** While it is being released, it is gone for its keeper before its holder has the answer; that says what became of it. */
  #hearLost(): void {
    if (this.#releasing === undefined) this.#lose(LOST, true);
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
    this.look();
    if (this.#isOver()) throw this.#error();
  }

  look(): void {
    if (this.#state === "held" && this.#isLate()) this.#lose(LATE, false);
  }

  #isLate(): boolean {
    if (monotonicMs() < this.#untilMs) return false;
    // A process that was only busy for long has not heard yet that its lease was kept: it looks, rather than lose it.
    if (this.#keeping !== undefined) this.#holdUntil(this.#keeping.knownUntil(), this.#parts.holdMs);
    return monotonicMs() >= this.#untilMs;
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
      if (this.#isLate()) this.#lose(LATE, false);
      else this.#arm();
    };
    this.#timer = after(this.#untilMs - monotonicMs(), ended, { unref: true });
  }

  /** `known`: to the store, too. */
  #lose(why: string, known: boolean): void {
    if (this.#isOver()) return;
    this.#why = why;
    this.#finish("lost", known);
    this.#lost.abort(this.#error());
  }

  #finish(state: "lost" | "released", known: boolean): void {
    if (this.#state === "held") this.#state = state;
    this.#timer?.cancel();
    this.#keeping?.letGo(known);
    this.#keeping = undefined;
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
