import { canonicalJson } from "../internal/canonical.ts";
import { Throttle, type Log } from "../internal/log.ts";
import { messageOf } from "../errors.ts";
import { monotonicMs } from "../internal/timers.ts";
import type { Store } from "../store/store.ts";
import { ANSWER_PREFIX, ASK_PREFIX, PROBE_PREFIX } from "../protocol/event.ts";
import { Agreement } from "./agreement.ts";
import { CanaryGuard } from "./canary.ts";
import { isOwnFault, placeable } from "./damaged.ts";
import { Departures } from "./departures.ts";
import { place } from "./place.ts";
import { type SweepStep, sweepInTurns } from "./sweep-turns.ts";
import { EDGE_AGED_OUT_MS } from "./topology.ts";

/** Records of workers offline for so long are removed, and what they probed themselves with is forgotten. */
const FORGET_WORKER_MS = 3_600_000;
/** So long after its last event a topic is forgotten; should it come back, it counts from 1 again. */
const FORGET_TOPIC_MS = 7 * 86_400_000;
/** Every so many sweeps topics are looked through, too. */
const FORGET_EVERY = 30;

/** So often a master asks for the lead that somebody else has. */
const MASTER_ASKS_MS = 1000;
/** What cannot be swept is told of so often. */
const FAULT_MS = 600_000;

export interface LeaderOptions {
  store: Store;
  /** Name under which this process stands for election; unique per process. */
  candidate: string;
  /** Takes the lead over from those of lower rank. */
  rank: 0 | 1;
  /** A leader that does not renew for so long is replaced. */
  leaseMs: number;
  /** How often what has expired is cleared from all streams, queues and pools. */
  sweepMs: number;
  log: Log;
}

/**
 * What one process per fleet does for all: place slots, stop canaries that fare badly, clear away what has expired. Whoever calls `turn` often enough stands for
 * election; the lease in the store decides. What a leader writes bears its token, so a former leader that was frozen writes
 * nothing, and by its own clock it stops before its lease ends.
 */
export class Leader {
  readonly #options: LeaderOptions;
  readonly #canaries: CanaryGuard;
  readonly #agreement: Agreement;
  readonly #departures: Departures;
  #token: string | undefined;
  /** The token of the last lead: it stays the same until somebody else has led. */
  #term: string | undefined;
  /** Own (monotonic) time until which the lease surely holds. */
  #sureUntil = 0;
  #nextElection = 0;
  /** The asking for the lead that is under way. */
  #standing: Promise<void> = Promise.resolve();
  /** It stands for no election any more. */
  #over = false;
  /** Its lease may still be in the store. */
  #owesLead = false;
  /** Revision of the view that was placed last; undefined when it must be placed anew. */
  #placedAt: number | undefined;
  /** Own time at which the first worker of that view expires unless it is heard of: that changes no revision. */
  #nextExpiry = 0;
  #nextSweep = 0;
  #sweeping = false;
  #sweeps = 0;
  readonly #faults = new Throttle(FAULT_MS);

  constructor(options: LeaderOptions) {
    this.#options = options;
    this.#canaries = new CanaryGuard(options);
    const { store, candidate, log } = options;
    const source = candidate.split(" ")[0] ?? candidate;
    this.#agreement = new Agreement({ store, source, log });
    this.#departures = new Departures({ store, source, log });
  }

  get leading(): boolean {
    return this.#token !== undefined && monotonicMs() < this.#sureUntil;
  }

