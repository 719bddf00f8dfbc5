import { statSync } from "node:fs";
import { monotonicMs } from "../../internal/timers.ts";

/** Most ms for which writes may go to a file that is not there any more before that is noticed. */
const CHECK_EVERY_MS = 1000;

/** Knows whether the file behind an open connection is still the one at its path. */
export interface FileIdentity {
  /** Looks at most once a second. */
  look(): "same" | "deleted" | "replaced";
}

/** The identity of the file that lies at `path` now. */
export function identityOf(path: string): FileIdentity {
  const { dev, ino } = statSync(path);
  let lookedAt = monotonicMs();
  let seen: ReturnType<FileIdentity["look"]> = "same";
  return {
    look() {
      const now = monotonicMs();
      if (now - lookedAt < CHECK_EVERY_MS) return seen;
      lookedAt = now;
      const found = statSync(path, { throwIfNoEntry: false });
      if (found === undefined) seen = "deleted";
      else seen = found.ino === ino && found.dev === dev ? "same" : "replaced";
      return seen;
    },
  };
}
