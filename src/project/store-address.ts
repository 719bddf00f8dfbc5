import { resolve } from "node:path";

/** The store that a project has when nothing names one, relative to its folder. */
export const DEFAULT_STORE = "sqlite:.fleet/fleet.db";

/** The file of a SQLite address, absolute, seen from `dir`; undefined for other stores and for one in memory. */
export function sqliteFile(url: string, dir: string): string | undefined {
  const path = url.startsWith("sqlite:") ? url.slice("sqlite:".length) : "";
  return path === "" || path.startsWith(":") || /^\/\/[^/]/.test(path) ? undefined : resolve(dir, path);
}

/** The same address for processes in any folder: a relative path of a SQLite file becomes absolute. */
export function absoluteAddress(url: string, dir: string): string {
  const file = sqliteFile(url, dir);
  // A trailing slash names a folder, which the back end refuses; resolving would hide it.
  return file === undefined || url.endsWith("/") ? url : `sqlite:${file}`;
}
