// Reload on save: watch what the project was built from, build again, and give the worker the new program.
import { isOwnFault } from "../control/damaged.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import type { Program } from "../protocol/program.ts";
import { stopCompiler } from "../project/build.ts";
import { isGlob, matchesGlob, splitGlob } from "../project/glob.ts";
import type { Project } from "../project/project.ts";
import type { Worker } from "../worker/worker.ts";
import { errorText } from "./exit.ts";
import type { Terminal } from "./terminal.ts";
import { FileWatch, type Places } from "./watch-files.ts";

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
  const reloader = new Reloader(parts);
  reloader.lookAgain();
  return reloader;
}

class Reloader implements Reloading {
  readonly #parts: DevParts;
  readonly #watch: FileWatch;
  /** What was built last: says what to watch. */
  #project: Project;
  /** What the worker runs. */
  #program: Program;
  #timer: NodeJS.Timeout | undefined;
  #dirty = false;
  #closed = false;
  #running: Promise<void> | undefined;
  /** What is wrong with the newest files, as it was shown. */
  #complaint = "";

  constructor(parts: DevParts) {
    this.#parts = parts;
    this.#project = parts.project;
    this.#program = parts.project.program;
    this.#watch = new FileWatch({
      changed: (path) => this.#touched(path),
      failed: (error) => parts.log.warn("cannot watch for changes", { error }),
    });
  }

  /** Sees to it that all of the project is watched, and takes up what was saved before that was so. */
  lookAgain(): void {
    this.#running ??= this.#cover().finally(() => (this.#running = undefined));
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#watch.close();
    await this.#running;
    await stopCompiler();
  }

  #touched(path: string): void {
    if (this.#closed || !concerns(this.#project, path)) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#dirty = true;
      this.#running ??= this.#reload().finally(() => (this.#running = undefined));
    }, SETTLE_MS);
  }

  async #reload(): Promise<void> {
    while (this.#dirty && !this.#closed) {
      this.#dirty = false;
      this.#complaint = "";
      await this.#once();
      await this.#cover();
    }
  }

  /** Each build may have found more to watch, and what changes until that is watched is not told: hence another build. */
  async #cover(): Promise<void> {
    while (!this.#closed && (await this.#watch.cover(placesOf(this.#project)))) await this.#once();
    if (this.#dirty) await this.#reload();
  }

  async #once(): Promise<void> {
    const { load, worker, log } = this.#parts;
    const started = monotonicMs();
    try {
      const next = await load();
      const before = this.#project;
      this.#project = next;
      warnOfRestart(before, next, log);
      const changed = changedNames(this.#program, next.program);
      if (changed.length === 0 && sameDeploy(this.#program, next.program)) return;
      // It runs here from now on, whatever the store says to it.
      this.#program = next.program;
      const told = await worker.replace(next.program).then(
        () => undefined,
        (error: unknown) => ({ error }),
      );
      const what = changed.length === 0 ? "deploy" : changed.join(", ");
      if (told === undefined) log.info(`reloaded ${what} in ${Math.round(monotonicMs() - started)} ms`);
      else if (isOwnFault(told.error))
        this.#complain(told.error, `the new version of ${what} runs here, but what it asks for is refused`);
      else
        log.warn(`the new version of ${what} runs here; the store does not have it yet, trying again`, {
          error: messageOf(told.error),
        });
    } catch (error) {
      this.#complain(error, "not reloaded; the last good version keeps running");
    }
  }

  /** Once for each save, however often it was built. */
  #complain(error: unknown, what: string): void {
    const { log, terminal } = this.#parts;
    const text = errorText(error, terminal.json);
    if (text === this.#complaint) return;
    this.#complaint = text;
    log.error(what);
    terminal.complain(text);
  }
}

/** What to watch: each file of the build, and the folders in which a glob could find new ones. */
function placesOf({ watch, patterns, configFile }: Project): Places {
  const folders = patterns.list.filter(isGlob).map((pattern) => splitGlob(patterns.dir, pattern).base);
  return { files: configFile === undefined ? watch : [...watch, configFile], folders };
}

function concerns({ watch, patterns }: Project, path: string): boolean {
  if (watch.includes(path)) return true;
  return patterns.list.some((pattern) => isGlob(pattern) && matchesGlob(patterns.dir, pattern, path));
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
