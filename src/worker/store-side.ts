import { applyProgram } from "../control/apply-program.ts";
import { Control } from "../control/control.ts";
import { isOwnFault, knownBefore } from "../control/damaged.ts";
import { isFleetError, messageOf } from "../errors.ts";
import { Throttle, type Log } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import type { Program } from "../protocol/program.ts";
import { slotKey, type SlotRef } from "../protocol/spec.ts";
import type { DrainWish, SlotStatus } from "../protocol/status.ts";
import type { HeldLease, Store } from "../store/store.ts";
import type { Watch } from "../store/watch.ts";
import type { Books } from "./books.ts";
import { asKnown, Recovery } from "./recovery.ts";
import { SelfCheck } from "./self-check.ts";
import { Setbacks } from "./setbacks.ts";
import type { Turns } from "./turns.ts";
import { ownButNotHeld } from "./wanted.ts";

/** A hint can be lost: the view is read anew at least so often. */
const VIEW_MS = 15_000;

const NOT_ANNOUNCED = "what has changed of this worker could not be announced";
const NOT_WRITTEN = "what the new program asks for could not be written";
const NOT_PUT_BACK = "what the store has lost could not be put back";

export interface StoreSideParts {
  store: Store;
  books: Books;
  turns: Pick<Turns, "renew">;
  log: Log;
  /** What to report of the slots. */
  statuses: () => SlotStatus[];
  /** Told that the store came back empty. */
  emptied: () => Promise<void>;
  /** Told what of a drain is asked of this worker, with each view that says so. */
  asked: (drain: DrainWish) => void;
  /** Told that something may have to be done now: the view, the leases or the program changed. */
  changed: () => void;
}

/**
 * The half of a supervisor that talks with the store: beats, the fleet's view, claims and releases, the leader's work, the proof
 * that it still receives. May be slow or fail; nothing that runs waits for it.
 */
export class StoreSide {
  readonly #parts: StoreSideParts;
  readonly #control: Control;
  readonly #selfCheck: SelfCheck;
  readonly #recovery: Recovery;
  readonly #trouble = new Throttle(10_000, 60_000);
  readonly #setbacks: Setbacks;
  #recoverAt = Number.NEGATIVE_INFINITY;
  /** The program whose `deploy` and schedules were written last, and the writing under way. */
  #applied: Program;
  #applying: Promise<void> = Promise.resolve();
  /** Programs that ask for what another try would not change, and what was wrong. */
  readonly #refused = new WeakMap<Program, { error: unknown }>();
  /** The latest that the store has told. */
  #revision: number | undefined;
  #viewReadAt = Number.NEGATIVE_INFINITY;
  #beatAt = Number.NEGATIVE_INFINITY;
  #ticking = false;
  #again = false;
  #stopped = false;
  #timer: ReturnType<typeof setInterval> | undefined;
  #watch: Watch | undefined;

