// Brings dist/ up to date without checking types and without declarations: a fraction of the full build's time, for those who
// only want to see something run. The next full build (`build.mjs --if-needed`) still does its whole work.
import { cpSync, existsSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");
/** Left in dist/ by the full build, and by this one. */
const STAMPS = [join(dist, ".built"), join(dist, ".quick")];

/** Does nothing when dist/ is newer than every source. */
export async function quickBuild() {
  const sources = filesBelow("src").filter((file) => !file.endsWith(".test.ts"));
  const newest = Math.max(...[...sources, "tsconfig.build.json"].map((file) => changedAt(join(root, file))));
  if (STAMPS.some((stamp) => existsSync(stamp) && changedAt(stamp) >= newest)) return;

  // Into a folder of its own and then swapped in: whoever runs dist/ meanwhile never sees half of it.
  const fresh = `${dist}.new-${process.pid}`;
  await build({
    entryPoints: sources.filter((file) => file.endsWith(".ts")),
    absWorkingDir: root,
    outbase: "src",
    outdir: fresh,
    format: "esm",
    platform: "node",
    target: "node20",
    // Each source becomes one module of its own: what it imports is not taken in, only renamed.
    bundle: true,
    plugins: [{ name: "imports-stay", setup: (build) => build.onResolve({ filter: /./ }, importStays) }],
  });
  for (const file of sources.filter((file) => !file.endsWith(".ts")))
    cpSync(join(root, file), join(fresh, file.slice("src/".length)));
  writeFileSync(join(fresh, ".quick"), "");
  const old = `${dist}.old-${process.pid}`;
  if (existsSync(dist)) renameSync(dist, old);
  renameSync(fresh, dist);
  rmSync(old, { recursive: true, force: true });
}

function importStays({ kind, path }) {
  if (kind === "entry-point") return undefined;
  return { path: path.startsWith(".") ? path.replace(/\.ts$/, ".js") : path, external: true };
}

function filesBelow(folder) {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? filesBelow(`${folder}/${entry.name}`) : [`${folder}/${entry.name}`],
  );
}

function changedAt(file) {
  return statSync(file).mtimeMs;
}
