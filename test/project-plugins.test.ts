// Automations that npm packages bring. Reads users' modules in a child (from dist/, so build first).
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import { type LoadOptions, loadProject } from "../src/project/project.ts";
import { makeProject, runFleet, startFleet, writeInto } from "./support/cli.ts";

// Each test starts several processes: where two cores are shared, that takes its time.
vi.setConfig({ testTimeout: 120_000 });

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const EXAMPLE = join(ROOT, "examples", "plugin-heartbeat");

const automation = (name: string) => `
import { defineContinuous } from "fleet-framework";
export default defineContinuous("${name}", { async runSlot() {} });`;

/** A project with packages that look as if they were installed; `dependencies` are those of its package.json. */
function project(
  fields: string,
  packages: Record<string, Record<string, string | object>>,
  dependencies = Object.keys(packages),
): string {
  const files: Record<string, string> = {
    "fleet.config.ts": `export default { ${fields} };`,
    "package.json": JSON.stringify({
      dependencies: Object.fromEntries(dependencies.map((name) => [name, "*"])),
    }),
  };
  for (const [name, contents] of Object.entries(packages))
    for (const [path, content] of Object.entries(contents))
      files[`node_modules/${name}/${path}`] = typeof content === "string" ? content : JSON.stringify(content);
  return makeProject(files);
}
const plugin = (name: string, more: object = {}) => ({
  "package.json": {
    name,
    version: "1.0.0",
    type: "module",
    fleet: { automations: ["./dist/a.js"] },
    ...more,
  },
  "dist/a.js": automation(name.replace(/^.*\//, "")),
});
const names = async (cwd: string, options: Partial<LoadOptions> = {}) =>
  (await loadProject({ cwd, ...options })).program.automations.map(({ manifest }) => manifest.name);
async function failureOf(cwd: string): Promise<{ code: string; message: string }> {
  try {
    await loadProject({ cwd });
  } catch (error) {
    return error as { code: string; message: string };
  }
  throw new Error("it loaded");
}

test("a packed and installed plugin runs, without a line in the config", async () => {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "fleet-plugin-")));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }));
  const quiet = ["--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--cache", join(dir, "cache")];
  const npm = (...args: string[]) => execFileSync("npm", [...args, ...quiet], { cwd: dir, stdio: "pipe" });
  npm("pack", EXAMPLE);
  const [tarball = ""] = readdirSync(dir).filter((name) => name.endsWith(".tgz"));
  expect(tarball).toBe("fleet-plugin-heartbeat-1.0.0.tgz");
  writeInto(dir, "package.json", '{"private":true}');
  npm("install", "--legacy-peer-deps", `./${tarball}`);
  // What it needs of its project. After the installation, which would clear them away.
  symlinkSync(ROOT, join(dir, "node_modules", "fleet-framework"));
  symlinkSync(realpathSync(join(ROOT, "node_modules", "zod")), join(dir, "node_modules", "zod"));
  writeInto(
    dir,
    "fleet.config.ts",
    `export default { automations: [], deploy: { heartbeat: { slots: 1, config: { everySeconds: 0.2 } } } };`,
  );

  const up = startFleet(["up"], { cwd: dir });
  await up.until((text) => text.includes("running heartbeat on"));
  await vi.waitFor(
    async () => {
      const { code, stdout } = await runFleet(["stream", "pop", "heartbeat", "--json"], { cwd: dir });
      expect(code).toBe(0);
      expect(stdout).toContain('"uptimeSeconds":');
    },
    { timeout: 30_000, interval: 300 },
  );
  up.signal("SIGTERM");
  expect(await up.ended).toBe(0);
});

test("plugins among the dependencies are found; others, and packages that are none, are not", async () => {
  const cwd = project(
    `automations: ["./own.ts"]`,
    {
      "fleet-plugin-b": plugin("fleet-plugin-b"),
      "@scope/a": plugin("@scope/a"),
      plain: { "package.json": { name: "plain" } },
      other: { "package.json": { name: "other", fleet: "of cars" } },
      transitive: plugin("transitive"),
    },
    ["fleet-plugin-b", "@scope/a", "plain", "other", "not-installed"],
  );
  writeInto(cwd, "own.ts", automation("own"));
  expect(await names(cwd)).toEqual(["own", "fleet-plugin-b", "a"]);
  const { program } = await loadProject({ cwd });
  const found = program.automations.find(({ manifest }) => manifest.name === "a");
  const file = join(cwd, "node_modules/@scope/a/dist/a.js");
  expect(found).toMatchObject({ source: file, module: file });
  // Files that are named by hand take the place of all others.
  expect(await names(cwd, { files: ["own.ts"] })).toEqual(["own"]);
});

