import { FleetError, isFleetError, messageOf } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { after, monotonicMs, type Timer } from "../internal/timers.ts";
import type { ClaimedItem } from "../protocol/pool.ts";
import type { HolderChange, PoolStore } from "../store/pool-store.ts";
import type { Held, LeaseBook } from "./lease-book.ts";
import type { Keeping, LeaseKeeper } from "./lease-keeper.ts";

/** The lease ends here so much before it ends in the store: the tenth part of its hold, but not more than this. */
const MARGIN_MS = 250;
const TAKEN = "its time was over, or somebody took it away";
const LATE = "its time is over";

export interface HoldParts {
  pool: string;
  item: ClaimedItem;
  holdMs: number;
  /** Own (monotonic) time before which the lease cannot end in the store. */
  untilMs: number;
  store: PoolStore;
  log: Log;
  /** Renews it, where it was asked to extend itself. */
  keeper: LeaseKeeper | undefined;
  /** Where it is entered as long as it is held. */
  books: readonly LeaseBook[];
}

/**
 * The hold on one item: until when it surely lasts, and what ends it. Times are counted from before the call that was answered, in
 * this process's own monotonic time, so it ends here before it ends in the store: a process that was frozen sees so before it does
 * anything else with it.
 */
export class PoolHold implements Held {
  readonly #parts: HoldParts;
  /** Made when somebody looks at the signal, as is the timer: most leases are given back before, and both cost more than all the rest. */
  #lost: AbortController | undefined;
  #untilMs: number;
  #timer: Timer | undefined;
  #keeping: Keeping | undefined;
  /** Why it has ended; undefined while it holds. */
  #over: string | undefined;
  /** It has ended otherwise than by its holder. */
  #isLost = false;
  #ending: Promise<unknown> | undefined;
  /** What was to end it, and had its answer lost: it may have. */
  readonly #unsure: { change: HolderChange; word: string }[] = [];
  /** It has ended by one of those. */
  #endedUnsure = false;