  constructor(parts: StoreSideParts) {
    this.#parts = parts;
    const { store, books, log } = parts;
    const { member, timings } = books;
    this.#applied = books.program;
    this.#recovery = new Recovery(parts);
    this.#setbacks = new Setbacks(log);
    this.#control = new Control({
      store,
      candidate: `${member.id} ${member.incarnation}`,
      rank: 0,
      leaseMs: timings.leaseMs,
      sweepMs: timings.sweepMs,
      log,
    });
    this.#selfCheck = new SelfCheck({
      store,
      workerId: member.id,
      everyMs: timings.probeMs,
      log,
      onChange: (why) => this.#onHearing(why),
    });
  }

  start(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setInterval(() => void this.tick(), this.#parts.books.timings.beatMs);
    this.#listen();
    this.#selfCheck.start();
    this.#control.start();
    void this.tick();
  }

  /** Signs off. May take as long as the store does. */
  async leave(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    try {
      await Promise.all([this.#selfCheck.stop(), this.#control.stop()]);
      const { member } = this.#parts.books;
      // Its record outlives it, for whoever waits for it to leave.
      if (member.untold && !member.standsBy) await member.announce().catch(() => undefined);
      await member.leave();
      await this.#watch?.close();
    } catch (error) {
      this.#parts.log.debug("leaving was cut short", { error: messageOf(error) });
    }
  }

  /** Writes the changed record and what the program's `deploy` says, then looks what follows. What fails is done again with each tick. */
  async programChanged(): Promise<void> {
    const { program } = this.#parts.books;
    await this.#announce();
    await this.#applyInTurn();
    // Also where a tick under way has found it before.
    const refused = this.#refused.get(program);
    if (refused !== undefined) throw refused.error;
    this.#viewReadAt = Number.NEGATIVE_INFINITY;
    await this.tick();
  }

  /**
   * One round with the store; another follows at once where something came up meanwhile. What this worker has to write for itself may be
   * refused for long, by a store that is full: that keeps it from nothing else.
   */
  async tick(): Promise<void> {
    if (this.#ticking || this.#stopped) {
      this.#again = true;
      return;
    }
    this.#ticking = true;
    const { books, log, changed } = this.#parts;
    try {
      do {
        this.#again = false;
        await this.#beat();
        await this.#recover();
        // Before others hear of the drain: then they find that nobody leads.
        if (books.member.draining) await this.#resign();
        await this.#setbacks.spare(NOT_ANNOUNCED, () => this.#announce());
        await this.#setbacks.spare(NOT_WRITTEN, () => this.#applyInTurn());
        if (!books.member.standsBy) await this.#takePart();
        changed();
        await this.#release();
      } while (this.#again && !this.#stopped);
    } catch (error) {
      const why = messageOf(error);
      const what = isFleetError(error, "FLEET_STORE_UNAVAILABLE")
        ? "the store does not answer"
        : "a round with the store failed";
      this.#trouble.pass(
        monotonicMs(),
        (swallowed) =>
          log.warn(`${what}; trying again`, {
            error: why,
            ...(swallowed > 0 ? { failures: swallowed } : {}),
          }),
        why,
      );
    } finally {
      this.#ticking = false;
    }
  }

  async #takePart(): Promise<void> {
    if (!this.#parts.books.member.draining) await this.#control.turn(this.#revision);
    await this.#look();
    await this.#claim();
    await this.#parts.turns.renew();
  }

  /** A worker that drains leads no longer: it places nothing here, and may end at any time. */
  async #resign(): Promise<void> {
    try {
      await this.#control.resign();
    } catch (error) {
      this.#parts.log.debug("the lead was not given up yet", { error: messageOf(error) });
    }
  }

  async #beat(): Promise<void> {
    const { books, log, statuses } = this.#parts;
    const { timings, member } = books;
    if (monotonicMs() - this.#beatAt < timings.beatMs * 0.8) return;
    const leases = books.leases.all();
    const asked = monotonicMs();
    const kept = await member.beat(leases, timings.leaseMs, statuses());
    books.absence.answered(asked);
    if (kept === undefined) return this.#reenter();
    // After a gap it begins anew: what waits for the store to place its slots has waited only since then.
    if (kept.since - this.#beatAt > timings.leaseMs / 2) books.answersSince = monotonicMs();
    this.#beatAt = kept.since;
    books.storeOffset = kept.now - monotonicMs();
    books.leases.renewed(leases, kept.lost, kept.since + timings.leaseMs);
    for (const lost of kept.lost) {
      log.warn("lost a slot: its lease has gone to somebody else", { slot: slotKey(lost) });
    }
    this.#revision = kept.revision;
    if (kept.revision !== books.view?.revision) this.#viewReadAt = Number.NEGATIVE_INFINITY;
  }

  /** The store does not know this worker: it came back empty, or this worker was away for so long that its id was taken. */
  async #reenter(): Promise<void> {
    const { member, leases } = this.#parts.books;
    this.#trouble.pass(monotonicMs(), () =>
      this.#parts.log.warn("the store does not know this worker any more; registering anew"),
    );
    await this.#recovery.begin();
    if (this.#stopped || (await member.announce())) return;
    // Whoever bears the id now may run its slots as well.
    for (const lease of leases.all()) leases.drop(lease);
  }

  /** Puts back what the store has lost, until that has succeeded once. What cannot be put back keeps this worker from nothing else. */
  async #recover(): Promise<void> {
    if (!this.#recovery.pending || this.#parts.books.member.standsBy || this.#stopped) return;
    if (monotonicMs() < this.#recoverAt) return;
    try {
      await this.#recovery.finish();
      this.#viewReadAt = Number.NEGATIVE_INFINITY;
      if (this.#setbacks.over(NOT_PUT_BACK)) this.#parts.log.info("what the store has lost is put back");
    } catch (error) {
      // Once per tick, where the store may take it soon.
      const pauseMs = isOwnFault(error) ? VIEW_MS : this.#parts.books.timings.beatMs * 0.8;
      this.#recoverAt = monotonicMs() + pauseMs;
      this.#setbacks.failed(NOT_PUT_BACK, error);
    }
  }

  /** Writes this worker's record, where that has changed here. */
  async #announce(): Promise<void> {
    const { member } = this.#parts.books;
    if (member.untold && !this.#stopped) await member.announce();
    this.#setbacks.over(NOT_ANNOUNCED);
  }

  /** One after the other: what an older program says never comes after a newer one's. */
  #applyInTurn(): Promise<void> {
    this.#applying = this.#applying.catch(() => undefined).then(() => this.#apply());
    return this.#applying;
  }

  /** Writes what a new program's `deploy` and schedules say. */
  async #apply(): Promise<void> {
    const { store, books, log } = this.#parts;
    const { program } = books;
    if (program === this.#applied || this.#stopped) return;
    try {
      await applyProgram(store, program, log);
      this.#refused.delete(program);
      if (this.#setbacks.over(NOT_WRITTEN)) log.info("what the new program asks for is written");
    } catch (error) {
      if (!isOwnFault(error)) throw error;
      // Nothing that another try would change: whoever has put it in place is told.
      this.#refused.set(program, { error });
      this.#setbacks.over(NOT_WRITTEN);
      log.error("what the new program asks for is refused; it runs as things stand", {
        error: messageOf(error),
      });
    }
    this.#applied = program;
    this.#viewReadAt = Number.NEGATIVE_INFINITY;
  }

  async #look(): Promise<void> {
    const now = monotonicMs();
    if (now - this.#viewReadAt < VIEW_MS) return;
    const { books, store } = this.#parts;
    const read = await store.registry.view();
    const view = knownBefore(read, books.view);
    const own = view.workers.find(({ incarnation }) => incarnation === books.member.incarnation);
    // A store that came back empty is not what the fleet looks like: nothing known is given up for it.
    if (own === undefined) {
      this.#again = true;
      return this.#reenter();
    }
    books.member.generation = own.generation;
    if (own.wish?.drain !== undefined) this.#parts.asked(own.wish.drain);
    const behind = this.#recovery.look(view);
    if (behind) await this.#recover();
    // It has been written meanwhile, and is to be read.
    if (behind && !this.#recovery.pending) return;
    books.view = behind ? asKnown(view, books.view) : view;
    if (view.leader === null && !books.member.draining) {
      this.#control.vacant();
      this.#again = true;
    }
    this.#viewReadAt = now;
  }

  async #claim(): Promise<void> {
    const { store, books } = this.#parts;
    const { claim } = books.plan();
    if (claim.length > 0) {
      // One that ended here while its renewal was under way, or whose grant was never heard of: nobody else would give it back.
      const leases = ownButNotHeld(claim, books.view?.leases ?? [], books.member.incarnation);
      if (leases.length > 0) await store.registry.releaseSlots({ leases });
      await this.#take(claim);
    }
    // Granted before it is known how healthy they are: that call may fail, and the leases are held all the same.
    const unknown = books.leases.all().filter((lease) => !books.slots.knows(lease));
    if (unknown.length === 0) return;
    const health = await store.registry.slotHealth();
    for (const lease of unknown) books.slots.adopt(lease, health[slotKey(lease)], monotonicMs());
  }

  async #take(slots: readonly SlotRef[]): Promise<void> {
    const { store, books } = this.#parts;
    const started = monotonicMs();
    const { id: workerId, incarnation } = books.member;
    const { leaseMs } = books.timings;
    let granted: HeldLease[] = [];
    try {
      granted = await store.registry.claimSlots({ workerId, incarnation, leaseMs, slots });
      books.leases.granted(granted, started + leaseMs);
    } finally {
      // What holds the others is to be seen.
      if (granted.length < slots.length) this.#viewReadAt = Number.NEGATIVE_INFINITY;
    }
  }

  /** Gives back what is not wanted here any more and has ended. */
  async #release(): Promise<void> {
    const { store, books } = this.#parts;
    // Also what is left of slots whose leases were lost.
    for (const slot of books.slots.idle()) if (!books.leases.has(slot)) books.slots.forget(slot);
    const idle = books.leases.all().filter((lease) => books.slots.isIdle(lease));
    if (idle.length === 0) return;
    const over = books.plan().unwanted;
    const leases = idle.filter((lease) => over.has(slotKey(lease)));
    if (leases.length === 0) return;
    for (const lease of leases) {
      books.leases.drop(lease);
      books.slots.forget(lease);
    }
    await store.registry.releaseSlots({ leases });
  }

  #listen(): void {
    this.#watch = this.#parts.store.registry.watch(() => {
      this.#revision = undefined;
      this.#viewReadAt = Number.NEGATIVE_INFINITY;
      void this.tick();
    });
    this.#watch.ready.catch(() => undefined);
  }

  #onHearing(deaf: string | null): void {
    const { books, log } = this.#parts;
    if (!books.member.setDeaf(deaf)) return;
    if (deaf === null) log.info("receiving again");
    else {
      log.error("this worker does not receive what is published", { reason: deaf });
      void this.#watch?.close().catch(() => undefined);
      this.#listen();
    }
    void this.tick();
  }
}
