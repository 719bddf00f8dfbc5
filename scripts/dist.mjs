// The folder dist/: whether it is up to date, and how it is replaced.
import { existsSync, readdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");
/** Left in dist/ by the full build, and by the quick one. */
export const BUILT = ".built";
export const QUICK = ".quick";
const ALSO = ["src", "package.json", "tsconfig.json", "tsconfig.build.json", "scripts/bundle.mjs"];

/** Whether one of these builds is newer than all that it is made of. */
export function isBuilt(stamps) {
  const sources = readdirSync(join(root, "src"), { recursive: true, withFileTypes: true })
    // A folder changes when a file in it comes or goes.
    .filter((entry) => entry.isDirectory() || !entry.name.endsWith(".test.ts"))
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
  const newest = Math.max(...[...sources, ...ALSO.map((file) => join(root, file))].map(changedAt));
  return stamps.some((stamp) => existsSync(join(dist, stamp)) && changedAt(join(dist, stamp)) >= newest);
}

/**
 * Lets `make` fill a folder of its own, and puts that in the place of dist/: whoever runs dist/ meanwhile never sees half of it. Nothing
 * is replaced where `make` throws or sets an exit code.
 */
export async function swapIn(stamp, make) {
  const started = new Date();
  const [fresh, old] = [`${dist}.new-${process.pid}`, `${dist}.old-${process.pid}`];
  try {
    await make(fresh);
    if (process.exitCode) return;
    writeFileSync(join(fresh, stamp), "");
    utimesSync(join(fresh, stamp), started, started);
    if (existsSync(dist)) renameSync(dist, old);
    renameSync(fresh, dist);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
    rmSync(old, { recursive: true, force: true });
  }
}

function changedAt(file) {
  return statSync(file).mtimeMs;
}
