import { slotKey, type SlotRef } from "../protocol/spec.ts";
import type { HeldLease } from "../store/store.ts";

/**
 * The slot leases of this worker, and until when each surely holds by this process's own clock (monotonic). The store's answer is
 * counted from before the call was made, so a lease ends here before anybody else can take it.
 */
export class HeldLeases {
  readonly #leases = new Map<string, HeldLease & { sureUntil: number }>();
  /** When the last of them ended because nothing was heard of the store. */
  #outlived: number | undefined;

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
    if (leases.length > 0) this.#outlived = undefined;
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

  /**
   * Whether all that were held end within `aheadMs`, or have ended at most `sinceMs` ago: nothing was heard of the store for as long as
   * they last.
   */
  areOver(now: number, { aheadMs, sinceMs }: { aheadMs: number; sinceMs: number }): boolean {
    if (this.#leases.size === 0) return this.#outlived !== undefined && now <= this.#outlived + sinceMs;
    return [...this.#leases.values()].every(({ sureUntil }) => sureUntil <= now + aheadMs);
  }

  /** Whether one that is held ends by then. */
  someEndBy(time: number): boolean {
    for (const { sureUntil } of this.#leases.values()) if (sureUntil <= time) return true;
    return false;
  }

  /** Lets go of those that are not sure any more, and answers whether there were any. */
  dropUnsure(now: number): boolean {
    let dropped = false;
    for (const [key, lease] of this.#leases) {
      if (lease.sureUntil > now) continue;
      this.#leases.delete(key);
      dropped = true;
    }
    if (dropped && this.#leases.size === 0) this.#outlived = now;
    return dropped;
  }

  drop(slot: SlotRef): HeldLease | undefined {
    const lease = this.#leases.get(slotKey(slot));
    this.#leases.delete(slotKey(slot));
    return lease;
  }
}
