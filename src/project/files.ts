import { statSync } from "node:fs";
import { relative, resolve } from "node:path";
import { FleetError } from "../errors.ts";
import { findFiles, isGlob } from "./glob.ts";

const CONFIG_NAMES = ["fleet.config.ts", "fleet.config.mts", "fleet.config.js", "fleet.config.mjs"];
/** What a glob passes over: declarations and tests live beside automations. */
const PASSED_OVER = /\.d\.[cm]?ts$|\.(test|spec)\.[cm]?[jt]sx?$/;

/** Absolute path of the project's config file: `given`, or the one in `cwd`, or undefined. */
export function findConfig(cwd: string, given?: string): string | undefined {
  if (given !== undefined) {
    const file = resolve(cwd, given);
    if (!isFile(file)) throw new FleetError("FLEET_PROJECT_INVALID", `config file ${given} does not exist`);
    return file;
  }
  return CONFIG_NAMES.map((name) => resolve(cwd, name)).find(isFile);
}

/** Absolute paths of the files that `patterns` name, each once, in order. Throws when one of them names none. */
export function automationFiles(dir: string, patterns: readonly string[]): string[] {
  const files = patterns.flatMap((pattern) => {
    const file = resolve(dir, pattern);
    if (isFile(file)) return [file];
    const found = isGlob(pattern) ? findFiles(dir, pattern).filter((path) => !PASSED_OVER.test(path)) : [];
    if (found.length === 0) throw new FleetError("FLEET_PROJECT_INVALID", whyNone(dir, pattern, file));
    return found;
  });
  return [...new Set(files)];
}

/** A path for people: relative to `dir` where it lies inside. */
export function shownPath(dir: string, file: string): string {
  const path = relative(dir, file);
  return path.startsWith("..") ? file : path;
}

function whyNone(dir: string, pattern: string, file: string): string {
  if (isGlob(pattern)) return `no file matches ${pattern} in ${dir}`;
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory() === true)
    return `${pattern} is a folder; write ${pattern.replace(/\/+$/, "")}/*.ts`;
  const hint = /[{}[\]]/.test(pattern) ? " (of wildcards only *, ** and ? are known)" : "";
  const bare = /^[^./\\][^\\]*$/.test(pattern) && !/\.[cm]?[jt]sx?$/.test(pattern);
  return `${pattern} does not exist in ${dir}${bare ? ", and no package of that name is installed there" : ""}${hint}`;
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
