import { FleetError } from "../../errors.ts";
import type { StateStore } from "../state-store.ts";

/** Being built: every call says so. */
export function redisState(): StateStore {
  const notYet = (): never => {
    throw new FleetError(
      "FLEET_NOT_AVAILABLE",
      "locks, counters and rate limits are not available on this store yet",
    );
  };
  return {
    locks: {
      acquire: notYet,
      extend: notYet,
      release: notYet,
      leave: notYet,
      keep: notYet,
      lose: notYet,
      list: notYet,
      show: notYet,
      watch: notYet,
    },
    counters: {
      add: notYet,
      get: notYet,
      set: notYet,
      compareAndSet: notYet,
      list: notYet,
      page: notYet,
      remove: notYet,
    },
    limits: { take: notYet, giveBack: notYet, list: notYet, show: notYet, sweep: notYet },
  };
}
