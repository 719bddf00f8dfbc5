import { once } from "node:events";
import type { Stats } from "node:fs";
import { dirname, resolve, sep } from "node:path";
import { type ChokidarOptions, type FSWatcher, watch } from "chokidar";

/** Files, and folders with all that is in them, absolute. */
export interface Places {
  files: readonly string[];
  folders: readonly string[];
}

export interface WatchListener {
  changed(path: string): void;
  failed(error: unknown): void;
}

/** Tells of changes of files in ever more places; of a file also when it comes back after it was away. */
export class FileWatch {
  readonly #listener: WatchListener;
  readonly #watchers: FSWatcher[] = [];
  readonly #files = new Set<string>();
  readonly #folders = new Set<string>();
  readonly #over = new AbortController();

  constructor(listener: WatchListener) {
    this.#listener = listener;
  }

  /**
   * Begins to watch those of `places` that are not watched yet. Resolves when that is so, to whether there were any: what has changed in
   * them before is not told, so the caller has to look by itself.
   */
  async cover(places: Places): Promise<boolean> {
    const folders = places.folders.filter((folder) => !this.#folders.has(folder));
    for (const folder of folders) this.#folders.add(folder);
    const files = new Set(places.files.filter((file) => !this.#isCovered(file)));
    for (const file of files) this.#files.add(file);
    if (folders.length + files.size === 0 || this.#over.signal.aborted) return false;
    await Promise.all([
      this.#watch(folders, { ignored: isForeign }),
      // By their folders: the watch of a file ends with the file.
      this.#watch([...files].map(dirname), {
        depth: 0,
        ignored: (path, stats?: Stats) => isForeign(path) || (stats?.isFile() === true && !files.has(path)),
      }),
    ]);
    return true;
  }

  async close(): Promise<void> {
    this.#over.abort();
    await Promise.all(this.#watchers.map((watcher) => watcher.close()));
  }

  #isCovered(file: string): boolean {
    return this.#files.has(file) || [...this.#folders].some((folder) => file.startsWith(folder + sep));
  }

  /** A watcher for each call: one that runs already passes over what it finds new while it takes in more. */
  async #watch(paths: readonly string[], options: ChokidarOptions): Promise<void> {
    if (paths.length === 0) return;
    const watcher = watch([...new Set(paths)], { ...options, ignoreInitial: true });
    this.#watchers.push(watcher);
    watcher.on("all", (event, path) => {
      if (event !== "addDir" && event !== "unlinkDir") this.#listener.changed(resolve(path));
    });
    watcher.on("error", (error) => this.#listener.failed(error));
    // One that is closed before is never ready.
    await once(watcher, "ready", { signal: this.#over.signal }).catch(() => undefined);
  }
}

/** Not the user's own files: nobody edits them, and there are too many. */
export function isForeign(path: string): boolean {
  return /[/\\](node_modules|\.git|\.fleet)([/\\]|$)/.test(path);
}
