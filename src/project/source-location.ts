import { readFile } from "node:fs/promises";
import { dirname, extname, sep } from "node:path";
import { pathToFileURL } from "node:url";
import type { BuildFailure, Loader, Plugin } from "esbuild";

const LOADERS: Record<string, Loader> = {
  ".tsx": "tsx",
  ".jsx": "jsx",
  ".js": "js",
  ".mjs": "js",
  ".cjs": "js",
};

/**
 * Lets `import.meta.url`, `.dirname` and `.filename` in users' files mean the file they wrote, not the bundle that it
 * went into. Files that do not mention them are left to the compiler as they are.
 */
export async function sourceLocation(): Promise<Plugin> {
  const { transform } = await import("esbuild");
  return {
    name: "source-location",
    setup(build) {
      build.onLoad({ filter: /\.[cm]?[jt]sx?$/, namespace: "file" }, async ({ path }) => {
        if (path.includes(`${sep}node_modules${sep}`)) return undefined;
        const text = await readFile(path, "utf8");
        if (!text.includes("import.meta")) return undefined;
        try {
          const { code } = await transform(text, {
            loader: LOADERS[extname(path)] ?? "ts",
            sourcefile: path,
            sourcemap: "inline",
            target: "node20",
            define: {
              "import.meta.url": JSON.stringify(pathToFileURL(path).href),
              "import.meta.dirname": JSON.stringify(dirname(path)),
              "import.meta.filename": JSON.stringify(path),
            },
          });
          return { contents: code, loader: "js", resolveDir: dirname(path) };
        } catch (error) {
          return { errors: (error as BuildFailure).errors };
        }
      });
    },
  };
}
