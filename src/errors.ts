/**
 * Every error that Fleet throws bears one of these codes. The table in `docs/errors.md` lists the same ones, and a test
 * compares the two both ways.
 */
export const ERROR_CODES = {
  FLEET_NAME_INVALID: "A name does not follow the name grammar.",
  FLEET_OPTION_INVALID: "An option is unknown, of the wrong type or out of range.",
  FLEET_NOT_AVAILABLE: "An option or form that this version does not offer.",
  FLEET_SCHEMA_INVALID: "A schema is no Standard Schema, or its input cannot travel as JSON.",
  FLEET_DEFINITION_INVALID: "An automation's definition contradicts itself.",
  FLEET_PAYLOAD_INVALID: "A payload does not fit its schema, or cannot travel as JSON.",
  FLEET_PAYLOAD_TOO_LARGE: "A payload is larger than its contract allows.",
  FLEET_OUTPUT_UNDECLARED: "`emit` was called by an automation that declares no output.",
  FLEET_CONFIG_INVALID: "An automation's config, or the project's config file, does not fit.",
  FLEET_STORE_URL_INVALID: "A store address cannot be understood.",
  FLEET_STORE_UNAVAILABLE: "The store did not answer in time, or the link to it was lost.",
  FLEET_STORE_BUSY: "The store does not keep up and the local buffer is full.",
  FLEET_STORE_INCOMPATIBLE: "The store is of a version, kind or layout that this version cannot use.",
  FLEET_STORE_AUTH: "The store refused the user name or password.",
  FLEET_STORE_FAILED: "The store answered with an error.",
  FLEET_CLOSED: "The handle was used after it had been closed.",
  FLEET_LEASE_LOST: "The lease behind a call is held by somebody else now, or has ended.",
  FLEET_QUEUE_FULL: "A queue has as many tasks waiting as its contract allows.",
  FLEET_TASK_FAILED: "The task whose result was asked for is in the dead letter.",
  FLEET_TASK_CANCELLED: "The task whose result was asked for was cancelled.",
  FLEET_TASK_PENDING: "The task has not ended within the time that was waited for it.",
  FLEET_TASK_UNKNOWN: "There is no such task, or it is not kept any more.",
  FLEET_COUNTER_OVERFLOW: "A counter would leave the range of exact whole numbers.",
  FLEET_NOT_FOUND:
    "Nothing bears that name: no automation, stream, queue, task, schedule, pool, item or worker.",
  FLEET_CONFLICT: "Somebody else has changed it meanwhile, or it is not in a state for that.",
  FLEET_REQUEST_INVALID: "A request to the master cannot be read, or does not fit its route.",
  FLEET_TOKEN_REFUSED: "The master refused the token, or none was given.",
  FLEET_WORKER_ID_TAKEN: "A live worker bears this id already.",
  FLEET_PROJECT_INVALID: "The project's files cannot be found, compiled or loaded.",
  FLEET_USAGE: "A command was called with wrong arguments.",
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;

export interface ErrorDetails {
  cause?: unknown;
  /** Whether the same call may succeed later without a change. Default false. */
  retryable?: boolean;
  /** Set where a deadline passed or a link broke after the call had been sent: it may or may not have taken effect. */
  outcome?: "unknown";
  /** Validation errors: where and what, as JSON Pointers. */
  issues?: readonly PayloadIssue[];
}

export interface PayloadIssue {
  /** JSON Pointer (RFC 6901) to the field; empty for the whole value. */
  pointer: string;
  message: string;
}

/** What every Fleet error bears, whichever class it is an instance of. */
export interface FleetErrorFields {
  readonly code: ErrorCode;
  readonly retryable: boolean;
  readonly outcome?: "unknown";
  readonly issues?: readonly PayloadIssue[];
}

/** Marks errors across two copies of the package, where `instanceof` fails. */
const BRAND = Symbol.for("fleet-framework.error");

function fill(error: Error, code: ErrorCode, details: ErrorDetails): void {
  const fields = { [BRAND]: true, code, retryable: details.retryable ?? false };
  for (const [key, value] of Reflect.ownKeys(fields).map(
    (k) => [k, fields[k as keyof typeof fields]] as const,
  )) {
    Object.defineProperty(error, key, { value, enumerable: typeof key === "string", configurable: true });
  }
  if (details.outcome !== undefined) Object.assign(error, { outcome: details.outcome });
  if (details.issues !== undefined) Object.assign(error, { issues: details.issues });
}

/** An error of Fleet. `code` is stable; the message is for people. */
export class FleetError extends Error implements FleetErrorFields {
  declare readonly code: ErrorCode;
  declare readonly retryable: boolean;
  declare readonly outcome?: "unknown";
  declare readonly issues?: readonly PayloadIssue[];

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "FleetError";
    fill(this, code, details);
  }
}

/** A wrong payload is a `TypeError` with the fields of a `FleetError`. */
export class PayloadError extends TypeError implements FleetErrorFields {
  declare readonly code: ErrorCode;
  declare readonly retryable: boolean;
  declare readonly outcome?: "unknown";
  declare readonly issues?: readonly PayloadIssue[];

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "TypeError";
    fill(this, code, details);
  }
}

/** True for every error of Fleet, also for one made by another copy of the package; with `code`, only for that code. */
export function isFleetError(error: unknown, code?: ErrorCode): error is Error & FleetErrorFields {
  if (typeof error !== "object" || error === null || !(BRAND in error)) return false;
  return code === undefined || (error as unknown as FleetErrorFields).code === code;
}

/** A short message of anything that was thrown; never throws itself. */
export function messageOf(error: unknown): string {
  if (error instanceof Error) return error.message;
  if (typeof error === "string") return error;
  try {
    return JSON.stringify(error) ?? String(error);
  } catch {
    // In a circle, or with a bigint in it.
    return Object.prototype.toString.call(error);
  }
}
