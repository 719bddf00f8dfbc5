// Errors on the wire: problem details (RFC 9457) with Fleet's code.
import { type ErrorCode, ERROR_CODES, FleetError, type PayloadIssue } from "../errors.ts";

export interface Problem {
  type: "about:blank";
  title: string;
  status: number;
  code: ErrorCode;
  detail: string;
  retryable?: true;
  outcome?: "unknown";
  /** The first of what does not fit, at most 100. */
  errors?: readonly PayloadIssue[];
  /** How many were found, where that is more than are listed. */
  errors_total?: number;
}

/** The error that a problem stands for; anything else that came with a status of 400 and above is one of the link. */
export function errorOf(status: number, body: unknown): FleetError {
  const problem = (typeof body === "object" && body !== null ? body : {}) as Partial<Problem>;
  const { code, detail } = problem;
  if (typeof code === "string" && code in ERROR_CODES) {
    return new FleetError(code, typeof detail === "string" ? detail : ERROR_CODES[code], {
      retryable: problem.retryable === true,
      ...(problem.outcome === "unknown" ? { outcome: "unknown" as const } : {}),
      ...(Array.isArray(problem.errors) ? { issues: problem.errors } : {}),
    });
  }
  return new FleetError("FLEET_STORE_UNAVAILABLE", `the master answered with status ${status}`, {
    retryable: status >= 500,
  });
}
