import { FleetError } from "../../errors.ts";
import type { RemoteTarget } from "./target.ts";

type Shown = Pick<RemoteTarget, "shown">;

/** The error for a call that got no answer: `sent` tells whether it may have taken effect. */
export function unanswered({ shown }: Shown, why: string, sent: boolean): FleetError {
  return sent
    ? new FleetError("FLEET_STORE_UNAVAILABLE", `no answer from ${shown}: ${why}`, {
        retryable: true,
        outcome: "unknown",
      })
    : new FleetError("FLEET_STORE_UNAVAILABLE", `no link to ${shown}: ${why}`, { retryable: true });
}

export function closed({ shown }: Shown): FleetError {
  return new FleetError("FLEET_CLOSED", `the store at ${shown} was closed`);
}

export function overfull({ shown }: Shown, calls: number, bytes: number): FleetError {
  return new FleetError(
    "FLEET_STORE_BUSY",
    `${shown} does not keep up: ${calls} calls of ${Math.round(bytes / 1e6)} MB are under way already`,
    { retryable: true },
  );
}

export function tooLong({ shown }: Shown, bytes: number, most: number): FleetError {
  return new FleetError(
    "FLEET_PAYLOAD_TOO_LARGE",
    `a call of ${Math.round(bytes / 1e6)} MB is more than goes through the link to ${shown} (${most / 1024 / 1024} MiB)`,
  );
}

/** What an answer to the request for an upgrade means that is no upgrade. */
export function notUpgraded({ shown }: Shown, status: number): FleetError {
  switch (status) {
    case 401:
      return new FleetError("FLEET_TOKEN_REFUSED", `${shown} refused the token`);
    case 403:
      return new FleetError("FLEET_TOKEN_REFUSED", `${shown} does not allow its store to be used from here`);
    case 404:
    case 405:
    case 426:
    case 200:
      return incompatible({ shown }, `it serves no store (HTTP ${status}); is it a Fleet master?`);
    default:
      return unanswered({ shown }, `HTTP ${status}`, false);
  }
}

export function incompatible({ shown }: Shown, why: string): FleetError {
  return new FleetError("FLEET_STORE_INCOMPATIBLE", `${shown}: ${why}`);
}
