import type { LeaseKind } from "../protocol/host.ts";

/** A lease that was asked to extend itself, as its holder has it. */
export interface KeptLease {
  kind: LeaseKind;
  /** Of the pool or lock. */
  name: string;
  /** Of the item; of a lock its key. */
  id: string;
  token: string;
  holdMs: number;
  /** Renews it by one hold. False: it is lost. Throws while the store is away. */
  renew(): Promise<boolean>;
  /** To be told where somebody else has renewed it: until when it surely holds, in this process's monotonic time. */
  renewed(untilMs: number): void;
  /** To be told where somebody else has found it lost. */
  lost(): void;
}

/** What keeps one lease, as its holder has it. */
export interface Keeping {
  /**
   * Until when (monotonic time of this process) the lease surely holds, as its keeper knows it by now, though nothing was heard of it yet; for a
   * holder that was busy for long. 0 where nothing is known.
   */
  knownUntil(): number;
  /** Ends it. `over`: the store knows that the lease has ended; else its keeper sees to that. */
  letGo(over: boolean): void;
}

/** Renews leases that were asked to extend themselves (`autoExtend`), until they are let go. */
export interface LeaseKeeper {
  /** Leases of this pool, or locks of this name, are about to be asked for. */
  uses(kind: LeaseKind, name: string): void;
  keep(lease: KeptLease): Keeping;
}

/** A third of the hold: two renewals may fail before the lease ends. */
const PART = 3;
const SOONEST_MS = 10;

/** Renews from within the process that holds the leases, so one whose event loop is busy for longer than a hold loses them. */
export class OwnLeaseKeeper implements LeaseKeeper {
  uses(): void {
    // What this process still holds when it ends is nobody's business.
  }

  keep(lease: KeptLease): Keeping {
    let over = false;
    let timer: ReturnType<typeof setTimeout>;
    const next = () => {
      if (over) return;
      timer = setTimeout(() => void turn(), Math.max(SOONEST_MS, lease.holdMs / PART));
      // A lease alone does not keep its process from ending.
      timer.unref();
    };
    const turn = async () => {
      // While the store is away it is tried again with the next turn; the holder's own clock says when that is too late.
      const held = await lease.renew().catch(() => true);
      if (held) next();
    };
    next();
    return {
      knownUntil: () => 0,
      letGo: () => {
        over = true;
        clearTimeout(timer);
      },
    };
  }
}
