/** A lease that is held. */
export interface Held {
  /** Gives it back; never fails: what cannot be given back ends by its time. */
  giveUp(): Promise<void>;
}

/** Leases that somebody holds: a process, or one run of a slot, which gives back what is left when it ends. */
export class LeaseBook {
  readonly #held = new Set<Held>();

  get size(): number {
    return this.#held.size;
  }

  add(lease: Held): void {
    this.#held.add(lease);
  }

  delete(lease: Held): void {
    this.#held.delete(lease);
  }

  async releaseAll(): Promise<void> {
    await Promise.all([...this.#held].map((lease) => lease.giveUp()));
  }
}
