/**
 * How the store port travels over one WebSocket. Each frame is a text: a JSON array of messages, so that what is said in one tick goes
 * together. First the client says `hello` and the other side `welcome` (or `refused`); then requests and answers, matched by `id`, in any
 * order. A value that is undefined is left out.
 */
import {
  ERROR_CODES,
  type ErrorCode,
  FleetError,
  isFleetError,
  messageOf,
  type PayloadIssue,
} from "../errors.ts";
import { redactStart } from "../internal/redact.ts";

/** Where a master serves its store. */
export const STORE_PATH = "/api/v1/store";
/** Grows with every change of this page that an older side would not understand. */
export const REMOTE_PROTOCOL = 1;
/** The largest frame that is taken, in bytes: of requests, and of answers. */
export const MAX_REQUEST_BYTES = 64 * 1024 * 1024;
export const MAX_ANSWER_BYTES = 256 * 1024 * 1024;
/** Most characters of an error's message. */
const MAX_MESSAGE = 8192;
/** Most calls of one connection that are under way, and most watches. */
export const MAX_REQUESTS = 20_000;

/** Why a connection was closed, as WebSocket close codes. */
export const CLOSE = {
  goingAway: 1001,
  malformed: 1007,
  tooSlow: 4008,
  revoked: 4401,
  refused: 4426,
} as const;

export type ToStore =
  | { hello: Hello }
  /** `streams.push`, `state.locks.acquire`, `now`: what it is called in the port. */
  | { id: number; call: string; args?: unknown }
  /** Is answered when it is ready; then come `push`es with its id until it is cancelled. */
  | { id: number; watch: string; args?: unknown }
  | { cancel: number };

export type FromStore =
  | { welcome: Welcome }
  | { refused: WireError }
  | { id: number; ok?: unknown }
  | { id: number; error: WireError }
  /** What a watch's listener is called with. */
  | { push: number; values: readonly unknown[] }
  /** The store behind came back empty and has another id now. */
  | { fleetId: string };

export interface Hello {
  protocol: number;
  /** Of the package. */
  version: string;
  /** Left out: whichever is served. */
  namespace?: string | undefined;
}

export interface Welcome {
  protocol: number;
  version: string;
  namespace: string;
  fleetId: string;
  traits: { kind: "sqlite" | "redis"; entriesPerPush: number };
}

export interface WireError {
  code: string;
  message: string;
  retryable?: boolean;
  outcome?: "unknown";
  issues?: readonly PayloadIssue[] | undefined;
}

/** An error as it travels: no cause, no stack, no password. */
export function wireError(error: unknown): WireError {
  if (!isFleetError(error))
    return {
      code: "FLEET_STORE_FAILED",
      message: `the call failed: ${redactStart(messageOf(error), MAX_MESSAGE)}`,
    };
  const { code, retryable, outcome, issues } = error;
  const message = redactStart(error.message, MAX_MESSAGE);
  // It is the store behind that was closed (its process is ending), not the handle of whoever called.
  if (code === "FLEET_CLOSED") return { code: "FLEET_STORE_UNAVAILABLE", message, retryable: true };
  return { code, message, retryable, ...(outcome === undefined ? {} : { outcome }), issues };
}

/** The error that `wireError` was made of. A code that only a newer version knows is kept in the message. */
export function errorFromWire(wire: Partial<WireError>): FleetError {
  const { code = "", message = "", retryable = false, outcome, issues } = wire;
  const details = { retryable, outcome, ...(issues === undefined ? {} : { issues }) };
  if (Object.hasOwn(ERROR_CODES, code)) return new FleetError(code as ErrorCode, message, details);
  return new FleetError("FLEET_STORE_FAILED", `${code}: ${message}`, details);
}

/** The messages of a frame; undefined where it is none. */
export function messagesOf(frame: string): Record<string, unknown>[] | undefined {
  try {
    const messages: unknown = JSON.parse(frame);
    const whole = Array.isArray(messages) && messages.every((one) => typeof one === "object" && one !== null);
    return whole ? (messages as Record<string, unknown>[]) : undefined;
  } catch {
    return undefined;
  }
}

/** Whether two versions of the package understand each other's port. */
export function sameMajor(a: string, b: string): boolean {
  return a.split(".")[0] === b.split(".")[0];
}