test("plugins: false and a list of names limit them; automations may name packages", async () => {
  const packages = { one: plugin("one"), two: plugin("two"), three: plugin("three") };
  const own = `automations: ["./own.ts"]`;
  const load = (fields: string, dependencies = ["one", "two"]) => {
    const cwd = project(fields, packages, dependencies);
    writeInto(cwd, "own.ts", automation("own"));
    return names(cwd);
  };
  expect(await load(`${own}, plugins: false`)).toEqual(["own"]);
  expect(await load(`${own}, plugins: ["two"]`)).toEqual(["own", "two"]);
  expect(await load(`automations: ["./own.ts", "three"], plugins: false`)).toEqual(["own", "three"]);
  // Once, though it is named and found.
  expect(await load(`automations: ["two"]`)).toEqual(["two", "one"]);
});

test("a plugin finds what its own package depends on; its version follows its code, not the place", async () => {
  const parts = {
    ...plugin("one"),
    "dist/a.js": `
      import { defineContinuous } from "fleet-framework";
      import { name } from "./name.js";
      import { suffix } from "only-mine";
      export default defineContinuous(name + suffix, { async runSlot() {} });`,
    "dist/name.js": `export const name = "named";`,
    "node_modules/only-mine/package.json": `{ "name": "only-mine", "type": "module", "exports": "./i.js" }`,
    "node_modules/only-mine/i.js": `export const suffix = "-well";`,
  };
  const version = async (cwd: string, dir = cwd) => {
    const [one] = (await loadProject({ cwd: dir })).program.automations;
    return [one?.manifest.name, one?.manifest.version];
  };
  const cwd = project(`automations: []`, { one: parts });
  const [name, first] = await version(cwd);
  expect(name).toBe("named-well");
  writeInto(cwd, "deep/fleet.config.ts", "export default { automations: [] };");
  expect(await version(cwd, join(cwd, "deep"))).toEqual([name, first]);
  writeInto(cwd, "node_modules/one/dist/name.js", `// a comment\nexport const name = "named";`);
  expect(await version(cwd)).toEqual([name, first]);
  writeInto(cwd, "node_modules/one/dist/name.js", `export const name = "other";`);
  const [other, second] = await version(cwd);
  expect(other).toBe("other-well");
  expect(second).not.toBe(first);
});

test("two automations of one name: both files are named, also those of plugins", async () => {
  const cwd = project(
    `automations: ["./own.ts"]`,
    { one: plugin("one"), two: { ...plugin("two"), "dist/a.js": automation("one") } },
    ["one"],
  );
  writeInto(cwd, "own.ts", automation("one"));
  expect(await failureOf(cwd)).toMatchObject({
    code: "FLEET_PROJECT_INVALID",
    message: expect.stringContaining(
      'two automations are named "one": one in own.ts, one in node_modules/one/dist/a.js',
    ),
  });
  writeInto(cwd, "fleet.config.ts", `export default { automations: [], plugins: ["one", "two"] };`);
  expect((await failureOf(cwd)).message).toContain(
    "one in node_modules/one/dist/a.js, one in node_modules/two/dist/a.js",
  );
});

test.each<[string, string, Record<string, string | object>, string]>([
  ["not installed", `automations: [], plugins: ["gone"]`, plugin("one"), 'plugin "gone" is not installed in'],
  [
    "named among the automations and not installed",
    `automations: ["gone"]`,
    plugin("one"),
    "gone does not exist in",
  ],
  [
    "no plugin, though it is named",
    `automations: ["one"]`,
    { "package.json": { name: "one" } },
    'plugin "one" (node_modules/one/package.json): it is no plugin',
  ],
  [
    "of no files",
    `automations: []`,
    plugin("one", { fleet: { automations: "./dist/a.js" } }),
    'plugin "one" (node_modules/one/package.json): fleet.automations must be an array of files',
  ],
  [
    "a file that is not there",
    `automations: []`,
    plugin("one", { fleet: { automations: ["./b.js"] } }),
    'plugin "one" (node_modules/one/package.json): fleet.automations: ./b.js does not exist in',
  ],
  [
    "a file outside",
    `automations: []`,
    plugin("one", { fleet: { automations: ["../two/a.js"] } }),
    "../two/a.js lies outside the package",
  ],
  [
    "TypeScript",
    `automations: []`,
    { ...plugin("one", { fleet: { automations: ["./a.ts"] } }), "a.ts": automation("one") },
    "a.ts is TypeScript; a plugin brings JavaScript",
  ],
  [
    "broken JSON",
    `automations: []`,
    { "package.json": "{" },
    'plugin "one" (node_modules/one/package.json) cannot be read',
  ],
  [
    "a throw while it loads",
    `automations: []`,
    { ...plugin("one"), "dist/a.js": `throw new Error("boom");` },
    "node_modules/one/dist/a.js: boom",
  ],
  [
    "no default export",
    `automations: []`,
    { ...plugin("one"), "dist/a.js": "export const x = 1;" },
    "node_modules/one/dist/a.js: no automation found",
  ],
  ["nothing at all", `automations: []`, { "package.json": { name: "one" } }, "nothing to run"],
])("an error names the package and the file: %s", async (_, fields, contents, message) => {
  const { code, message: said } = await failureOf(project(fields, { one: contents }));
  expect(code).toMatch(/^FLEET_(PROJECT|CONFIG)_INVALID$/);
  expect(said).toContain(message);
});
