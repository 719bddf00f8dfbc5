// Keeps the house in shape: who may import whom, and what no file may do.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { describe, expect, it } from "vitest";

const SRC = fileURLToPath(new URL("../src", import.meta.url));

/** From the bottom up; the first that matches counts. `family` names siblings, which do not import each other. */
const LAYERS: readonly { path: RegExp; layer: number; family: string }[] = [
  { path: /^internal\//, layer: 0, family: "ground" },
  { path: /^errors\.ts$/, layer: 0, family: "ground" },
  { path: /^worker\/entry\.ts$/, layer: 6, family: "worker-entry" },
  { path: /^client\/entry\.ts$/, layer: 6, family: "client-entry" },
  { path: /^master\/entry\.ts$/, layer: 6, family: "master-entry" },
  { path: /^contracts\//, layer: 1, family: "language" },
  { path: /^protocol\//, layer: 1, family: "language" },
  {
    path: /^store\/(store|queue-store|pool-store|state-store|limit-windows|edge-store|edge-minutes|watch|wish|checks|damage|records|read-assignments|read-manifests|taken|tcp)\.ts$/,
    layer: 2,
    family: "port",
  },
  { path: /^primitives\//, layer: 3, family: "primitives" },
  { path: /^store\/redis\//, layer: 3, family: "redis" },
  { path: /^store\/sqlite\//, layer: 3, family: "sqlite" },
  { path: /^client\//, layer: 3, family: "client" },
  { path: /^store\/remote\//, layer: 3, family: "remote" },
  { path: /^store\/conformance\//, layer: 3, family: "conformance" },
  { path: /^store\/open\.ts$/, layer: 3.5, family: "open" },
  { path: /^automation\//, layer: 4, family: "automation" },
  { path: /^control\//, layer: 4, family: "control" },
  { path: /^worker\//, layer: 5, family: "worker" },
  { path: /^master\//, layer: 5, family: "master" },
  { path: /^project\//, layer: 5, family: "project" },
  { path: /^cli\//, layer: 6, family: "cli" },
  { path: /^index\.ts$/, layer: 6, family: "index" },
];

interface Import {
  from: string;
  /** Path below src, or a package's name. */
  to: string;
  relative: boolean;
  /** Loaded only when it is needed (`await import`). */
  lazy: boolean;
  /** For its types only. */
  types: boolean;
}

const files = readdirSync(SRC, { recursive: true, encoding: "utf8" })
  .map((file) => file.split(sep).join("/"))
  .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"));

const sources = new Map(
  files.map((file) => [
    file,
    ts.createSourceFile(file, readFileSync(join(SRC, file), "utf8"), ts.ScriptTarget.Latest, true),
  ]),
);

function importsOf(file: string): Import[] {
  const found: Import[] = [];
  const add = (node: ts.Node | undefined, how: { lazy?: boolean; types?: boolean }) => {
    if (node === undefined || !ts.isStringLiteral(node)) return;
    const local = node.text.startsWith(".");
    const to = local
      ? relative(SRC, join(SRC, dirname(file), node.text))
          .split(sep)
          .join("/")
      : node.text;
    found.push({ from: file, to, relative: local, lazy: false, types: false, ...how });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node))
      add(node.moduleSpecifier, { types: node.importClause?.isTypeOnly === true });
    if (ts.isExportDeclaration(node)) add(node.moduleSpecifier, { types: node.isTypeOnly });
    if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument))
      add(node.argument.literal, { types: true });
    if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword)
      add(node.arguments[0], { lazy: true });
    ts.forEachChild(node, visit);
  };
  visit(sources.get(file) as ts.SourceFile);
  return found;
}

const imports = files.flatMap(importsOf);
const local = imports.filter((one) => one.relative);
const placeOf = (file: string) => LAYERS.find(({ path }) => path.test(file));

describe("layers", () => {
  it("sees the files and their imports", () => {
    expect(files.length).toBeGreaterThan(80);
    expect(local.length).toBeGreaterThan(200);
    expect(local).toContainEqual(
      expect.objectContaining({ from: "store/open.ts", to: "store/sqlite/store.ts", lazy: true }),
    );
  });

  it("gives every file a layer", () => {
    expect(files.filter((file) => placeOf(file) === undefined)).toEqual([]);
  });

  it("imports only files that are there", () => {
    expect(local.filter(({ to }) => !sources.has(to))).toEqual([]);
  });

  it("imports downward only, and never between siblings", () => {
    const wrong = local.filter(({ from, to }) => {
      const [above, below] = [placeOf(from), placeOf(to)];
      if (above === undefined || below === undefined || above.family === below.family) return false;
      return below.layer >= above.layer;
    });
    expect(wrong.map(({ from, to }) => `${from} → ${to}`)).toEqual([]);
  });

  it("has no circle, not even one of types", () => {
    const next = new Map(
      files.map((file) => [file, local.filter((one) => one.from === file && !one.lazy).map(({ to }) => to)]),
    );
    const done = new Set<string>();
    const circles: string[] = [];
    const walk = (file: string, path: readonly string[]): void => {
      if (path.includes(file))
        return void circles.push([...path.slice(path.indexOf(file)), file].join(" → "));
      if (done.has(file)) return;
      for (const to of next.get(file) ?? []) walk(to, [...path, file]);
      done.add(file);
    };
    for (const file of files) walk(file, []);
    expect(circles).toEqual([]);
  });

  it("nobody imports an entry", () => {
    expect(
      local.filter(({ to }) =>
        /^(index|contracts\/entry|worker\/entry|master\/entry|client\/entry|cli\/main)\.ts$/.test(to),
      ),
    ).toEqual([]);
  });
});

describe("house rules", () => {
  it("contracts and protocol import no Node module and no package but the schema standard's types", () => {
    const outside = imports.filter(
      ({ from, relative }) =>
        !relative &&
        /^(contracts|protocol|internal|errors)/.test(from) &&
        !from.startsWith("internal/logger"),
    );
    expect(
      outside.filter(({ to }) => to !== "@standard-schema/spec").map(({ from, to }) => `${from} → ${to}`),
    ).toEqual([]);
    expect(outside.every(({ types }) => types)).toBe(true);
  });

  it("only the Redis back end knows the Redis client, only the SQLite one the SQLite packages", () => {
    const users = (name: RegExp) =>
      new Set(imports.filter(({ to }) => name.test(to)).map(({ from }) => from.replace(/[^/]*$/, "")));
    expect(users(/^@redis\//)).toEqual(new Set(["store/redis/"]));
    for (const user of users(/sqlite$/)) expect(user).toBe("store/sqlite/");
  });

  it("has no export *", () => {
    const stars = [...sources].filter(([, source]) =>
      source.statements.some((one) => ts.isExportDeclaration(one) && one.exportClause === undefined),
    );
    expect(stars.map(([file]) => file)).toEqual([]);
  });

  it("has no file that is named after nothing", () => {
    expect(
      files.filter((file) => /(^|[/.-])(utils?|common|helpers?|misc|manager|shared)([/.-]|$)/.test(file)),
    ).toEqual([]);
  });

  it("has no file above 450 lines, and a median of at most 120", () => {
    const lengths = [...sources.values()]
      .map((source) => source.getLineStarts().length)
      .toSorted((a, b) => a - b);
    expect(lengths.at(-1)).toBeLessThanOrEqual(450);
    expect(lengths[Math.floor(lengths.length / 2)]).toBeLessThanOrEqual(120);
  });
});
