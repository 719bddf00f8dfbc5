import { FleetError } from "../../errors.ts";
import type { Target } from "./target.ts";

/**
 * Errors of the client library carry the arguments of the command, and those of a handshake the password. So none of them is
 * handed on, not even as a cause: only their text is, and that without the credentials.
 */
export function textOf(error: unknown, target: Target): string {
  const { code = "unknown error", message } = (error ?? {}) as { code?: string; message?: string };
  // Node's errors of several addresses at once (IPv4 and IPv6) have an empty message.
  const text = message === undefined || message === "" ? code : message;
  return target.scrub(text);
}

/** What the server's refusals mean. Those under `later` were not carried out and may be sent again shortly after. */
const MEANING: Record<string, "later" | "reconnect" | "auth" | "full"> = {
  LOADING: "later",
  MASTERDOWN: "later",
  CLUSTERDOWN: "later",
  TRYAGAIN: "later",
  BUSY: "later",
  READONLY: "reconnect",
  UNBLOCKED: "reconnect",
  NOAUTH: "auth",
  WRONGPASS: "auth",
  NOPERM: "auth",
  OOM: "full",
  NOREPLICAS: "full",
  MISCONF: "full",
};

/** How to go on after an error reply; the word at its start decides, as the protocol promises. */
export function meaningOf(reply: string): "later" | "reconnect" | "auth" | "full" | "failed" {
  return MEANING[/^-?([A-Z]+)/.exec(reply)?.[1] ?? ""] ?? "failed";
}

/** The error for a call that the server refused. It was not carried out. */
export function refused(reply: string, target: Target): FleetError {
  const text = target.scrub(reply);
  switch (meaningOf(reply)) {
    case "later":
    case "reconnect":
      return new FleetError("FLEET_STORE_UNAVAILABLE", `${target.shown} cannot serve now: ${text}`, {
        retryable: true,
      });
    case "auth":
      return new FleetError("FLEET_STORE_AUTH", `${target.shown} refused access: ${text}`);
    case "full":
      return new FleetError("FLEET_STORE_FAILED", `${target.shown} takes no writes now: ${text}`, {
        retryable: true,
      });
    default:
      return new FleetError("FLEET_STORE_FAILED", `${target.shown} answered with an error: ${text}`);
  }
}

/** The error for a call that got no answer: `sent` tells whether it may have taken effect. */
export function unanswered(target: Target, why: string, sent: boolean): FleetError {
  return sent
    ? new FleetError("FLEET_STORE_UNAVAILABLE", `no answer from ${target.shown}: ${why}`, {
        retryable: true,
        outcome: "unknown",
      })
    : new FleetError("FLEET_STORE_UNAVAILABLE", `no connection to ${target.shown}: ${why}`, {
        retryable: true,
      });
}

export function overfull(target: Target, what: string): FleetError {
  return new FleetError(
    "FLEET_STORE_BUSY",
    `${target.shown} does not keep up: ${what} are under way already`,
    {
      retryable: true,
    },
  );
}

export function closed(target: Target): FleetError {
  return new FleetError("FLEET_CLOSED", `the store ${target.shown} was closed`);
}
