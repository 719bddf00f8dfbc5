import { canonicalJson } from "../internal/canonical.ts";
import type { Log } from "../internal/log.ts";
import { messageOf } from "../errors.ts";
import { monotonicMs } from "../internal/timers.ts";
import type { Store } from "../store/store.ts";
import { PROBE_PREFIX } from "../protocol/event.ts";
import { place } from "./place.ts";
import { type SweepStep, sweepInTurns } from "./sweep-turns.ts";

/** Records of workers offline for so long are removed, and what they probed themselves with is forgotten. */
const FORGET_WORKER_MS = 3_600_000;
/** So long after its last event a topic is forgotten; should it come back, it counts from 1 again. */
const FORGET_TOPIC_MS = 7 * 86_400_000;
/** Every so many sweeps topics are looked through, too. */
const FORGET_EVERY = 30;

export interface LeaderOptions {
  store: Store;
  /** Name under which this process stands for election; unique per process. */
  candidate: string;
  /** A leader that does not renew for so long is replaced. */
  leaseMs: number;
  /** How often what has expired is cleared from all streams, queues and pools. */
  sweepMs: number;
  log: Log;
}

/**
 * What one process per fleet does for all: place slots, clear away what has expired. Whoever calls `turn` often enough stands for
 * election; the lease in the store decides. What a leader writes bears its token, so a former leader that was frozen writes
 * nothing, and by its own clock it stops before its lease ends.
 */
export class Leader {
  readonly #options: LeaderOptions;
  #token: string | undefined;
  /** Own (monotonic) time until which the lease surely holds. */
  #sureUntil = 0;
  #nextElection = 0;
  /** Revision of the view that was placed last; undefined when it must be placed anew. */
  #placedAt: number | undefined;
  /** Own time at which the first worker of that view expires unless it is heard of: that changes no revision. */
  #nextExpiry = 0;
  #nextSweep = 0;
  #sweeping = false;
  #sweeps = 0;

  constructor(options: LeaderOptions) {
    this.#options = options;
  }

  get leading(): boolean {
    return this.#token !== undefined && monotonicMs() < this.#sureUntil;
  }

  /** One step; call it about once a second and on hints, with the revision that the caller knows of (if any). */
  async turn(revision: number | undefined): Promise<void> {
    await this.#stand();
    if (!this.leading) return;
    if (revision !== this.#placedAt || monotonicMs() >= this.#nextExpiry) await this.#place();
    if (monotonicMs() >= this.#nextSweep && !this.#sweeping) {
      this.#nextSweep = monotonicMs() + this.#options.sweepMs;
      this.#sweeping = true;
      void this.#sweep().finally(() => {
        this.#sweeping = false;
      });
    }
  }

  async resign(): Promise<void> {
    if (this.#token === undefined) return;
    this.#token = undefined;
    await this.#options.store.registry.resign({ candidate: this.#options.candidate });
  }

  async #stand(): Promise<void> {
    const started = monotonicMs();
    if (started < this.#nextElection) return;
    const { candidate, leaseMs, log, store } = this.#options;
    const led = this.leading;
    const { leading, token, leader } = await store.registry.lead({ candidate, leaseMs });
    this.#nextElection = started + leaseMs / 3;
    this.#token = leading ? token : undefined;
    // Counted from before the call, and a tenth less: it ends here before it ends in the store.
    this.#sureUntil = leading ? started + leaseMs * 0.9 : 0;
    if (leading && !led) this.#placedAt = undefined;
    if (leading && !led) log.debug("leads the fleet", { candidate });
    else if (!leading && led) log.debug("leads no longer", { leader });
  }

  async #place(): Promise<void> {
    const { registry } = this.#options.store;
    const view = await registry.view();
    const expiries = view.workers.map((worker) => worker.expiresAt - view.now).filter((left) => left > 0);
    this.#nextExpiry = monotonicMs() + Math.min(this.#options.leaseMs, ...expiries) + 20;
    this.#placedAt = view.revision;
    const next = place({ desired: view.desired, workers: view.workers, current: view.assignments }, view.now);
    if (canonicalJson(next) === canonicalJson(view.assignments) || !this.leading || this.#token === undefined)
      return;
    this.#placedAt = undefined;
    const outcome = await registry.putAssignments({ assignments: next, token: this.#token });
    if (outcome === "not-leader") {
      // The store may have come back empty: then nobody leads.
      this.#token = undefined;
      this.#nextElection = 0;
    }
  }

  async #sweep(): Promise<void> {
    const { registry, streams, queues, pools, events, state } = this.#options.store;
    try {
      for (const stream of await streams.list()) {
        if (!this.leading) return;
        await streams.sweep({ stream });
      }
      await registry.pruneWorkers({ offlineMs: FORGET_WORKER_MS });
      if (this.#sweeps++ % FORGET_EVERY === 0) {
        await events.sweep({ prefix: PROBE_PREFIX, silentMs: FORGET_WORKER_MS });
        await events.sweep({ prefix: "", silentMs: FORGET_TOPIC_MS });
        await state.limits.sweep();
      }
      const steps: SweepStep[] = [
        ...(await queues.list()).map((queue) => () => queues.sweep({ queue })),
        ...(await pools.list()).map((pool) => () => pools.sweep({ pool })),
      ];
      // The next sweep begins with the streams again, and gets on with what is left here.
      await sweepInTurns(steps, () => this.leading && monotonicMs() < this.#nextSweep);
    } catch (error) {
      this.#options.log.debug("a sweep was cut short", { error: messageOf(error) });
    }
  }
}
