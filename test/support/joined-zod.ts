// Zod as one file for the projects that tests make: nearly every process of the tests loads it, and its hundred files cost 40 ms each time.
// The published package is loaded by the tests of the README, of the examples and of an installed plugin.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Makes the package in a folder of its own. */
export async function joinZod(): Promise<{ folder: string; remove(): void }> {
  const folder = mkdtempSync(join(tmpdir(), "fleet-zod-"));
  await build({
    stdin: { contents: 'export * from "zod"; export { default } from "zod";', resolveDir: ROOT },
    outfile: join(folder, "index.js"),
    bundle: true,
    minifySyntax: true,
    minifyWhitespace: true,
    format: "esm",
    platform: "node",
    target: "node20",
  });
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ name: "zod", type: "module", exports: { ".": "./index.js" } }),
  );
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
