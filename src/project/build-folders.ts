// Which folders of `.fleet/build` are still needed. A process that built or uses one leaves a file `in-use.<host>.<pid>` in it.
import { existsSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";

const MARK = "in-use.";
const HOUR_MS = 3_600_000;
/** A mark of another machine on a shared disk cannot be looked into; this old it counts as left behind. */
const FOREIGN_MS = 30 * 24 * HOUR_MS;

/** Marks a folder as used by this process. */
export function keepBuild(folder: string): void {
  writeFileSync(join(folder, `${MARK}${hostname()}.${process.pid}`), "");
  const now = new Date();
  utimesSync(folder, now, now);
}

/**
 * Removes builds that are older than an hour and that no living process uses, but never the newest `keep`. Never throws:
 * what cannot be removed now is so another time.
 */
export function pruneBuilds(dir: string, keep = 5, now = Date.now()): void {
  const root = join(dir, ".fleet", "build");
  if (!existsSync(root)) return;
  const folders = readdirSync(root)
    .map((name) => join(root, name))
    .map((path) => ({ path, at: statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
    .toSorted((a, b) => b.at - a.at);
  for (const { path, at } of folders.slice(keep)) {
    if (now - at < HOUR_MS) continue;
    try {
      if (!isUsed(path, now)) rmSync(path, { recursive: true, force: true });
    } catch {
      continue;
    }
  }
}

function isUsed(folder: string, now: number): boolean {
  return readdirSync(folder).some((name) => {
    if (!name.startsWith(MARK)) return false;
    const own = `${MARK}${hostname()}.`;
    if (name.startsWith(own)) return isAlive(Number(name.slice(own.length)));
    return now - statSync(join(folder, name)).mtimeMs < FOREIGN_MS;
  });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
