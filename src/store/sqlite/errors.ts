import { FleetError, isFleetError, messageOf } from "../../errors.ts";

/** Primary result codes of SQLite that need words of their own. */
const BUSY = 5;
const LOCKED = 6;
const READONLY = 8;
const IOERR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANTOPEN = 14;
const NOTADB = 26;

/** The primary result code of an error of either driver; undefined for anything else. */
export function sqliteCode(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null || !("errcode" in error)) return undefined;
  return typeof error.errcode === "number" ? error.errcode & 0xff : undefined;
}

/** Somebody else holds the lock at this moment: nothing happened, the same step can be tried again. */
export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === BUSY || code === LOCKED;
}

/** True for what one statement cannot be blamed for: the file or the disk is at fault, and repeating helps nobody. */
export function isFileFault(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === READONLY || code === IOERR || code === CORRUPT || code === NOTADB || code === CANTOPEN;
}

/** Whatever a call on an open store threw, as a `FleetError` that names the file. */
export function callError(error: unknown, file: string, outcome?: "unknown"): Error {
  if (isFleetError(error)) return error;
  const text = messageOf(error);
  switch (sqliteCode(error)) {
    case BUSY:
    case LOCKED:
      return unavailable(file, "other processes kept it locked", { cause: error, retryable: true });
    case READONLY:
      // A disk that is mounted read-only for a while, as after a fault, is written to again.
      return unavailable(file, "it has become read-only", { cause: error, retryable: true });
    case CANTOPEN:
      return unavailable(file, "it cannot be opened any more", { cause: error, retryable: true });
    case FULL:
      return failed(file, "the disk is full: free some space; nothing of this call was written", error, true);
    case IOERR:
      return failed(file, `the disk reported an error (${text})`, error, true, outcome);
    case CORRUPT:
    case NOTADB:
      return failed(
        file,
        `the file is damaged (${text}); it was left as it is: restore a backup`,
        error,
        false,
      );
    default:
      return failed(file, text, error, false);
  }
}

/** As {@link callError}, for what opening a file threw. */
export function openError(error: unknown, file: string): Error {
  if (isFleetError(error)) return error;
  switch (sqliteCode(error)) {
    case CORRUPT:
    case NOTADB:
      return incompatible(
        file,
        `it is no SQLite database, or a damaged one (${messageOf(error)}); it was left as it is`,
        error,
      );
    case READONLY:
      return unavailable(file, "it is read-only, or lies in a directory that is", { cause: error });
    case CANTOPEN:
      return unavailable(file, "it cannot be opened; check the path and its permissions", { cause: error });
    default:
      return callError(error, file);
  }
}

export function unavailable(
  file: string,
  why: string,
  details: { cause?: unknown; retryable?: boolean } = {},
): FleetError {
  return new FleetError("FLEET_STORE_UNAVAILABLE", `store ${file}: ${why}`, details);
}

export function incompatible(file: string, why: string, cause?: unknown): FleetError {
  return new FleetError("FLEET_STORE_INCOMPATIBLE", `store ${file}: ${why}`, { cause });
}

function failed(
  file: string,
  why: string,
  cause: unknown,
  retryable: boolean,
  outcome?: "unknown",
): FleetError {
  return new FleetError("FLEET_STORE_FAILED", `store ${file}: ${why}`, { cause, retryable, outcome });
}
