import { messageOf } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import type { FleetView, Registry } from "../store/store.ts";
import type { Books } from "./books.ts";

/** How soon a worker that waits for its turn asks again, in ms; while nothing moves nobody asks. */
const ASK_AGAIN_MS = 250;
/** A store that answers so slowly still lets slots move. */
const FRESH_MS = 2000;

export interface TurnsParts {
  registry: Pick<Registry, "takeTurn" | "endTurn">;
  books: Books;
  log: Log;
  /** Told when it has become this worker's turn. */
  changed: () => void;
}

/**
 * When this worker may take slots down to move them to a fresh process: at most half of the workers that run an automation do so at
 * the same time, and never all of them where there are two or more.
 *
 * A turn is a small lease in the store. It counts here only for two seconds (or beats) from its last renewal: while the store is away no move is
 * begun, though one under way comes to its end.
 */
export class Turns {
  readonly #parts: TurnsParts;
  /** Automation → own time just before the call by which the turn was taken or renewed last. */
  readonly #held = new Map<string, number>();
  readonly #asking = new Set<string>();
  /** Automation → how often a turn of it was ended: the answer to what was asked before that counts no more. */
  readonly #ends = new Map<string, number>();
  readonly #askAgainAt = new Map<string, number>();

  constructor(parts: TurnsParts) {
    this.#parts = parts;
  }

  mayMove(now: number): Set<string> {
    const { beatMs, leaseMs } = this.#parts.books.timings;
    const fresh = Math.min(Math.max(2 * beatMs, FRESH_MS), leaseMs / 2);
    return new Set([...this.#held].filter(([, since]) => now - since < fresh).map(([name]) => name));
  }

  /** Asks for the turn, without waiting for the answer; again and again is harmless. */
  ask(automation: string, now: number): void {
    if (this.#asking.has(automation) || now < (this.#askAgainAt.get(automation) ?? 0)) return;
    void this.#take(automation);
  }

  end(automation: string): void {
    this.#held.delete(automation);
    this.#askAgainAt.delete(automation);
    this.#ends.set(automation, this.#endsOf(automation) + 1);
    const { registry, log } = this.#parts;
    registry
      .endTurn({ automation, holder: this.#holder })
      .catch((error: unknown) => log.debug("a turn was not given back", { error: messageOf(error) }));
  }

  /** Keeps what is held, once a beat: a slot may take long to stop. */
  async renew(): Promise<void> {
    const { leaseMs, beatMs } = this.#parts.books.timings;
    const now = monotonicMs();
    for (const [automation, since] of this.#held) {
      // One that has run out for sure is nobody's to renew.
      if (now - since >= leaseMs) this.#held.delete(automation);
      else if (now - since >= beatMs * 0.8 && !this.#asking.has(automation)) await this.#take(automation);
    }
  }

  #endsOf(automation: string): number {
    return this.#ends.get(automation) ?? 0;
  }

  get #holder(): string {
    const { id, incarnation } = this.#parts.books.member;
    return `${id} ${incarnation}`;
  }

  async #take(automation: string): Promise<void> {
    const { registry, books, log, changed } = this.#parts;
    const since = monotonicMs();
    const ends = this.#endsOf(automation);
    this.#asking.add(automation);
    try {
      const most = movesAtOnce(books.view, automation);
      const answer = await registry.takeTurn({
        automation,
        holder: this.#holder,
        most,
        ttlMs: books.timings.leaseMs,
      });
      if (answer === "full") return void this.#held.delete(automation);
      // The store may have had this after the end.
      if (ends !== this.#endsOf(automation)) return this.end(automation);
      this.#held.set(automation, since);
      changed();
    } catch (error) {
      log.debug("no turn to move slots could be had", { automation, error: messageOf(error) });
    } finally {
      this.#asking.delete(automation);
      this.#askAgainAt.set(automation, monotonicMs() + ASK_AGAIN_MS * (0.8 + 0.4 * Math.random()));
    }
  }
}

/** How many workers may take slots of an automation down at once: half of those that run some, and at least one. Pure. */
export function movesAtOnce(
  view: Pick<FleetView, "assignments" | "workers" | "now"> | undefined,
  automation: string,
): number {
  const alive = new Set(view?.workers.filter((w) => w.expiresAt > (view?.now ?? 0)).map(({ id }) => id));
  const running = new Set(Object.values(view?.assignments[automation] ?? {}).filter((id) => alive.has(id)));
  return Math.max(1, Math.floor(running.size / 2));
}
