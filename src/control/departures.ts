import { FLEET_TOPICS } from "../contracts/life-cycle.ts";
import { messageOf } from "../errors.ts";
import { backoffMs } from "../internal/backoff.ts";
import type { Log } from "../internal/log.ts";
import { eventBus, type Events } from "../primitives/events.ts";
import { signedOff, type WorkerRecord } from "../protocol/status.ts";
import type { FleetView, Store } from "../store/store.ts";

/** A worker whose time ran out is lost when it is still not heard of after so long: while the store was away, nobody could be heard. */
export const CONFIRM_MS = 3000;
/** Of what was lost longer ago than this a new leader says nothing: another one has. */
export const LATE_MS = 60_000;
/** What could not be published is tried again after these. */
const AGAIN = { baseMs: 1000, capMs: 15_000 };

type Seen = Pick<WorkerRecord, "id" | "incarnation" | "draining" | "lastSeenAt" | "expiresAt">;

interface Known {
  /** How long its lease was while it was heard of; undefined where it was seen expired only. */
  leaseMs: number | undefined;
  /** Own time since which it is seen to be expired; null once there is nothing to say of that, undefined while it is heard of. */
  since: number | null | undefined;
}

const keyOf = ({ id, incarnation }: Seen) => `${id} ${incarnation}`;

/**
 * Which workers are lost: their time ran out, and they did not sign off. Each is answered once for each time that it is lost. Pure but for
 * what it remembers; `at` is the caller's own time, `now` the store's.
 */
export class Losses {
  /** By id and incarnation, as of the last look. */
  #known = new Map<string, Known>();

  see(workers: readonly Seen[], now: number, at: number): Seen[] {
    const before = this.#known;
    this.#known = new Map();
    const lost: Seen[] = [];
    for (const worker of workers) {
      const key = keyOf(worker);
      const { leaseMs, since } = before.get(key) ?? {};
      if (worker.expiresAt > now) {
        this.#known.set(key, { leaseMs: worker.expiresAt - worker.lastSeenAt, since: undefined });
        continue;
      }
      const known: Known = { leaseMs, since };
      if (left(worker, leaseMs)) known.since = null;
      // Whoever was heard of at the last look is nobody else's to tell of, however long there was no store to look into.
      else if (since === undefined)
        known.since = leaseMs === undefined && now - worker.expiresAt > LATE_MS ? null : at;
      else if (since !== null && at - since >= CONFIRM_MS) {
        lost.push(worker);
        known.since = null;
      }
      this.#known.set(key, known);
    }
    return lost;
  }

  /** Whether it was still not heard of at the last look. */
  gone(worker: Seen): boolean {
    return this.#known.get(keyOf(worker))?.since === null;
  }

  /** Others have looked meanwhile: what was seen before says nothing any more. */
  forget(): void {
    this.#known.clear();
  }

  /** Own time at which there is something to look at again. */
  get due(): number {
    const waiting = [...this.#known.values()].map(({ since }) => since ?? Number.POSITIVE_INFINITY);
    return Math.min(...waiting) + CONFIRM_MS;
  }
}

/**
 * Whether it signed off. By a version that wrote down when it did so, its lease is shorter than it was; one that was never seen with its
 * lease is taken to have left where it was draining, as nearly all that drain do.
 */
function left(worker: Seen, leaseMs: number | undefined): boolean {
  if (signedOff(worker)) return true;
  return leaseMs === undefined ? worker.draining : worker.expiresAt - worker.lastSeenAt < leaseMs;
}

/** An event that nobody has been told yet. Times are own ones. */
interface Owed {
  worker: Seen;
  until: number;
  next: number;
  attempts: number;
  sending: boolean;
}

/** Tells of workers that were lost: a part of the leader's turn. One that signs off says so itself. */
export class Departures {
  readonly #log: Log;
  readonly #events: Events;
  readonly #losses = new Losses();
  readonly #owed = new Set<Owed>();

  constructor(parts: { store: Pick<Store, "events">; source: string; log: Log }) {
    this.#log = parts.log;
    this.#events = eventBus({ store: parts.store.events, source: parts.source, own: true });
  }

  /** Own time at which the fleet is to be looked at again. */
  get due(): number {
    return this.#losses.due;
  }

  /** Others have led meanwhile, and have told what there was to tell. */
  forget(): void {
    this.#losses.forget();
    this.#owed.clear();
  }

  /** `at` is own time. */
  see({ workers, now }: Pick<FleetView, "workers" | "now">, at: number): void {
    const lost = this.#losses.see(workers, now, at);
    for (const owed of this.#owed) if (!this.#losses.gone(owed.worker)) this.#owed.delete(owed);
    for (const worker of lost) {
      const seconds = Math.round((now - worker.lastSeenAt) / 1000);
      this.#log.warn(`worker ${worker.id} is lost: it was last heard of ${seconds} s ago`);
      // For as long as a new leader would say it.
      this.#owed.add({ worker, until: at + LATE_MS, next: at, attempts: 0, sending: false });
    }
  }

  /** Publishes what is owed. Call it in each turn; `at` is own time. */
  tell(at: number): void {
    for (const owed of this.#owed) {
      if (owed.sending || at < owed.next) continue;
      if (at < owed.until) void this.#publish(owed, at);
      else {
        this.#owed.delete(owed);
        this.#log.warn(`fleet.worker.offline of worker ${owed.worker.id} could not be published`);
      }
    }
  }

  async #publish(owed: Owed, at: number): Promise<void> {
    owed.sending = true;
    owed.attempts += 1;
    try {
      await this.#events.publish(FLEET_TOPICS.workerOffline, { worker: owed.worker.id, reason: "lost" });
      this.#owed.delete(owed);
    } catch (error) {
      owed.next = at + backoffMs(owed.attempts, AGAIN);
      owed.sending = false;
      this.#log.debug("fleet.worker.offline was not published yet", { error: messageOf(error) });
    }
  }
}
