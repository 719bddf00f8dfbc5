import { number } from "../contracts/options.ts";
import type { Log } from "../internal/log.ts";
import type { LeaseBook } from "./lease-book.ts";

const atLeastZero = number({ min: 0 });

/** By whom a lock, counter or limit is used, where that is a slot. */
export interface StateUse {
  /** Ends waits early. Its user ends it before all this is closed. */
  signal?: AbortSignal;
  /** Called when something was had, and around waits on purpose. */
  activity?: { progress(): void; waiting(on: boolean): void };
  /** Called before each effect; throws where this user must have none any more. */
  fence?: () => void;
  /** For people: who holds a lock. */
  by?: string;
  /** Where leases are entered too: whoever keeps it gives back what is left. */
  leases?: LeaseBook;
  log?: Log;
}

/** Seconds of a wait; `Infinity` for one without an end. */
export function waitSeconds(value: unknown, where: string): number {
  return value === Number.POSITIVE_INFINITY ? value : atLeastZero(value, where);
}

/** Waits on purpose do not count as being stuck. */
export async function waitingOnPurpose<T>(
  { activity }: StateUse,
  seconds: number,
  work: () => Promise<T>,
): Promise<T> {
  if (seconds > 0) activity?.waiting(true);
  try {
    return await work();
  } finally {
    if (seconds > 0) activity?.waiting(false);
  }
}
