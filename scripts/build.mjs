// Compiles src/ to dist/ and copies the files that the compiler does not know (.lua, .sql).
// `--if-needed` does nothing when dist/ is newer than every source file.
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const stamp = join(root, "dist", ".built");

const files = (dir) =>
  readdirSync(join(root, dir), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));

if (process.argv.includes("--if-needed") && existsSync(stamp)) {
  const built = statSync(stamp).mtimeMs;
  const inputs = [...files("src"), join(root, "package.json"), join(root, "tsconfig.build.json")];
  if (inputs.every((file) => statSync(file).mtimeMs <= built)) process.exit(0);
}

// Into a folder of its own and then swapped in: whoever runs dist/ meanwhile never sees half of it.
const started = new Date();
const fresh = join(root, `dist.new-${process.pid}`);
const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
const result = spawnSync(
  process.execPath,
  [tsc, "-p", join(root, "tsconfig.build.json"), "--outDir", fresh],
  { stdio: "inherit" },
);
if (result.status !== 0) {
  rmSync(fresh, { recursive: true, force: true });
  process.exit(result.status ?? 1);
}
for (const file of files("src")) {
  if (/\.(lua|sql)$/.test(file)) cpSync(file, file.replace(join(root, "src"), fresh));
}
writeFileSync(join(fresh, ".built"), "");
utimesSync(join(fresh, ".built"), started, started);
const old = join(root, `dist.old-${process.pid}`);
if (existsSync(join(root, "dist"))) renameSync(join(root, "dist"), old);
renameSync(fresh, join(root, "dist"));
rmSync(old, { recursive: true, force: true });
