import { FleetError } from "../../errors.ts";
import type { QueueStore } from "../queue-store.ts";

/** Being built: every call says so. */
export function redisQueues(): QueueStore {
  const notYet = (): never => {
    throw new FleetError("FLEET_NOT_AVAILABLE", "queues are not available on this store yet");
  };
  return {
    declare: notYet,
    list: notYet,
    submit: notYet,
    turn: notYet,
    keep: notYet,
    lose: notYet,
    cancel: notYet,
    retry: notYet,
    get: notYet,
    ask: notYet,
    page: notYet,
    stats: notYet,
    sweep: notYet,
    putSchedule: notYet,
    removeSchedule: notYet,
    pauseSchedule: notYet,
    schedules: notYet,
    ticked: notYet,
    watch: notYet,
  };
}
