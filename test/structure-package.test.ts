// The package as its users get it: what resolves, what it exports, what it needs. Needs dist/ (`npm run build`).
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, normalize, sep } from "node:path";
import { fileURLToPath } from "node:url";
import vm from "node:vm";
import { build } from "esbuild";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { VERSION } from "../src/protocol/version.ts";
import { makeProject } from "./support/cli.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const NAME = "fleet-framework";

interface PackageJson {
  name: string;
  version: string;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  exports: Record<string, { types: string; default: string }>;
  scripts?: Record<string, string>;
  bin: Record<string, string>;
  engines: { node: string };
}
const read = (file: string) => JSON.parse(readFileSync(file, "utf8")) as PackageJson;
const own = read(join(ROOT, "package.json"));

/** Runs a module in a process of its own, in a folder that has the package among its dependencies. */
function evaluate(code: string): string {
  const cwd = makeProject();
  return execFileSync(process.execPath, ["--input-type=module", "-e", code], {
    cwd,
    encoding: "utf8",
  }).trim();
}

/** Names that a source file exports by explicit list, types among them. */
function exportedNames(file: string): { values: string[]; types: string[] } {
  const source = ts.createSourceFile(
    file,
    readFileSync(join(ROOT, file), "utf8"),
    ts.ScriptTarget.Latest,
    true,
  );
  const names = source.statements
    .filter(ts.isExportDeclaration)
    .flatMap(({ exportClause, isTypeOnly }) =>
      exportClause !== undefined && ts.isNamedExports(exportClause)
        ? exportClause.elements.map((one) => ({ name: one.name.text, type: isTypeOnly || one.isTypeOnly }))
        : [],
    );
  const pick = (type: boolean) =>
    names
      .filter((one) => one.type === type)
      .map(({ name }) => name)
      .toSorted();
  return { values: pick(false), types: pick(true) };
}

