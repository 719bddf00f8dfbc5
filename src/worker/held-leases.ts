import { slotKey, type SlotRef } from "../protocol/spec.ts";
import type { HeldLease } from "../store/store.ts";

/**
 * The slot leases of this worker, and until when each surely holds by this process's own clock (monotonic). The store's answer is
 * counted from before the call was made, so a lease ends here before anybody else can take it.
 */
export class HeldLeases {
  readonly #leases = new Map<string, HeldLease & { sureUntil: number }>();

  all(): HeldLease[] {
    return [...this.#leases.values()].map(({ automation, slotId, token }) => ({ automation, slotId, token }));
  }

  has(slot: SlotRef): boolean {
    return this.#leases.has(slotKey(slot));
  }

  tokenOf(slot: SlotRef): string | undefined {
    return this.#leases.get(slotKey(slot))?.token;
  }

  /** Own time until which this very lease surely holds; undefined when it is not held, also when a newer one of its slot is. */
  sureUntil(lease: HeldLease): number | undefined {
    const held = this.#leases.get(slotKey(lease));
    return held?.token === lease.token ? held.sureUntil : undefined;
  }

  granted(leases: readonly HeldLease[], sureUntil: number): void {
    for (const lease of leases) this.#leases.set(slotKey(lease), { ...lease, sureUntil });
  }

  renewed(leases: readonly HeldLease[], lost: readonly HeldLease[], sureUntil: number): void {
    const gone = new Set(lost.map((lease) => `${slotKey(lease)} ${lease.token}`));
    for (const lease of leases) {
      const held = this.#leases.get(slotKey(lease));
      if (held === undefined || held.token !== lease.token) continue;
      if (gone.has(`${slotKey(lease)} ${lease.token}`)) this.#leases.delete(slotKey(lease));
      else held.sureUntil = sureUntil;
    }
  }

  /** Lets go of those that are not sure any more, and answers whether there were any. */
  dropUnsure(now: number): boolean {
    let dropped = false;
    for (const [key, lease] of this.#leases) {
      if (lease.sureUntil > now) continue;
      this.#leases.delete(key);
      dropped = true;
    }
    return dropped;
  }

  drop(slot: SlotRef): HeldLease | undefined {
    const lease = this.#leases.get(slotKey(slot));
    this.#leases.delete(slotKey(slot));
    return lease;
  }
}
