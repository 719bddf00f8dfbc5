// `npm run bench -- <suite>`: builds the package where needed, then bundles bench/ and runs it on that build. The benchmarks import
// from src/ for their types, but what is measured is dist/: the code that users get.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const out = join(root, "bench", ".build");

const { status } = spawnSync(process.execPath, [join(root, "scripts", "build.mjs"), "--if-needed"], {
  stdio: "inherit",
});
if (status !== 0) process.exit(status ?? 1);

/** Imports of src/ and scripts/ stay imports, those of src/ with their compiled counterpart as target. */
const onTheBuild = {
  name: "on-the-build",
  setup({ onResolve }) {
    onResolve({ filter: /^\.\.?\/.*\/?(src|scripts)\// }, ({ path, resolveDir }) => {
      const file = join(resolveDir, path);
      const compiled = file.replace(join(root, "src"), join(root, "dist")).replace(/\.ts$/, ".js");
      return { path: pathToFileURL(compiled).href, external: true };
    });
  },
};

await build({
  entryPoints: [join(root, "bench", "main.ts"), join(root, "bench", "helper.ts")],
  outdir: out,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  packages: "external",
  format: "esm",
  platform: "node",
  target: "node20",
  sourcemap: "inline",
  logLevel: "warning",
  plugins: [onTheBuild],
});
await import(pathToFileURL(join(out, "main.mjs")).href);
