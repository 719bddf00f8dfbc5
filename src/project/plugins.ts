// npm packages that bring automations: `"fleet": { "automations": ["./dist/automations.js"] }` in their package.json.
import { existsSync, readFileSync } from "node:fs";
import { dirname, isAbsolute, join, relative } from "node:path";
import { FleetError, messageOf } from "../errors.ts";
import { automationFiles, shownPath } from "./files.ts";

export interface Plugin {
  name: string;
  /** The package's own version. */
  version: string;
  /** Its folder, absolute. */
  dir: string;
  /** Its modules, absolute. */
  files: string[];
}

const PACKAGE_NAME = /^(@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/;
const TYPESCRIPT = /\.[cm]?tsx?$/;

export function isPackageName(text: string): boolean {
  return text.length <= 214 && PACKAGE_NAME.test(text);
}

/** Folder of an installed package as Node would find it from `dir`; undefined where it is not installed. */
export function packageFolder(dir: string, name: string): string | undefined {
  for (let at = dir; ; at = dirname(at)) {
    const folder = join(at, "node_modules", name);
    if (existsSync(join(folder, "package.json"))) return folder;
    if (dirname(at) === at) return undefined;
  }
}

/**
 * The plugins of the project in `dir`: those among the dependencies of its package.json, or the ones that `only` names. Throws
 * `FLEET_PROJECT_INVALID` for one that is named and not installed, or no plugin; and for one whose files are not what they should be.
 */
export function pluginsOf(dir: string, only: false | readonly string[] | undefined): Plugin[] {
  if (only === false) return [];
  if (only !== undefined) return only.map((name) => pluginNamed(dir, name));
  return dependenciesOf(dir).flatMap((name) => {
    const folder = packageFolder(dir, name);
    const plugin = folder === undefined ? undefined : readPlugin(dir, name, folder);
    return plugin ?? [];
  });
}

/** The plugin of this name, which somebody has asked for. */
export function pluginNamed(dir: string, name: string): Plugin {
  const folder = packageFolder(dir, name);
  if (folder === undefined)
    throw new FleetError(
      "FLEET_PROJECT_INVALID",
      `plugin "${name}" is not installed in ${dir}; install it: npm install ${name}`,
    );
  const plugin = readPlugin(dir, name, folder);
  if (plugin !== undefined) return plugin;
  throw new FleetError(
    "FLEET_PROJECT_INVALID",
    `${placeOf(dir, name, folder)}: it is no plugin: there is no "fleet": { "automations": ["./dist/automations.js"] } in it`,
  );
}

/** Names in the dependencies of the nearest package.json, at `dir` or above. */
function dependenciesOf(dir: string): string[] {
  for (let at = dir; ; at = dirname(at)) {
    const file = join(at, "package.json");
    if (existsSync(file)) {
      const { dependencies, optionalDependencies } = readJson(file, shownPath(dir, file));
      return [dependencies, optionalDependencies].flatMap((list) =>
        typeof list === "object" && list !== null ? Object.keys(list) : [],
      );
    }
    if (dirname(at) === at) return [];
  }
}

/** Undefined for a package that says nothing of automations: `fleet` may mean something else there. */
function readPlugin(dir: string, name: string, folder: string): Plugin | undefined {
  const place = placeOf(dir, name, folder);
  const { fleet, version } = readJson(join(folder, "package.json"), place);
  if (typeof fleet !== "object" || fleet === null || !("automations" in fleet)) return undefined;
  const { automations } = fleet;
  const list = Array.isArray(automations) ? (automations as unknown[]) : [];
  if (list.length === 0 || !list.every((item) => typeof item === "string" && item !== ""))
    throw new FleetError(
      "FLEET_PROJECT_INVALID",
      `${place}: fleet.automations must be an array of files, for example ["./dist/automations.js"]`,
    );
  return {
    name,
    version: typeof version === "string" ? version : "",
    dir: folder,
    files: filesOf(folder, list as string[], place),
  };
}

function filesOf(folder: string, patterns: readonly string[], place: string): string[] {
  const complain = (what: string) =>
    new FleetError("FLEET_PROJECT_INVALID", `${place}: fleet.automations: ${what}`);
  for (const pattern of patterns) {
    const path = relative(folder, join(folder, pattern));
    if (isAbsolute(pattern) || path.startsWith("..")) throw complain(`${pattern} lies outside the package`);
  }
  let files: string[];
  try {
    files = automationFiles(folder, patterns);
  } catch (error) {
    throw complain(messageOf(error));
  }
  const source = files.find((file) => TYPESCRIPT.test(file));
  if (source !== undefined)
    throw complain(
      `${shownPath(folder, source)} is TypeScript; a plugin brings JavaScript, as Node runs nothing else from node_modules`,
    );
  return files;
}

function placeOf(dir: string, name: string, folder: string): string {
  return `plugin "${name}" (${shownPath(dir, join(folder, "package.json"))})`;
}

function readJson(file: string, place: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
    throw new Error("it is no object");
  } catch (error) {
    throw new FleetError("FLEET_PROJECT_INVALID", `${place} cannot be read: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
