import { FleetError } from "../../errors.ts";
import type { PoolStore } from "../pool-store.ts";

/** Being built: every call says so. */
export function createPools(): PoolStore {
  const notYet = (): never => {
    throw new FleetError("FLEET_NOT_AVAILABLE", "pools are not available on this store yet");
  };
  return {
    declare: notYet,
    list: notYet,
    put: notYet,
    claim: notYet,
    leave: notYet,
    change: notYet,
    retire: notYet,
    remove: notYet,
    keep: notYet,
    lose: notYet,
    get: notYet,
    page: notYet,
    count: notYet,
    stats: notYet,
    sweep: notYet,
    putRefill: notYet,
    refills: notYet,
    watch: notYet,
  };
}
