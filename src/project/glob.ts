// Finding files by pattern: `*` is any run of characters within one part of a path, `?` one character, `**` as a whole
// part any number of parts. Everything else is literal. Folders are walked once for each pattern, carrying the set of places in
// the pattern that the path so far can stand at, so that no pattern makes the walk go back and try again.
import { readdirSync, statSync } from "node:fs";
import { join, resolve, sep } from "node:path";

export function isGlob(pattern: string): boolean {
  return /[*?]/.test(pattern);
}

/** The longest leading folder of `pattern` (absolute) that holds no wildcard, and the parts behind it. */
export function splitGlob(dir: string, pattern: string): { base: string; parts: string[] } {
  const all = pattern.split(sep === "\\" ? /[\\/]+/ : /\/+/);
  const first = all.findIndex(isGlob);
  const cut = first < 0 ? all.length - 1 : first;
  const literal = all.slice(0, cut).join("/");
  return { base: resolve(dir, cut > 0 && literal === "" ? "/" : literal), parts: all.slice(cut) };
}

/** Absolute paths of all files that match, sorted. `node_modules` and names with a leading dot match only when spelt out. */
export function findFiles(dir: string, pattern: string): string[] {
  const { base, parts } = splitGlob(dir, pattern);
  const found: string[] = [];
  walk(base, reach(parts, [0]), parts, found);
  return found.toSorted();
}

/** Whether `file` (absolute) is one that {@link findFiles} would list, were it there. */
export function matchesGlob(dir: string, pattern: string, file: string): boolean {
  const { base, parts } = splitGlob(dir, pattern);
  const inside = base.endsWith(sep) ? base : base + sep;
  if (!file.startsWith(inside)) return false;
  const places = file
    .slice(inside.length)
    .split(sep)
    .reduce((places, name) => step(parts, places, name), reach(parts, [0]));
  return places.includes(parts.length);
}

function walk(folder: string, places: readonly number[], parts: readonly string[], found: string[]): void {
  for (const entry of list(folder)) {
    const next = step(parts, places, entry.name);
    if (next.length === 0) continue;
    const path = join(folder, entry.name);
    const kind = entry.isSymbolicLink() ? linkKind(path) : entry;
    if (kind === undefined) continue;
    if (kind.isFile() && next.includes(parts.length)) found.push(path);
    // A link to a folder is followed only where the pattern names that part: under `**` it could lead in a circle.
    if (kind.isDirectory() && (!entry.isSymbolicLink() || !next.some((at) => parts[at] === "**")))
      walk(path, next, parts, found);
  }
}

function list(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

function linkKind(path: string) {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

/** Places in the pattern after one more part of the path. */
function step(parts: readonly string[], places: readonly number[], name: string): number[] {
  const next = new Set<number>();
  for (const at of places) {
    const part = parts[at];
    if (part === undefined) continue;
    if (part === "**") {
      if (!isHidden(name)) next.add(at);
    } else if (matchesPart(part, name)) {
      next.add(at + 1);
    }
  }
  return reach(parts, [...next]);
}

/** Adds the places that `**`, standing for nothing, lets the path stand at too. */
function reach(parts: readonly string[], places: readonly number[]): number[] {
  const all = new Set(places);
  for (const at of all) if (parts[at] === "**") all.add(at + 1);
  return [...all];
}

function isHidden(name: string): boolean {
  return name === "node_modules" || name.startsWith(".");
}

function matchesPart(pattern: string, name: string): boolean {
  if (!isGlob(pattern)) return pattern === name;
  return (!isHidden(name) || pattern.startsWith(".")) && matchesName(pattern, name);
}

/** Wildcards within one name: on a mismatch only the last `*` takes one character more. */
function matchesName(pattern: string, name: string): boolean {
  let p = 0;
  let star = -1;
  let resume = 0;
  for (let n = 0; n < name.length;) {
    if (p < pattern.length && pattern[p] === "*") {
      star = p++;
      resume = n;
    } else if (p < pattern.length && (pattern[p] === "?" || pattern[p] === name[n])) {
      p++;
      n++;
    } else if (star >= 0) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (pattern[p] === "*") p++;
  return p === pattern.length;
}
