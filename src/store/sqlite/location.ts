import { resolve } from "node:path";
import { FleetError } from "../../errors.ts";

const SCHEME = "sqlite:";

/**
 * Where a `sqlite:` address points: an absolute path, or `undefined` for `sqlite::memory:`.
 * Throws `FLEET_STORE_URL_INVALID` for everything else.
 */
export function sqlitePath(url: string): string | undefined {
  if (!url.startsWith(SCHEME)) return invalid(url, `it must start with "${SCHEME}"`);
  const path = url.slice(SCHEME.length);
  if (path === ":memory:") return undefined;
  if (path === "") return invalid(url, 'the path is missing; write "sqlite:path/to/fleet.db"');
  if (path.startsWith("//") && !path.startsWith("///"))
    return invalid(url, `a file has no host; write "sqlite:${path.slice(2)}"`);
  if (path.startsWith(":")) return invalid(url, 'only ":memory:" may follow; write "sqlite::memory:"');
  if (path.includes("\0")) return invalid(url, "the path holds a NUL character");
  if (path.endsWith("/")) return invalid(url, "the path names a directory; add a file name");
  return resolve(path);
}

function invalid(url: string, why: string): never {
  throw new FleetError(
    "FLEET_STORE_URL_INVALID",
    `store address ${JSON.stringify(url)} is not valid: ${why}`,
  );
}
