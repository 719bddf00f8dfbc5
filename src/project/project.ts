import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { FleetError } from "../errors.ts";
import { nearest } from "../internal/suggest.ts";
import type { DeployEntry, Program, ProgramAutomation } from "../protocol/program.ts";
import { buildModules, stopCompiler, type BuiltModule, type PackagedModule } from "./build.ts";
import { pruneBuilds } from "./build-folders.ts";
import type { ProjectConfig } from "./config.ts";
import { ModuleReader } from "./describe.ts";
import type { DescribedAutomation } from "./describe-protocol.ts";
import { automationFiles, findConfig, shownPath } from "./files.ts";
import { isPackageName, packageFolder, pluginNamed, pluginsOf } from "./plugins.ts";

export interface LoadOptions {
  cwd: string;
  /** Config file, relative to `cwd`; default the `fleet.config.*` in it, where there is one. */
  config?: string;
  /** Files or globs of automations, relative to `cwd`; they take the place of those that the config names. */
  files?: readonly string[];
  /** Names of the automations to keep; default all. */
  only?: readonly string[];
  /** What one process remembers from load to load; default nothing. */
  memory?: ProjectMemory;
}

/** Lets a second load of one project (on save) do again only what changed. */
export interface ProjectMemory {
  config?: { version: string; value: ProjectConfig };
  /** By source, then by content hash. */
  described: Map<string, { version: string; automations: DescribedAutomation[] }>;
}

export interface Project {
  /** The config file's folder, or `cwd`. */
  dir: string;
  configFile: string | undefined;
  store: string | undefined;
  namespace: string | undefined;
  partition: ProjectConfig["partition"];
  partitionSeconds: number | undefined;
  program: Program;
  /** Every file that the project was built from, absolute. */
  watch: string[];
  /** The patterns that named the automations, and the folder they are relative to. */
  patterns: { dir: string; list: readonly string[] };
}

/** A config file's own fields, without its automations. */
export interface ProjectSettings {
  configFile: string;
  dir: string;
  store: string | undefined;
  namespace: string | undefined;
}

/**
 * Builds and reads a project. Throws `FLEET_PROJECT_INVALID` (files that are missing, do not compile, throw while they load,
 * hold no automation, or two of one name), `FLEET_CONFIG_INVALID` and what the definitions themselves throw.
 */
export async function loadProject(options: LoadOptions): Promise<Project> {
  try {
    return await load(options, options.memory ?? newMemory());
  } finally {
    if (options.memory === undefined) await stopCompiler();
  }
}

async function load(options: LoadOptions, memory: ProjectMemory): Promise<Project> {
  const configFile = findConfig(options.cwd, options.config);
  const dir = configFile === undefined ? options.cwd : dirname(configFile);
  using reader = new ModuleReader({ dir });
  const built = configFile === undefined ? undefined : await buildConfig(configFile);
  const config = built === undefined ? undefined : await readConfig(built, reader, memory);
  const patterns = patternsOf(options, dir, config);
  const modules = await buildModules(sourcesOf(patterns, options, config), { dir });
  const automations = await readAutomations(modules, reader, memory);
  pruneBuilds(dir);
  return {
    dir,
    configFile,
    store: config?.store,
    namespace: config?.namespace,
    partition: config?.partition,
    partitionSeconds: config?.partitionSeconds,
    program: programOf(automations, config?.deploy ?? {}, options, dir),
    watch: [...new Set([...(built?.inputs ?? []), ...modules.flatMap((module) => module.inputs)])],
    patterns,
  };
}

/** Store and namespace of the config file in `cwd`, without touching its automations; undefined where there is none. */
export async function loadSettings(cwd: string, config?: string): Promise<ProjectSettings | undefined> {
  const configFile = findConfig(cwd, config);
  if (configFile === undefined) return undefined;
  const dir = dirname(configFile);
  using reader = new ModuleReader({ dir });
  try {
    const { store, namespace } = await readConfig(await buildConfig(configFile), reader, newMemory());
    return { configFile, dir, store, namespace };
  } finally {
    await stopCompiler();
  }
}

export function newMemory(): ProjectMemory {
  return { described: new Map() };
}

async function buildConfig(file: string): Promise<BuiltModule> {
  const [built] = await buildModules([file], { dir: dirname(file) });
  return built as BuiltModule;
}

async function readConfig(
  module: BuiltModule,
  reader: ModuleReader,
  memory: ProjectMemory,
): Promise<ProjectConfig> {
  if (memory.config?.version === module.version) return memory.config.value;
  const value = await reader.config(module);
  memory.config = { version: module.version, value };
  return value;
}

