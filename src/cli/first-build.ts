// The first build of `fleet dev`: where the project is broken, it waits for a fix instead of ending.
import { dirname, extname, resolve } from "node:path";
import { type FSWatcher, watch } from "chokidar";
import { isFleetError } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { findConfig } from "../project/files.ts";
import { isGlob, splitGlob } from "../project/glob.ts";
import type { Project } from "../project/project.ts";
import { errorText, EXIT, exitCodeOf } from "./exit.ts";
import { SETTLE_MS } from "./dev.ts";
import type { Terminal } from "./terminal.ts";
import { isForeign } from "./watch-files.ts";

const CODE = new Set([".ts", ".mts", ".cts", ".tsx", ".js", ".mjs", ".cjs", ".jsx", ".json"]);

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export interface FirstBuild {
  load: () => Promise<Project>;
  cwd: string;
  /** As given on the command line. */
  files: readonly string[];
  config: string | undefined;
  log: Log;
  terminal: Terminal;
}

/**
 * Loads the project. One that does not compile or load is shown, and loaded again at each change until it does; a signal ends the
 * process then. Throws where no change of a file could help.
 */
export async function firstBuild(parts: FirstBuild): Promise<Project> {
  try {
    return await parts.load();
  } catch (error) {
    if (!canBeMended(error, parts)) throw error;
    return await untilMended(error, parts);
  }
}

async function untilMended(first: unknown, parts: FirstBuild): Promise<Project> {
  const { load } = parts;
  // Nothing has been started: there is nothing to drain.
  const end = () => process.exit(EXIT.done);
  for (const name of SIGNALS) process.on(name, end);
  const changes = new Changes(placesOf(parts));
  const show = complainer(parts);
  try {
    show(first);
    // What was saved before the watch began is not told: so it looks once more by itself.
    await changes.ready;
    for (;;) {
      try {
        return await load();
      } catch (error) {
        show(error);
      }
      await changes.next();
    }
  } finally {
    await changes.close();
    for (const name of SIGNALS) process.off(name, end);
  }
}

/** Shows an error, but not the same one twice in a row. */
function complainer({ log, terminal }: FirstBuild): (error: unknown) => void {
  let shown = "";
  return (error) => {
    const text = errorText(error, terminal.json);
    if (text === shown) return;
    shown = text;
    terminal.complain(text);
    log.warn("nothing runs yet; waiting for a change of the project's files");
  };
}

/** A mistake in the project's files; not one in the command's arguments, nor a folder in which there is nothing to run. */
function canBeMended(error: unknown, { cwd, config, files }: FirstBuild): boolean {
  if (exitCodeOf(error) !== EXIT.usage || isFleetError(error, "FLEET_USAGE")) return false;
  return files.length > 0 || findConfig(cwd, config) !== undefined;
}

/** What was built is not known yet: all of the folder, and what the command names outside it. */
function placesOf({ cwd, config, files }: FirstBuild): string[] {
  const named = files.map((file) => (isGlob(file) ? splitGlob(cwd, file).base : resolve(cwd, file)));
  return [...new Set([cwd, ...named, ...(config === undefined ? [] : [dirname(resolve(cwd, config))])])];
}

/** Waits for saved code, one settled change after another. */
class Changes {
  readonly ready: Promise<void>;
  readonly #watcher: FSWatcher;
  #timer: NodeJS.Timeout | undefined;
  #pending = false;
  #wake: (() => void) | undefined;

  constructor(places: readonly string[]) {
    this.#watcher = watch([...places], { ignoreInitial: true, ignored: isForeign });
    this.ready = new Promise((done) => this.#watcher.once("ready", done));
    this.#watcher.on("all", (_event, path) => {
      if (CODE.has(extname(path))) this.#touched();
    });
    // Then nothing is seen any more; the user can still end it, or start it anew.
    this.#watcher.on("error", () => undefined);
  }

  #touched(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#pending = true;
      this.#wake?.();
    }, SETTLE_MS);
  }

  /** Resolves at the next change, or at once when there was one since the last call. */
  async next(): Promise<void> {
    if (!this.#pending) await new Promise<void>((wake) => (this.#wake = wake));
    this.#pending = false;
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#watcher.close();
  }
}
