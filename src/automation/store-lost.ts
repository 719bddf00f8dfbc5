import { isFleetError } from "../errors.ts";

/**
 * Whether this was thrown because the store was away, or came back without this slot's lease: then the code that it ended is not to
 * blame. A full buffer (`FLEET_STORE_BUSY`) is no such case: it takes code that does not wait for its own calls.
 */
export function isStoreLost(error: unknown): boolean {
  if (!isFleetError(error) || error.code === "FLEET_STORE_BUSY") return false;
  return error.retryable || error.code === "FLEET_LEASE_LOST";
}
