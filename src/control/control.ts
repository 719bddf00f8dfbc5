import type { Log } from "../internal/log.ts";
import type { Store } from "../store/store.ts";
import { Leader } from "./leader.ts";
import { Refills } from "./refills.ts";
import { Schedules } from "./schedules.ts";

export interface ControlOptions {
  store: Store;
  /** Name under which this process stands for election; unique per process. */
  candidate: string;
  /** 1 for masters, which lead where there are any; 0 for workers, which do where there is none. */
  rank: 0 | 1;
  /** A leader that does not renew for so long is replaced. */
  leaseMs: number;
  /** How often what has expired is cleared from all streams, queues and pools. */
  sweepMs: number;
  log: Log;
}

/** All that one process per fleet does for the others, as one service: placement, sweeps, schedules, refills. */
export class Control {
  readonly #leader: Leader;
  readonly #services: readonly (Schedules | Refills)[];

  constructor(options: ControlOptions) {
    this.#leader = new Leader(options);
    const { store, log } = options;
    const leading = () => this.#leader.leading;
    this.#services = [new Schedules({ store, leading, log }), new Refills({ store, leading, log })];
  }

  get leading(): boolean {
    return this.#leader.leading;
  }

  start(): void {
    for (const service of this.#services) service.start();
  }

  /** One step; call it about once a second and on hints, with the revision that the caller knows of (if any). */
  turn(revision: number | undefined): Promise<void> {
    return this.#leader.turn(revision);
  }

  /** Somebody has seen that nobody leads: it stands for election with its next turn. */
  vacant(): void {
    this.#leader.vacant();
  }

  /** Gives the lead up, and stands for no election any more. To be called again where it failed. */
  resign(): Promise<void> {
    return this.#leader.resign();
  }

  /** Waits for what is under way, and gives the lead up. */
  async stop(): Promise<void> {
    await Promise.all(this.#services.map((service) => service.stop()));
    await this.#leader.resign();
  }
}
