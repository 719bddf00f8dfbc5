import {
  type ErrorCode,
  type ErrorDetails,
  FleetError,
  isFleetError,
  messageOf,
  type PayloadIssue,
} from "../../errors.ts";
import { redactStart } from "../../internal/redact.ts";
import type { Problem } from "../../client/problem.ts";

/** An error whose status its code alone does not tell. */
export class RequestProblem extends FleetError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    code: ErrorCode,
    message: string,
    { headers = {}, ...details }: ErrorDetails & { headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(code, message, details);
    this.status = status;
    this.headers = headers;
  }
}

const STATUS: Record<ErrorCode, number> = {
  FLEET_NAME_INVALID: 400,
  FLEET_OPTION_INVALID: 422,
  FLEET_NOT_AVAILABLE: 422,
  FLEET_SCHEMA_INVALID: 422,
  FLEET_DEFINITION_INVALID: 422,
  FLEET_PAYLOAD_INVALID: 422,
  FLEET_PAYLOAD_TOO_LARGE: 413,
  FLEET_OUTPUT_UNDECLARED: 404,
  FLEET_CONFIG_INVALID: 422,
  FLEET_STORE_URL_INVALID: 500,
  FLEET_STORE_UNAVAILABLE: 503,
  FLEET_STORE_BUSY: 503,
  FLEET_STORE_INCOMPATIBLE: 503,
  FLEET_STORE_AUTH: 503,
  FLEET_STORE_FAILED: 500,
  FLEET_CLOSED: 503,
  FLEET_LEASE_LOST: 409,
  FLEET_QUEUE_FULL: 429,
  FLEET_TASK_FAILED: 409,
  FLEET_TASK_CANCELLED: 409,
  FLEET_TASK_PENDING: 409,
  FLEET_TASK_UNKNOWN: 404,
  FLEET_COUNTER_OVERFLOW: 409,
  FLEET_NOT_FOUND: 404,
  FLEET_CONFLICT: 409,
  FLEET_REQUEST_INVALID: 400,
  FLEET_TOKEN_REFUSED: 401,
  FLEET_WORKER_ID_TAKEN: 409,
  FLEET_PROJECT_INVALID: 422,
  FLEET_USAGE: 400,
};

const TITLES: Readonly<Record<number, string>> = {
  400: "Malformed request",
  401: "Not authorised",
  403: "Forbidden",
  404: "Not found",
  405: "Method not allowed",
  408: "Request timeout",
  409: "Conflict",
  413: "Too large",
  415: "Unsupported media type",
  422: "Invalid",
  429: "Too many requests",
  431: "Headers too large",
  500: "Internal error",
  503: "Unavailable",
};

/** Most errors that one answer lists: a body of a MiB can have hundreds of thousands. */
export const MOST_ERRORS = 100;

/** Where waiting helps: seconds until the same request may be tried again. */
const RETRY_AFTER_SECONDS = 1;
/** Most characters that are said of an error: a message may hold what a caller has sent. */
const MAX_DETAIL = 8192;

/** What the caller is told of an error. Of one that is not Fleet's own nothing is said but that it happened: it may hold anything. */
export function problemOf(error: unknown): { problem: Problem; headers: Record<string, string> } {
  if (!isFleetError(error)) {
    const problem = plain(
      500,
      "FLEET_STORE_FAILED",
      "the master met an error that it does not know; its log has it",
    );
    return { problem, headers: {} };
  }
  const status = error instanceof RequestProblem ? error.status : STATUS[error.code];
  const waits = status === 503 || status === 429;
  return {
    problem: {
      ...plain(status, error.code, redactStart(messageOf(error), MAX_DETAIL)),
      ...(error.retryable ? { retryable: true as const } : {}),
      ...(error.outcome === undefined ? {} : { outcome: error.outcome }),
      ...(error.issues === undefined ? {} : listed(error.issues)),
    },
    headers: {
      ...(waits ? { "retry-after": String(RETRY_AFTER_SECONDS) } : {}),
      ...(error instanceof RequestProblem ? error.headers : {}),
    },
  };
}

function listed(issues: readonly PayloadIssue[]): Pick<Problem, "errors" | "errors_total"> {
  if (issues.length <= MOST_ERRORS) return { errors: issues };
  return { errors: issues.slice(0, MOST_ERRORS), errors_total: issues.length };
}

function plain(status: number, code: ErrorCode, detail: string): Problem {
  return { type: "about:blank", title: TITLES[status] ?? "Error", status, code, detail };
}
