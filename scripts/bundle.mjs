// Joins the modules of src/ into few larger ones: finding and opening hundreds of files cost more than all else at the start of a process.
import { cpSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { copyReferenceFiles } from "./reference-files.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
/** What the package exports, and what is started as a process. */
const ENTRIES = [
  "index.ts",
  "contracts/entry.ts",
  "worker/entry.ts",
  "master/entry.ts",
  "client/entry.ts",
  "cli/main.ts",
  "worker/child-main.ts",
  "project/describe-child.ts",
];

/**
 * The Redis client is four hundred files, whose loading was two fifths of what a process costs to start. So it goes along as one file,
 * with its version and licence; what it may have installed beside it is still looked for at run time.
 */
const CLIENT = "@redis/client";
const CLIENT_FILE = "vendor/redis-client.js";

const clientGoesAlong = {
  name: "client-goes-along",
  setup({ onResolve }) {
    // Only modules that are loaded on demand use it, and these lie in chunks/.
    onResolve({ filter: new RegExp(`^${CLIENT}$`) }, () => ({ path: `../${CLIENT_FILE}`, external: true }));
  },
};

async function bundleClient(folder) {
  const manifest = createRequire(import.meta.url).resolve(`${CLIENT}/package.json`);
  const { version, license, repository } = JSON.parse(readFileSync(manifest, "utf8"));
  await build({
    stdin: { contents: `export { ErrorReply, RedisClient } from "${CLIENT}";`, resolveDir: root },
    outfile: join(folder, CLIENT_FILE),
    bundle: true,
    external: ["@opentelemetry/api", "@node-rs/xxhash"],
    format: "esm",
    platform: "node",
    target: "node20",
    banner: {
      js: `// ${CLIENT} ${version}, licence ${license}: ${repository.url.replace("git:", "https:")}
import { createRequire } from "node:module";
const require = createRequire(import.meta.url);`,
    },
    logLevel: "warning",
  });
}

/** Puts the code and the files beside it (.lua, .sql, the page /api/docs) into `folder`. What entries share is there once. */
export async function bundle(folder) {
  await build({
    entryPoints: ENTRIES.map((file) => join("src", file)),
    absWorkingDir: root,
    outbase: "src",
    outdir: folder,
    chunkNames: "chunks/[name]-[hash]",
    bundle: true,
    splitting: true,
    packages: "external",
    plugins: [clientGoesAlong],
    format: "esm",
    platform: "node",
    target: "node20",
    sourcemap: true,
    sourcesContent: true,
    logLevel: "warning",
  });
  await bundleClient(folder);
  for (const file of readdirSync(join(root, "src"), { recursive: true, withFileTypes: true })) {
    if (!file.isFile() || file.name.endsWith(".ts")) continue;
    const path = join(file.parentPath ?? file.path, file.name);
    cpSync(path, path.replace(join(root, "src"), folder));
  }
  copyReferenceFiles(folder);
}
