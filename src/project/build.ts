// Users' TypeScript, bundled file by file into `.fleet/build/<hash>/<name>.mjs`. Packages stay imports, so Node resolves them
// from the project; relative imports go into the bundle, so a module is one file with one content hash.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { BuildFailure, BuildResult } from "esbuild";
import { FleetError, messageOf } from "../errors.ts";
import { keepBuild } from "./build-folders.ts";
import { sourceLocation } from "./source-location.ts";

export interface BuiltModule {
  /** The file the user wrote, absolute. */
  source: string;
  /** The built module, absolute. */
  module: string;
  /** Content hash of the built code without its source map: comments and line breaks do not change it. */
  version: string;
  /** All files that went into it, absolute. */
  inputs: string[];
}

export interface BuildOptions {
  /** The project's folder; the modules go to `.fleet/build` in it. */
  dir: string;
}

/** A module of an installed package. It is left where it lies, so that it finds what its package depends on. */
export interface PackagedModule {
  file: string;
  /** Folder of the package. */
  dir: string;
  /** Name and version of the package. */
  id: string;
}

/**
 * Builds each of `sources` (absolute paths) as a module of its own; of packaged ones it only finds out what they consist of. Leaves
 * the compiler running for the next build: {@link stopCompiler} ends it. Throws `FLEET_PROJECT_INVALID`, whose message shows each
 * mistake with its place and the lines around it.
 */
export async function buildModules(
  sources: readonly (string | PackagedModule)[],
  options: BuildOptions,
): Promise<BuiltModule[]> {
  const built = await Promise.allSettled(
    sources.map((source) =>
      typeof source === "string" ? buildModule(source, options.dir) : inspectModule(source),
    ),
  );
  const failed = built.filter((result) => result.status === "rejected").map((result) => result.reason);
  if (failed.length > 0) throw await compileError(failed);
  return built.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
}

export async function stopCompiler(): Promise<void> {
  const esbuild = await import("esbuild");
  await esbuild.stop();
}

async function buildModule(source: string, dir: string): Promise<BuiltModule> {
  const root = join(dir, ".fleet", "build");
  const name = `${basename(source).replace(/\.[cm]?[jt]sx?$/, "")}.mjs`;
  const { code, inputs } = await bundle(source, dir, join(root, "hash", name));
  return { source, module: store(root, name, code), version: versionOf(code), inputs };
}

async function inspectModule({ file, dir, id }: PackagedModule): Promise<BuiltModule> {
  const { code, inputs } = await bundle(file, dir, join(dir, "hash", "module.mjs"));
  return { source: file, module: file, version: versionOf(`${id}\n${code}`), inputs };
}

/** One file of all that is imported by relative paths. `outfile` is as deep as the real place, so that the paths in the source map fit. */
async function bundle(
  source: string,
  dir: string,
  outfile: string,
): Promise<{ code: string; inputs: string[] }> {
  const { build } = await import("esbuild");
  const result = await build({
    entryPoints: [source],
    absWorkingDir: dir,
    outfile,
    write: false,
    metafile: true,
    bundle: true,
    packages: "external",
    format: "esm",
    platform: "node",
    target: "node20",
    sourcemap: "inline",
    charset: "utf8",
    legalComments: "none",
    logLevel: "silent",
    plugins: [await sourceLocation()],
  });
  const inputs = Object.keys(result.metafile?.inputs ?? {}).map((path) => resolve(dir, path));
  return { code: outputOf(result, source), inputs };
}

function versionOf(code: string): string {
  return hashOf(code.replace(/\n\/\/# sourceMappingURL=[^\n]*\n?$/, "\n"));
}

function outputOf(result: BuildResult, source: string): string {
  const code = result.outputFiles?.[0]?.text;
  if (code === undefined) throw new FleetError("FLEET_PROJECT_INVALID", `${source}: nothing was built`);
  return code;
}

/** Writes a module under the hash of its whole text, in one step, so that other processes never see half of it. */
function store(root: string, name: string, code: string): string {
  const folder = join(root, hashOf(code));
  const module = join(folder, name);
  try {
    if (!existsSync(module)) {
      // The data folder around it may be missing, too, and is for its owner alone.
      mkdirSync(root, { recursive: true, mode: 0o700 });
      writeIgnoreFile(dirname(root));
      const fresh = mkdtempSync(join(root, "new-"));
      writeFileSync(join(fresh, name), code);
      moveInto(fresh, folder, name, code);
    }
    keepBuild(folder);
  } catch (error) {
    throw new FleetError("FLEET_PROJECT_INVALID", `cannot write to ${root}: ${messageOf(error)}`, {
      cause: error,
    });
  }
  return module;
}

function moveInto(fresh: string, folder: string, name: string, code: string): void {
  try {
    renameSync(fresh, folder);
  } catch {
    // Another process was first, or two files of one content but different names share the folder.
    rmSync(fresh, { recursive: true, force: true });
    if (!existsSync(join(folder, name))) writeFileSync(join(folder, name), code);
  }
}

/** Keeps version control away from everything in the data folder. */
export function writeIgnoreFile(dataDir: string): void {
  const file = join(dataDir, ".gitignore");
  if (!existsSync(file)) writeFileSync(file, "*\n");
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

async function compileError(failures: readonly unknown[]): Promise<unknown> {
  const { formatMessages } = await import("esbuild");
  const mistakes = failures.filter(isBuildFailure).flatMap((failure) => failure.errors);
  if (mistakes.length === 0) return failures[0];
  const frames = await formatMessages(mistakes, { kind: "error", color: false, terminalWidth: 100 });
  // Files that import one broken file each report it.
  const distinct = [...new Set(frames)];
  return new FleetError(
    "FLEET_PROJECT_INVALID",
    `the project does not compile\n\n${distinct.join("").trimEnd()}`,
  );
}

function isBuildFailure(error: unknown): error is BuildFailure {
  return typeof error === "object" && error !== null && "errors" in error && Array.isArray(error.errors);
}
