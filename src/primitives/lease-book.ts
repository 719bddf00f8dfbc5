/** A lease that is held. */
export interface Held {
  /** Gives it back; never fails: what cannot be given back ends by its time. */
  giveUp(): Promise<void>;
  /** Leaves the book where its time is over. */
  look(): void;
}

/** So many leases are held before those are looked for whose time is over. */
const FEW = 100;

/** Leases that somebody holds: a process, or one run of a slot, which gives back what is left when it ends. */
export class LeaseBook {
  readonly #held = new Set<Held>();
  #lookAt = FEW;

  get size(): number {
    return this.#held.size;
  }

  /** What was forgotten leaves the book by and by, so that it stays below twice what is held. */
  add(lease: Held): void {
    this.#held.add(lease);
    if (this.#held.size < this.#lookAt) return;
    for (const held of this.#held) held.look();
    this.#lookAt = Math.max(FEW, 2 * this.#held.size);
  }

  delete(lease: Held): void {
    this.#held.delete(lease);
  }

  async releaseAll(): Promise<void> {
    await Promise.all([...this.#held].map((lease) => lease.giveUp()));
  }
}
