// Builds src/ into dist/: checks and declares its types, and joins its modules. `--if-needed` does nothing when dist/ is newer than all of it.
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "./bundle.mjs";
import { BUILT, isBuilt, swapIn } from "./dist.mjs";

if (process.argv.includes("--if-needed") && isBuilt([BUILT])) process.exit(0);

const root = fileURLToPath(new URL("..", import.meta.url));
const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
await swapIn(BUILT, async (fresh) => {
  const { status } = spawnSync(
    process.execPath,
    [tsc, "-p", join(root, "tsconfig.build.json"), "--outDir", fresh],
    { stdio: "inherit" },
  );
  if (status === 0) await bundle(fresh);
  else process.exitCode = status ?? 1;
});
