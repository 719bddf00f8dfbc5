import { FLEET_TOPICS } from "../contracts/life-cycle.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import { eventBus, type Events } from "../primitives/events.ts";
import { signedOff, type WorkerRecord } from "../protocol/status.ts";
import type { FleetView, Store } from "../store/store.ts";

/** A worker whose time ran out is lost when it is still not heard of after so long: while the store was away, nobody could be heard. */
export const CONFIRM_MS = 3000;
/** Of what was lost longer ago than this a new leader says nothing: another one has. */
export const LATE_MS = 60_000;

type Seen = Pick<WorkerRecord, "id" | "incarnation" | "lastSeenAt" | "expiresAt">;

/**
 * Which workers are lost: their time ran out, and they did not sign off. Each is answered once for each time that it is lost. Pure but for
 * what it remembers; `at` is the caller's own time, `now` the store's.
 */
export class Losses {
  /** Since when (own time) they are seen to be expired, by id and incarnation; null once that was answered. */
  #expired = new Map<string, number | null>();

  see(workers: readonly Seen[], now: number, at: number): Seen[] {
    const before = this.#expired;
    this.#expired = new Map();
    const lost: Seen[] = [];
    for (const worker of workers) {
      if (worker.expiresAt > now || signedOff(worker)) continue;
      const key = `${worker.id} ${worker.incarnation}`;
      const late = now - worker.expiresAt > LATE_MS;
      let since = before.get(key);
      if (since === undefined) since = late ? null : at;
      if (since !== null && at - since >= CONFIRM_MS) {
        lost.push(worker);
        since = null;
      }
      this.#expired.set(key, since);
    }
    return lost;
  }

  /** What was answered of it has reached nobody: it is answered again, unless it is heard of meanwhile. */
  untold({ id, incarnation }: Seen, at: number): void {
    this.#expired.set(`${id} ${incarnation}`, at);
  }

  /** Own time at which there is something to look at again. */
  get due(): number {
    const waiting = [...this.#expired.values()].filter((since) => since !== null);
    return Math.min(...waiting) + CONFIRM_MS;
  }
}

/** Tells of workers that were lost: a part of the leader's turn. One that signs off says so itself. */
export class Departures {
  readonly #log: Log;
  readonly #events: Events;
  readonly #losses = new Losses();

  constructor(parts: { store: Pick<Store, "events">; source: string; log: Log }) {
    this.#log = parts.log;
    this.#events = eventBus({ store: parts.store.events, source: parts.source, own: true });
  }

  /** Own time at which the fleet is to be looked at again. */
  get due(): number {
    return this.#losses.due;
  }

  see({ workers, now }: Pick<FleetView, "workers" | "now">): void {
    for (const worker of this.#losses.see(workers, now, monotonicMs())) {
      const { id, lastSeenAt } = worker;
      const seconds = Math.round((now - lastSeenAt) / 1000);
      this.#log.warn(`worker ${id} is lost: it was last heard of ${seconds} s ago`);
      this.#events
        .publish(FLEET_TOPICS.workerOffline, { worker: id, reason: "lost" })
        .catch((error: unknown) => {
          this.#losses.untold(worker, monotonicMs());
          this.#log.debug("fleet.worker.offline was not published yet", { error: messageOf(error) });
        });
    }
  }
}