  /** One step; call it about once a second and on hints, with the revision that the caller knows of (if any). */
  async turn(revision: number | undefined): Promise<void> {
    if (this.#over) return;
    this.#standing = this.#stand();
    await this.#standing;
    if (!this.leading) return;
    const stale = monotonicMs() >= Math.min(this.#nextExpiry, this.#departures.due);
    if (revision !== this.#placedAt || stale) await this.#place();
    if (this.leading) this.#departures.tell(monotonicMs());
    if (this.leading) await this.#canaries.turn();
    if (monotonicMs() >= this.#nextSweep && !this.#sweeping) {
      this.#nextSweep = monotonicMs() + this.#options.sweepMs;
      this.#sweeping = true;
      void this.#sweep().finally(() => {
        this.#sweeping = false;
      });
    }
  }

  /** Nobody leads: the next turn asks for the lead at once. */
  vacant(): void {
    if (!this.leading) this.#nextElection = 0;
  }

  /** Gives the lead up, and stands for no election any more. To be called again where it failed. */
  async resign(): Promise<void> {
    this.#over = true;
    this.#token = undefined;
    // What asks for the lead now may be granted it.
    await this.#standing.catch(() => undefined);
    this.#token = undefined;
    if (!this.#owesLead) return;
    await this.#options.store.registry.resign({ candidate: this.#options.candidate });
    this.#owesLead = false;
  }

  async #stand(): Promise<void> {
    const started = monotonicMs();
    if (started < this.#nextElection) return;
    const { candidate, rank, leaseMs, log, store } = this.#options;
    const led = this.leading;
    // Also where no answer comes.
    this.#owesLead = true;
    const { leading, token, leader } = await store.registry.lead({ candidate, leaseMs, rank });
    this.#owesLead = leading;
    // Masters are few, and soon lead again where one was killed; workers are many, and each asks with a write.
    const waitMs = leading || rank === 0 ? leaseMs / 3 : Math.min(leaseMs / 3, MASTER_ASKS_MS);
    this.#nextElection = started + waitMs;
    this.#token = leading ? token : undefined;
    // Counted from before the call, and a tenth less: it ends here before it ends in the store.
    this.#sureUntil = leading ? started + leaseMs * 0.9 : 0;
    if (leading && !led) this.#placedAt = undefined;
    if (leading && token !== this.#term) {
      this.#departures.forget();
      this.#term = token;
    }
    if (leading && !led) log.debug("leads the fleet", { candidate });
    else if (!leading && led) log.debug("leads no longer", { leader });
  }

  async #place(): Promise<void> {
    const { registry } = this.#options.store;
    const view = await registry.view();
    this.#canaries.see(view);
    const expiries = view.workers.map((worker) => worker.expiresAt - view.now).filter((left) => left > 0);
    this.#nextExpiry = monotonicMs() + Math.min(this.#options.leaseMs, ...expiries) + 20;
    this.#placedAt = view.revision;
    void this.#agreement.look(view);
    this.#departures.see(view, monotonicMs());
    const next = place(
      { desired: placeable(view), workers: view.workers, current: view.assignments },
      view.now,
    );
    const intact = !view.damaged.some(({ kind }) => kind === "assignments");
    const same = intact && canonicalJson(next) === canonicalJson(view.assignments);
    if (same || !this.leading || this.#token === undefined) return;
    this.#placedAt = undefined;
    const outcome = await registry.putAssignments({ assignments: next, token: this.#token });
    if (outcome === "not-leader") {
      // The store may have come back empty: then nobody leads.
      this.#token = undefined;
      this.#nextElection = 0;
    }
  }

  async #sweep(): Promise<void> {
    const { registry, streams, queues, pools, events, edges, state } = this.#options.store;
    try {
      for (const stream of await streams.list()) {
        if (!this.leading) return;
        await this.#alone(`stream "${stream}"`, () => streams.sweep({ stream }));
      }
      await this.#alone("workers", () => registry.pruneWorkers({ offlineMs: FORGET_WORKER_MS }));
      if (this.#sweeps++ % FORGET_EVERY === 0) {
        for (const prefix of [PROBE_PREFIX, ASK_PREFIX, ANSWER_PREFIX])
          await this.#alone("topics", () => events.sweep({ prefix, silentMs: FORGET_WORKER_MS }));
        await this.#alone("topics", () => events.sweep({ prefix: "", silentMs: FORGET_TOPIC_MS }));
        await this.#alone("rate limits", () => state.limits.sweep());
        await this.#alone("observed use", () => edges.sweep({ unseenMs: EDGE_AGED_OUT_MS }));
      }
      const steps: SweepStep[] = [
        ...(await queues.list()).map(
          (queue) => () => this.#alone(`queue "${queue}"`, () => queues.sweep({ queue })),
        ),
        ...(await pools.list()).map(
          (pool) => () => this.#alone(`pool "${pool}"`, () => pools.sweep({ pool })),
        ),
      ];
      // The next sweep begins with the streams again, and gets on with what is left here.
      await sweepInTurns(steps, () => this.leading && monotonicMs() < this.#nextSweep);
    } catch (error) {
      this.#options.log.debug("a sweep was cut short", { error: messageOf(error) });
    }
  }

  /** What cannot be swept keeps nothing else from it. */
  async #alone(what: string, sweep: () => Promise<unknown>): Promise<{ more: boolean }> {
    try {
      const answer = await sweep();
      return { more: (answer as { more?: boolean } | undefined)?.more === true };
    } catch (error) {
      if (!isOwnFault(error)) throw error;
      this.#faults.pass(
        monotonicMs(),
        () =>
          this.#options.log.error("could not be swept, and is left as it is", {
            what,
            error: messageOf(error),
          }),
        what,
      );
      return { more: false };
    }
  }
}