  constructor(parts: HoldParts) {
    this.#parts = parts;
    this.#untilMs = parts.untilMs - margin(parts.holdMs);
    for (const book of parts.books) book.add(this);
    const { pool, item, holdMs, keeper } = parts;
    this.#keeping = keeper?.keep({
      kind: "pool",
      name: pool,
      id: item.id,
      token: item.token,
      holdMs,
      renew: () => this.#renew(),
      renewed: (untilMs) => this.#holdUntil(untilMs, holdMs),
      lost: () => this.#hearLost(),
    });
    // Else what would be renewed goes on being so until somebody looks.
    if (this.#keeping !== undefined) this.#arm();
  }

  /** Aborted already where the time is over and this process was too busy, or frozen, to notice. */
  get signal(): AbortSignal {
    this.look();
    if (this.#lost === undefined) {
      this.#lost = new AbortController();
      if (this.#isLost) this.#lost.abort(this.#error());
      else if (this.#over === undefined && this.#timer === undefined) this.#arm();
    }
    return this.#lost.signal;
  }

  async change(change: HolderChange): Promise<number> {
    this.#check();
    const { pool, item, store } = this.#parts;
    const started = monotonicMs();
    const answer = await store.change({ pool, id: item.id, token: item.token, change });
    if (answer.outcome === "lease-lost") {
      this.#hearOver();
      throw this.#error();
    }
    if (change.do === "extend") this.#holdUntil(started + change.holdMs, change.holdMs);
    return answer.score;
  }

  /**
   * A change that ends the claim. Where an answer was lost, the same again finds out what became of it: it does not fail because the first has
   * done it.
   */
  async end(change: HolderChange, word: string): Promise<void> {
    this.look();
    if (this.#isDone(change)) return;
    this.#check();
    const ending = this.change(change);
    this.#ending = ending;
    try {
      await ending;
    } catch (error) {
      if (isFleetError(error) && error.outcome === "unknown") this.#unsure.push({ change, word });
      if (!this.#isDone(change)) throw error;
    } finally {
      this.#ending = undefined;
    }
    this.#finish(word, true);
  }

  async giveUp(): Promise<void> {
    try {
      if (this.#ending !== undefined) await this.#ending;
      if (this.#over === undefined) await this.end({ do: "release" }, "it was released");
    } catch (error) {
      const { pool, item, log } = this.#parts;
      if (this.#over === undefined)
        log.debug("an item was not released; its lease ends by its time", {
          pool,
          item: item.id,
          error: messageOf(error),
        });
      // Whatever became of it, its holder is done with it.
      this.#finish("it was given up", false);
    }
  }

  /** While it is being ended, it is gone for its keeper before its holder has the answer; that says what became of it. */
  #hearLost(): void {
    if (this.#ending === undefined) this.#hearOver();
  }

  /**
   * The store says that it is over. Before its sure end that is so by what was to end it and had no answer, where there is such a thing: by
   * hand an item can only be retired or removed meanwhile, which is no less of an end. Else it was taken away.
   */
  #hearOver(): void {
    const [first] = this.#unsure;
    if (first === undefined || this.#over !== undefined || this.#isLate()) return this.#lose(TAKEN, true);
    this.#endedUnsure = true;
    this.#finish(first.word, true);
  }

  /** Whether that is what it has ended by, whichever of those without an answer it was. */
  #isDone(change: HolderChange): boolean {
    return this.#endedUnsure && this.#unsure.every((one) => suffices(one.change, change));
  }

  async #renew(): Promise<boolean> {
    if (this.#over !== undefined) return false;
    try {
      await this.change({ do: "extend", holdMs: this.#parts.holdMs });
      return true;
    } catch (error) {
      if (this.#over !== undefined) return false;
      throw error;
    }
  }

  #check(): void {
    this.look();
    if (this.#over !== undefined) throw this.#error();
  }

  look(): void {
    if (this.#over === undefined && this.#isLate()) this.#lose(LATE, false);
  }

  #isLate(): boolean {
    if (monotonicMs() < this.#untilMs) return false;
    // A process that was only busy for long has not heard yet that its lease was kept: it looks, rather than lose it.
    if (this.#keeping !== undefined) this.#holdUntil(this.#keeping.knownUntil(), this.#parts.holdMs);
    return monotonicMs() >= this.#untilMs;
  }

  #holdUntil(untilMs: number, holdMs: number): void {
    const sure = untilMs - margin(holdMs);
    // What holds for longer already is left as it is, in the store too.
    if (this.#over !== undefined || sure <= this.#untilMs) return;
    this.#untilMs = sure;
    if (this.#timer !== undefined) this.#arm();
  }

  #arm(): void {
    this.#timer?.cancel();
    this.#timer = after(
      this.#untilMs - monotonicMs(),
      () => {
        // A timer may fire a little early.
        if (this.#isLate()) this.#lose(LATE, false);
        else this.#arm();
      },
      { unref: true },
    );
  }

  /** `known`: to the store, too. */
  #lose(why: string, known: boolean): void {
    if (this.#over !== undefined) return;
    this.#finish(why, known);
    this.#isLost = true;
    this.#lost?.abort(this.#error());
  }

  #finish(why: string, known: boolean): void {
    this.#over ??= why;
    this.#timer?.cancel();
    this.#keeping?.letGo(known);
    this.#keeping = undefined;
    for (const book of this.#parts.books) book.delete(this);
  }

  #error(): FleetError {
    const { pool, item } = this.#parts;
    return new FleetError(
      "FLEET_LEASE_LOST",
      `pool "${pool}": the lease of item ${item.id} has ended: ${this.#over}; claim again`,
    );
  }
}

function margin(holdMs: number): number {
  return Math.min(MARGIN_MS, holdMs / 10);
}

/**
 * Whether whoever asked for `wanted` has it where `done` was done: whoever gives an item back only wants to be done with it; one that is to be
 * retired or to rest must not be given out.
 */
function suffices(done: HolderChange, wanted: HolderChange): boolean {
  if (wanted.do === "release") return true;
  if (wanted.do === "cool") return done.do === "cool" && done.ms >= wanted.ms;
  return done.do === wanted.do;
}
