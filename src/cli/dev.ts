// Reload on save: watch what the project was built from, build again, and give the worker the new program.
import { resolve } from "node:path";
import { type FSWatcher, watch } from "chokidar";
import type { Log } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import type { Program } from "../protocol/program.ts";
import { stopCompiler } from "../project/build.ts";
import { isGlob, matchesGlob, splitGlob } from "../project/glob.ts";
import type { Project } from "../project/project.ts";
import type { Worker } from "../worker/worker.ts";
import { errorText } from "./exit.ts";
import type { Terminal } from "./terminal.ts";

/** Editors write in several steps; a save has settled when nothing more came for this long. */
export const SETTLE_MS = 50;

export interface DevParts {
  project: Project;
  load: () => Promise<Project>;
  worker: Pick<Worker, "replace">;
  log: Log;
  terminal: Terminal;
}

export interface Reloading {
  /** Ends the watch, and waits for a reload under way. */
  close(): Promise<void>;
}

/** Starts watching. A version that does not build or load is reported, and the last good one keeps running. */
export function reloadOnSave(parts: DevParts): Reloading {
  const watcher = watch(placesOf(parts.project), { ignoreInitial: true, ignored: isForeign });
  const reloader = new Reloader(parts, watcher);
  watcher.on("all", (event, path) => {
    if (event !== "addDir" && event !== "unlinkDir") reloader.touched(resolve(path));
  });
  watcher.on("error", (error) => parts.log.warn("cannot watch for changes", { error }));
  return {
    async close() {
      await watcher.close();
      await reloader.idle();
      await stopCompiler();
    },
  };
}

class Reloader {
  readonly #parts: DevParts;
  readonly #watcher: FSWatcher;
  /** What was built last: says what to watch. */
  #project: Project;
  /** What the worker runs. */
  #program: Program;
  #timer: NodeJS.Timeout | undefined;
  #dirty = false;
  #running: Promise<void> | undefined;

  constructor(parts: DevParts, watcher: FSWatcher) {
    this.#parts = parts;
    this.#watcher = watcher;
    this.#project = parts.project;
    this.#program = parts.project.program;
  }

  touched(path: string): void {
    if (!concerns(this.#project, path)) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#dirty = true;
      this.#running ??= this.#reload().finally(() => (this.#running = undefined));
    }, SETTLE_MS);
  }

  async idle(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#running;
  }

  async #reload(): Promise<void> {
    while (this.#dirty) {
      this.#dirty = false;
      await this.#once();
    }
  }

  async #once(): Promise<void> {
    const { load, worker, log, terminal } = this.#parts;
    const started = monotonicMs();
    try {
      const next = await load();
      this.#watcher.add(placesOf(next));
      const before = this.#project;
      this.#project = next;
      warnOfRestart(before, next, log);
      const changed = changedNames(this.#program, next.program);
      if (changed.length === 0 && sameDeploy(this.#program, next.program)) return;
      await worker.replace(next.program);
      this.#program = next.program;
      const what = changed.length === 0 ? "deploy" : changed.join(", ");
      log.info(`reloaded ${what} in ${Math.round(monotonicMs() - started)} ms`);
    } catch (error) {
      log.error("not reloaded; the last good version keeps running");
      terminal.complain(errorText(error, terminal.json));
    }
  }
}

/** What to watch: each file of the build, and the folders in which a glob could find new ones. */
function placesOf({ watch, patterns, configFile }: Project): string[] {
  const folders = patterns.list.filter(isGlob).map((pattern) => splitGlob(patterns.dir, pattern).base);
  const files = configFile === undefined ? watch : [...watch, configFile];
  return [...new Set([...files, ...folders])];
}

function concerns({ watch, patterns }: Project, path: string): boolean {
  if (watch.includes(path)) return true;
  return patterns.list.some((pattern) => isGlob(pattern) && matchesGlob(patterns.dir, pattern, path));
}

export function isForeign(path: string): boolean {
  return /[/\\](node_modules|\.git|\.fleet)([/\\]|$)/.test(path);
}

/** Names that were added, removed or whose code differs. */
function changedNames(before: Program, after: Program): string[] {
  const versions = (program: Program) =>
    new Map(program.automations.map(({ manifest }) => [manifest.name, manifest.version]));
  const [old, fresh] = [versions(before), versions(after)];
  return [...new Set([...old.keys(), ...fresh.keys()])].filter((name) => old.get(name) !== fresh.get(name));
}

function sameDeploy(before: Program, after: Program): boolean {
  return JSON.stringify(before.deploy) === JSON.stringify(after.deploy);
}

function warnOfRestart(before: Project, after: Project, log: Log): void {
  if (before.store !== after.store || before.namespace !== after.namespace)
    log.warn("store or namespace of the config changed: restart to use them");
}
