import { FleetError, messageOf } from "../errors.ts";
import type { WorkerTimings } from "../worker/timings.ts";

/** `FLEET_TIMINGS`: a worker's times as JSON in milliseconds, for tuning and tests; which ones there are stands in docs/operations.md. */
export function timingsFrom(text: string | undefined): Partial<WorkerTimings> | undefined {
  if (text === undefined || text === "") return undefined;
  try {
    return JSON.parse(text) as Partial<WorkerTimings>;
  } catch (error) {
    throw new FleetError(
      "FLEET_OPTION_INVALID",
      `FLEET_TIMINGS must be a JSON object, for example {"leaseMs": 3000}: ${messageOf(error)}`,
    );
  }
}