function patternsOf(
  options: LoadOptions,
  dir: string,
  config: ProjectConfig | undefined,
): { dir: string; list: readonly string[] } {
  if (options.files !== undefined && options.files.length > 0)
    return { dir: resolve(options.cwd), list: options.files };
  if (config === undefined) {
    throw new FleetError(
      "FLEET_PROJECT_INVALID",
      `nothing to run: there is no fleet.config.ts in ${options.cwd}, and no file was named; name the files of your automations, or write a fleet.config.ts: export default defineConfig({ automations: ["./automations/*.ts"] })`,
    );
  }
  return { dir, list: config.automations };
}

/** The files that are named, those of packages that are named, and those of plugins among the project's dependencies. */
function sourcesOf(
  { dir, list }: { dir: string; list: readonly string[] },
  options: LoadOptions,
  config: ProjectConfig | undefined,
): (string | PackagedModule)[] {
  const packages = list.filter((item) => isPackage(dir, item));
  const files = automationFiles(
    dir,
    list.filter((item) => !packages.includes(item)),
  );
  const byHand = options.files !== undefined && options.files.length > 0;
  const plugins = new Map(
    [
      ...packages.map((name) => pluginNamed(dir, name)),
      ...(byHand || config === undefined ? [] : pluginsOf(dir, config.plugins)),
    ].map((plugin) => [plugin.name, plugin]),
  );
  const packaged = [...plugins.values()].flatMap(({ name, version, dir: folder, files: all }) =>
    all.map((file) => ({ file, dir: folder, id: `${name}@${version}` })),
  );
  if (files.length + packaged.length === 0) {
    throw new FleetError(
      "FLEET_CONFIG_INVALID",
      'nothing to run: automations is empty, and no plugin is installed; list files or globs, for example automations: ["./automations/*.ts"]',
    );
  }
  return [...files, ...packaged];
}

/** A file of that name counts before a package. */
function isPackage(dir: string, item: string): boolean {
  return isPackageName(item) && !existsSync(resolve(dir, item)) && packageFolder(dir, item) !== undefined;
}

async function readAutomations(
  modules: readonly BuiltModule[],
  reader: ModuleReader,
  memory: ProjectMemory,
): Promise<ProgramAutomation[]> {
  const changed = modules.filter(({ source, version }) => memory.described.get(source)?.version !== version);
  const fresh = await reader.automations(changed);
  for (const { source, version } of changed)
    memory.described.set(source, { version, automations: fresh.get(source) ?? [] });
  return modules.flatMap(({ source, module }) =>
    (memory.described.get(source)?.automations ?? []).map((automation) => ({
      ...automation,
      module,
      source,
    })),
  );
}

function programOf(
  automations: readonly ProgramAutomation[],
  deploy: Readonly<Record<string, DeployEntry>>,
  options: LoadOptions,
  dir: string,
): Program {
  refuseDoubles(automations, dir);
  const names = automations.map(({ manifest }) => manifest.name);
  // With files named by hand the config's entries for other automations are somebody else's business.
  if (options.files === undefined || options.files.length === 0) refuseUnknownDeploy(deploy, names);
  const kept = options.only === undefined ? names : checkOnly(options.only, names);
  return {
    automations: automations.filter(({ manifest }) => kept.includes(manifest.name)),
    deploy: Object.fromEntries(Object.entries(deploy).filter(([name]) => kept.includes(name))),
  };
}

function refuseDoubles(automations: readonly ProgramAutomation[], dir: string): void {
  const sources = new Map<string, string>();
  for (const { manifest, source } of automations) {
    const first = sources.get(manifest.name);
    if (first !== undefined) {
      throw new FleetError(
        "FLEET_PROJECT_INVALID",
        `two automations are named "${manifest.name}": one in ${shownPath(dir, first)}, one in ${shownPath(dir, source)}; rename one, or leave one out`,
      );
    }
    sources.set(manifest.name, source);
  }
}

function refuseUnknownDeploy(deploy: Readonly<Record<string, DeployEntry>>, names: readonly string[]): void {
  const unknown = Object.keys(deploy).find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new FleetError("FLEET_CONFIG_INVALID", `deploy: ${unknownName(unknown, names)}`);
}

function checkOnly(only: readonly string[], names: readonly string[]): readonly string[] {
  const unknown = only.find((name) => !names.includes(name));
  if (unknown !== undefined) throw new FleetError("FLEET_USAGE", `--only: ${unknownName(unknown, names)}`);
  return only;
}

function unknownName(name: string, names: readonly string[]): string {
  const near = nearest(name, names);
  const hint = near === undefined ? `there are: ${names.join(", ")}` : `did you mean "${near}"?`;
  return `no automation is named "${name}"; ${hint}`;
}
