import { statSync } from "node:fs";
import { monotonicMs } from "../../internal/timers.ts";
import { unavailable } from "./errors.ts";

/** Most ms for which writes may go to a file that is not there any more before that is noticed. */
const CHECK_EVERY_MS = 1000;

/** Knows whether the file behind an open connection is still the one at its path. */
export interface FileIdentity {
  readonly path: string;
  /** Throws `FLEET_STORE_UNAVAILABLE`, for good, once the file was deleted or replaced. Looks at most once a second. */
  check(): void;
}

/** The identity of the file that lies at `path` now. */
export function identityOf(path: string): FileIdentity {
  const { dev, ino } = statSync(path);
  let checkedAt = monotonicMs();
  let fault: string | undefined;
  return {
    path,
    check() {
      const now = monotonicMs();
      if (fault === undefined && now - checkedAt >= CHECK_EVERY_MS) {
        checkedAt = now;
        const found = statSync(path, { throwIfNoEntry: false });
        if (found === undefined) fault = "the file was deleted while it was open";
        else if (found.ino !== ino || found.dev !== dev) fault = "the file was replaced while it was open";
      }
      if (fault !== undefined) throw unavailable(path, `${fault}; restart what uses it`);
    },
  };
}
