import { messageOf, FleetError } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { after, monotonicMs, type Timer } from "../internal/timers.ts";
import type { ClaimedItem } from "../protocol/pool.ts";
import type { HolderChange, PoolStore } from "../store/pool-store.ts";
import type { Held, LeaseBook } from "./lease-book.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";

/** The lease ends here so much before it ends in the store: the tenth part of its hold, but not more than this. */
const MARGIN_MS = 250;

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
  readonly #lost = new AbortController();
  #untilMs: number;
  #timer: Timer | undefined;
  #unkeep: (() => void) | undefined;
  /** Why it has ended; undefined while it holds. */
  #over: string | undefined;
  #ending: Promise<unknown> | undefined;

  constructor(parts: HoldParts) {
    this.#parts = parts;
    this.#untilMs = parts.untilMs - margin(parts.holdMs);
    for (const book of parts.books) book.add(this);
    this.#arm();
    const { pool, item, holdMs, keeper } = parts;
    this.#unkeep = keeper?.keep({
      kind: "pool",
      name: pool,
      id: item.id,
      token: item.token,
      holdMs,
      renew: () => this.#renew(),
      renewed: (untilMs) => this.#holdUntil(untilMs, holdMs),
      lost: () => this.#lose("its time was over, or somebody took it away"),
    });
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  async change(change: HolderChange): Promise<number> {
    this.#check();
    const { pool, item, store } = this.#parts;
    const started = monotonicMs();
    const answer = await store.change({ pool, id: item.id, token: item.token, change });
    if (answer.outcome === "lease-lost") {
      this.#lose("its time was over, or somebody took it away");
      throw this.#error();
    }
    if (change.do === "extend") this.#holdUntil(started + change.holdMs, change.holdMs);
    return answer.score;
  }

  /** A change that ends the claim. */
  async end(change: HolderChange, word: string): Promise<void> {
    this.#check();
    const ending = this.change(change);
    this.#ending = ending;
    try {
      await ending;
    } finally {
      this.#ending = undefined;
    }
    this.#finish(word);
  }

  async giveUp(): Promise<void> {
    try {
      if (this.#ending !== undefined) await this.#ending;
      if (this.#over === undefined) await this.end({ do: "release" }, "was released");
    } catch (error) {
      const { pool, item, log } = this.#parts;
      if (this.#over === undefined)
        log.debug("an item was not released; its lease ends by its time", {
          pool,
          item: item.id,
          error: messageOf(error),
        });
      // Whatever became of it, its holder is done with it.
      this.#finish("was given up");
    }
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
    if (this.#over === undefined && monotonicMs() >= this.#untilMs) this.#lose("its time is over");
    if (this.#over !== undefined) throw this.#error();
  }

  #holdUntil(untilMs: number, holdMs: number): void {
    const sure = untilMs - margin(holdMs);
    // What holds for longer already is left as it is, in the store too.
    if (this.#over !== undefined || sure <= this.#untilMs) return;
    this.#untilMs = sure;
    this.#arm();
  }

  #arm(): void {
    this.#timer?.cancel();
    this.#timer = after(
      this.#untilMs - monotonicMs(),
      () => {
        // A timer may fire a little early.
        if (monotonicMs() < this.#untilMs) this.#arm();
        else this.#lose("its time is over");
      },
      { unref: true },
    );
  }

  #lose(why: string): void {
    if (this.#over !== undefined) return;
    this.#finish(why);
    this.#lost.abort(this.#error());
  }

  #finish(why: string): void {
    this.#over ??= why;
    this.#timer?.cancel();
    this.#unkeep?.();
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
