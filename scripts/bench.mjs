// `npm run bench -- <suite>`: builds the package where needed, joins bench/ and what it uses of src/ just as the package's own modules are
// joined, and runs that in dist/, with the processes and files of the build beside it: what is measured is the code that users get.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const out = join(root, "dist", "bench");

const { status } = spawnSync(process.execPath, [join(root, "scripts", "build.mjs"), "--if-needed"], {
  stdio: "inherit",
});
if (status !== 0) process.exit(status ?? 1);

/** Scripts find their files by their own place. */
const scriptsStay = {
  name: "scripts-stay",
  setup({ onResolve }) {
    onResolve({ filter: /^\.\.?\/.*\/?scripts\// }, ({ path, resolveDir }) => ({
      path: pathToFileURL(join(resolveDir, path)).href,
      external: true,
    }));
  },
};

await build({
  entryPoints: [join(root, "bench", "main.ts"), join(root, "bench", "helper.ts")],
  outdir: out,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  splitting: true,
  packages: "external",
  format: "esm",
  platform: "node",
  target: "node20",
  sourcemap: "inline",
  logLevel: "warning",
  plugins: [scriptsStay],
});
await import(pathToFileURL(join(out, "main.mjs")).href);
