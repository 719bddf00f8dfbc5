/**
 * Where Fleet's own files lie. Its code runs from `src/` in tests and from `dist/` elsewhere, where modules are joined into larger ones: so
 * the place of a module tells nothing but which of the two it is.
 */

/** The folder that holds `src/` and `dist/`, with a slash at its end; and that of the two where this code runs. */
const [, ROOT = "", HERE = ""] = /^(.*\/)(src|dist)\//.exec(import.meta.url) ?? [];

/** A file beside the code, by its path below `src/`: a script, a migration. The build takes them along. */
export function ownFile(path: string): URL {
  return new URL(`${ROOT}${HERE}/${path}`);
}

/** A module that is started as a process, by its path below `dist/`: only built ones run. */
export function ownProgram(path: string): URL {
  return new URL(`${ROOT}dist/${path}`);
}

/** Where Fleet's own code lies, compiled and (by its source maps) written. */
export function ownFolders(): URL[] {
  return [new URL(`${ROOT}dist/`), new URL(`${ROOT}src/`)];
}