describe("exports", () => {
  it("maps the entries to files that are there, types included", () => {
    expect(Object.keys(own.exports)).toEqual([".", "./contracts", "./worker", "./master", "./client"]);
    for (const { types, default: code } of Object.values(own.exports))
      expect([types, code].filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  });

  it("resolves nothing else", () => {
    const inner = [
      "dist/index.js",
      "dist/store/open.js",
      "contracts/entry",
      "master/master",
      "client/client",
      "testing",
      "package.json",
      "src/index.ts",
    ];
    const said = evaluate(`
      for (const path of ${JSON.stringify(inner)})
        await import("${NAME}/" + path).then(() => console.log("resolved " + path), (error) => console.log(error.code));
    `);
    expect(said.split("\n")).toEqual(inner.map(() => "ERR_PACKAGE_PATH_NOT_EXPORTED"));
  });

  it.each([
    [".", "src/index.ts"],
    ["./contracts", "src/contracts/entry.ts"],
    ["./worker", "src/worker/entry.ts"],
    ["./master", "src/master/entry.ts"],
    ["./client", "src/client/entry.ts"],
  ])("%s has exactly these public names", (entry, file) => {
    const names = exportedNames(file);
    const loaded = evaluate(`console.log(JSON.stringify(Object.keys(await import("${join(NAME, entry)}"))))`);
    expect((JSON.parse(loaded) as string[]).toSorted()).toEqual(names.values);
    expect(names).toMatchSnapshot();
  });

  it("gives one class of error through all entries", () => {
    const said = evaluate(`
      const { FleetError } = await import("${NAME}");
      const contracts = await import("${NAME}/contracts");
      console.log(FleetError === contracts.FleetError);
    `);
    expect(said).toBe("true");
  });

  it("loads the main entry without loading a store's driver", () => {
    const said = evaluate(`
      await import("${NAME}");
      const loaded = process.moduleLoadList.filter((name) => /sqlite/.test(name));
      console.log(JSON.stringify(loaded));
    `);
    expect(JSON.parse(said)).toEqual([]);
  });
});

describe("the contracts entry", () => {
  it("runs without anything of Node: bundled for a browser, in a bare context", async () => {
    const { outputFiles, metafile } = await build({
      entryPoints: [join(ROOT, "dist/contracts/entry.js")],
      bundle: true,
      platform: "browser",
      format: "iife",
      globalName: "fleet",
      write: false,
      metafile: true,
      // Wanted once: a file that asks for its own address to find an adapter in Node.
      logOverride: { "empty-import-meta": "silent" },
    });
    const inputs = Object.values(metafile.inputs).flatMap(({ imports }) => imports.map(({ path }) => path));
    expect(inputs.filter((path) => path.startsWith("node:"))).toEqual([]);
    const result: unknown = vm.runInNewContext(`${outputFiles[0]?.text ?? ""}
      const schema = { "~standard": { version: 1, vendor: "own", validate: (value) => ({ value }), jsonSchema: { input: () => ({}) } } };
      typeof process + " " + fleet.defineStream("s", schema).name;`);
    expect(result).toBe("undefined s");
  });
});

describe("package.json", () => {
  it("has the version that the code says", () => {
    expect(VERSION).toBe(own.version);
    expect(own.engines.node).toBe(">=20.19");
  });

  let files: Set<string> | undefined;
  const packed = () => (files ??= pack());
  const pack = () => {
    const output = execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
      cwd: ROOT,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    const [listed] = JSON.parse(output) as { files: { path: string }[] }[];
    return new Set(listed?.files.map(({ path }) => path));
  };

  it("packs the command, the built code with its scripts and migrations, and neither tests nor sources", () => {
    const paths = packed();
    const data = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" })
      .map((file) => file.split(sep).join("/"))
      .filter((file) => /\.(lua|sql)$/.test(file));
    expect(data.length).toBeGreaterThan(10);
    const needed = [
      "bin/fleet.js",
      "README.md",
      "LICENSE",
      "CHANGELOG.md",
      ...data.map((file) => `dist/${file}`),
    ];
    expect(needed.filter((file) => !paths.has(file))).toEqual([]);
    expect([...paths].filter((path) => /(\.test\.|^src\/|^test\/|conformance)/.test(path))).toEqual([]);
  });

  it("packs source maps that carry their sources, as those themselves are not packed", () => {
    const maps = [...packed()].filter((path) => path.endsWith(".js.map"));
    expect(maps.length).toBeGreaterThan(10);
    const bare = maps.filter((path) => {
      const { sources, sourcesContent = [] } = JSON.parse(readFileSync(join(ROOT, path), "utf8")) as {
        sources: string[];
        sourcesContent?: (string | null)[];
      };
      return sources.some((_, at) => typeof sourcesContent[at] !== "string");
    });
    expect(bare).toEqual([]);
  });

  it("packs all that its documents link to", () => {
    const paths = packed();
    const folders = new Set([...paths].flatMap((path) => [dirname(path), dirname(dirname(path))]));
    const documents = [...paths].filter((path) => path.endsWith(".md"));
    expect(documents.length).toBeGreaterThan(10);
    const dangling = documents.flatMap((document) =>
      [...readFileSync(join(ROOT, document), "utf8").matchAll(/\]\(([^)\s]+)\)/g)]
        .map(([, link = ""]) => link)
        .filter((link) => !/^(https?:|#|mailto:)/.test(link))
        .map((link) => normalize(join(dirname(document), link.replace(/#.*/, ""))).replace(/\/$/, ""))
        .filter((target) => !paths.has(target) && !folders.has(target))
        .map((target) => `${document}: ${target}`),
    );
    expect(dangling).toEqual([]);
  });

  it("names only dependencies that the code imports", () => {
    const code = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
      .map((file) => readFileSync(join(ROOT, "src", file), "utf8"))
      .join("\n");
    const imported = (name: string) =>
      new RegExp(`(from|import)[ (]"${name.replaceAll("/", "\\/")}(/[^"]*)?"`).test(code);
    expect(Object.keys(own.dependencies ?? {}).filter((name) => !imported(name))).toEqual([]);
  });
});

describe("run-time dependencies", () => {
  /** All packages that an install without development dependencies brings, by folder. */
  function closure(): Map<string, PackageJson> {
    const found = new Map<string, PackageJson>();
    const walk = (from: string, manifest: PackageJson) => {
      for (const name of Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })) {
        const folder = createRequire(join(from, "package.json"))
          .resolve.paths(name)
          ?.map((base) => join(base, name))
          .find((candidate) => existsSync(join(candidate, "package.json")));
        if (folder === undefined || found.has(folder)) continue;
        const next = read(join(folder, "package.json"));
        found.set(folder, next);
        walk(folder, next);
      }
    };
    walk(ROOT, own);
    return found;
  }

  it("need no install script: the only two that have one work without it", () => {
    const scripted = [...closure().values()]
      .filter(({ scripts }) =>
        ["preinstall", "install", "postinstall"].some((name) => scripts?.[name] !== undefined),
      )
      .map(({ name }) => name);
    expect(new Set(scripted)).toEqual(new Set(["@photostructure/sqlite", "esbuild"]));
  });

  it("@photostructure/sqlite brings its binary along", () => {
    const folder = join(ROOT, "node_modules/@photostructure/sqlite");
    const prebuilt = readdirSync(join(folder, "prebuilds"));
    expect(prebuilt).toEqual(
      expect.arrayContaining(["linux-x64", "linux-arm64", "darwin-arm64", "win32-x64"]),
    );
    // As after `npm install --ignore-scripts`: nothing was compiled here.
    expect(existsSync(join(folder, "build"))).toBe(false);
    const said = execFileSync(
      process.execPath,
      [
        "--input-type=module",
        "-e",
        `
        import { DatabaseSync } from "@photostructure/sqlite";
        console.log(new DatabaseSync(":memory:").prepare("SELECT 1 + 1 AS sum").get().sum);
      `,
      ],
      { cwd: ROOT, encoding: "utf8" },
    );
    expect(said.trim()).toBe("2");
  });

  it("esbuild brings its binary as a package of its own", () => {
    const binary = `@esbuild/${process.platform}-${process.arch}`;
    expect(read(join(ROOT, "node_modules/esbuild/package.json")).optionalDependencies).toHaveProperty([
      binary,
    ]);
    expect(existsSync(join(ROOT, "node_modules", binary, "bin/esbuild"))).toBe(true);
  });
});
