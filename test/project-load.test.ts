// The project loader on real files: compiles them, and reads them in a child (from dist/, so build first).
import { existsSync, readdirSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { buildModules } from "../src/project/build.ts";
import { pruneBuilds } from "../src/project/build-folders.ts";
import { ModuleReader } from "../src/project/describe.ts";
import { type LoadOptions, loadProject, newMemory } from "../src/project/project.ts";
import { makeProject, writeInto } from "./support/cli.ts";

// Each test starts several processes: where two cores are shared, that takes its time.
vi.setConfig({ testTimeout: 90_000 });

const automation = (name: string, body = "") => `
import { defineContinuous } from "fleet-framework";
export default defineContinuous("${name}", { async runSlot(ctx) { ${body} await ctx.sleep(1); } });
`;
const config = (fields = "") => `
import { defineConfig } from "fleet-framework";
export default defineConfig({ automations: ["./automations/*.ts"], ${fields} });
`;

/** The error that loading ends with. */
async function failureOf(cwd: string, options: Partial<LoadOptions> = {}): Promise<Error & { code: string }> {
  const error: unknown = await loadProject({ cwd, ...options }).then(
    () => undefined,
    (error: unknown) => error,
  );
  if (error instanceof Error && "code" in error) return error as Error & { code: string };
  throw new Error("it loaded", { cause: error });
}

test("reads automations, store, namespace and deploy; watches every file that went in", async () => {
  const cwd = makeProject({
    "fleet.config.ts": config(
      `store: "redis://h", namespace: "prod", deploy: { ping: { slots: 2, config: { n: 1 } } }`,
    ),
    "shared.ts": `import { z } from "zod"; enum Kind { A = 1 } export const S = z.object({ n: z.number().default(Kind.A) });`,
    "automations/ping.ts": `
      import { defineContinuous } from "fleet-framework";
      import { S } from "../shared.ts";
      export default defineContinuous("ping", { config: S, output: S, env: ["API_KEY"], isolate: "slot", async runSlot() {} });`,
    "automations/two.ts": `
      import { defineContinuous } from "fleet-framework";
      const one = (name: string) => defineContinuous(name, { async runSlot() {} });
      export default [one("a"), one("b")];`,
    "automations/ping.test.ts": "throw new Error('tests are no automations')",
  });
  const project = await loadProject({ cwd });
  expect(project).toMatchObject({ dir: cwd, store: "redis://h", namespace: "prod" });
  expect(project.program.deploy).toEqual({ ping: { slots: 2, config: { n: 1 } } });
  expect(project.program.automations.map(({ manifest }) => manifest.name)).toEqual(["ping", "a", "b"]);
  const [ping] = project.program.automations;
  expect(ping).toMatchObject({ source: join(cwd, "automations/ping.ts"), env: ["API_KEY"], isolate: "slot" });
  expect(ping?.manifest.output?.stream).toBe("ping");
  expect(ping?.manifest.configSchema).toMatchObject({ type: "object" });
  expect(ping?.module.startsWith(join(cwd, ".fleet/build"))).toBe(true);
  expect(project.watch.toSorted()).toEqual(
    ["automations/ping.ts", "automations/two.ts", "fleet.config.ts", "shared.ts"].map((file) =>
      join(cwd, file),
    ),
  );
});

test("import.meta means the file the user wrote", async () => {
  const cwd = makeProject({
    "a.ts": `
      import { defineContinuous } from "fleet-framework";
      import { here } from "./lib/place.ts";
      if (!import.meta.url.endsWith("/a.ts")) throw new Error(import.meta.url);
      export default defineContinuous(here, { async runSlot() {} });`,
    "lib/place.ts": `
      import { basename } from "node:path";
      export const here: string = basename(import.meta.dirname) + "." + basename(import.meta.filename);`,
  });
  const { program } = await loadProject({ cwd, files: ["a.ts"] });
  expect(program.automations[0]?.manifest.name).toBe("lib.place.ts");
});

test("the version follows the code, not comments; a second load reads only what changed", async () => {
  const cwd = makeProject({ "a.ts": automation("a"), "b.ts": automation("b") });
  const memory = newMemory();
  const load = () => loadProject({ cwd, files: ["*.ts"], memory });
  const versions = async () => (await load()).program.automations.map(({ manifest }) => manifest.version);
  const [a, b] = await versions();
  writeInto(cwd, "a.ts", `// a comment\n${automation("a")}`);
  expect(await versions()).toEqual([a, b]);
  writeInto(cwd, "a.ts", automation("a", "ctx.progress();"));
  const [changed, same] = await versions();
  expect(changed).not.toBe(a);
  expect(same).toBe(b);
});

test("a mistake in the source is shown with its place and line", async () => {
  const cwd = makeProject({
    "fleet.config.ts": config(),
    "automations/bad.ts": "export default {\n  a: 1,\n  b: = 2,\n};",
  });
  const error = await failureOf(cwd);
  expect(error.code).toBe("FLEET_PROJECT_INVALID");
  expect(error.message).toContain("automations/bad.ts:3:5");
  expect(error.message).toContain("b: = 2");
});

test("a relative import of nothing is a compile error too; also in a file with import.meta", async () => {
  const cwd = makeProject({
    "a.ts": `import "./gone.ts";`,
    "b.ts": "console.log(import.meta.url);\nlet x = = 1;",
  });
  expect((await failureOf(cwd, { files: ["a.ts"] })).message).toContain('Could not resolve "./gone.ts"');
  expect((await failureOf(cwd, { files: ["b.ts"] })).message).toContain("b.ts:2:8");
});

test("an error while loading names the file, the reason and the line in the source", async () => {
  const cwd = makeProject({
    "a.ts": `interface Wide { a: 1 }\n\nconst f = () => { throw new RangeError("boom"); };\nf();\n`,
  });
  const error = await failureOf(cwd, { files: ["a.ts"] });
  expect(error.code).toBe("FLEET_PROJECT_INVALID");
  expect(error.message).toMatch(/^a\.ts: RangeError: boom\n/);
  expect(error.message).toMatch(/a\.ts:3:\d+/);
  expect(error.message).not.toContain("describe-child");
});

test("a package that is not installed is named, with what to do", async () => {
  const cwd = makeProject({ "a.ts": `import "not-there/deep";` });
  const { message } = await failureOf(cwd, { files: ["a.ts"] });
  expect(message).toBe('a.ts: package "not-there" cannot be found; install it: npm install not-there');
});

test("an error of a definition keeps its own code", async () => {
  const cwd = makeProject({ "a.ts": automation("Bad Name") });
  expect(await failureOf(cwd, { files: ["a.ts"] })).toMatchObject({ code: "FLEET_NAME_INVALID" });
});

test.each([
  ["no default export", "export const x = 1;", "it has no default export"],
  ["another default export", "export default 5;", "its default export is none"],
  ["an empty array", "export default [];", "its default export is none"],
  ["a process that ends itself", "console.error('last words'); process.exit(3);", "exit code 3)\nlast words"],
  ["a top-level await without end", "await new Promise(() => {});", "can never finish"],
])("%s is an error that names the file", async (_, source, message) => {
  const cwd = makeProject({ "a.ts": source });
  const error = await failureOf(cwd, { files: ["a.ts"] });
  expect(error.code).toBe("FLEET_PROJECT_INVALID");
  expect(error.message).toMatch(/^a\.ts: /);
  expect(error.message).toContain(message);
});

test("code that keeps busy for ever is given up", async () => {
  const cwd = makeProject({ "a.ts": "for (;;) {}" });
  const modules = await buildModules([join(cwd, "a.ts")], { dir: cwd });
  using reader = new ModuleReader({ dir: cwd, limitSeconds: 3 });
  await expect(reader.automations(modules)).rejects.toMatchObject({
    code: "FLEET_PROJECT_INVALID",
    message: expect.stringContaining("a.ts: still loading after 3 s"),
  });
});

test("two automations of one name: both files are named", async () => {
  const cwd = makeProject({
    "fleet.config.ts": config(),
    "automations/a.ts": automation("same"),
    "automations/b.ts": automation("same"),
  });
  const error = await failureOf(cwd);
  expect(error.code).toBe("FLEET_PROJECT_INVALID");
  expect(error.message).toContain('"same": one in automations/a.ts, one in automations/b.ts');
});

test("the config sees FLEET_STORE; automations see none of Fleet's secrets", async () => {
  const cwd = makeProject({
    "fleet.config.ts": config("store: process.env.FLEET_STORE"),
    "automations/a.ts": `const seen = ["FLEET_STORE", "FLEET_WORKER_STORE", "FLEET_TOKEN", "FLEET_MASTER"].filter((n) => n in process.env);
      if (seen.length > 0) throw new Error("seen: " + seen);
      if (process.env.OTHER !== "yes") throw new Error("OTHER is gone");
      ${automation("a")}`,
  });
  const given = { FLEET_STORE: "redis://h", FLEET_WORKER_STORE: "w", FLEET_TOKEN: "t", FLEET_MASTER: "m" };
  for (const [name, value] of Object.entries({ ...given, OTHER: "yes" })) vi.stubEnv(name, value);
  try {
    expect((await loadProject({ cwd })).store).toBe("redis://h");
  } finally {
    vi.unstubAllEnvs();
  }
});

test("files given take the place of the config's, whose deploy then only counts for them", async () => {
  const cwd = makeProject({
    "fleet.config.ts": config("deploy: { a: { slots: 1 }, b: { slots: 2 } }"),
    "automations/a.ts": automation("a"),
    "automations/b.ts": automation("b"),
  });
  const { program } = await loadProject({ cwd, files: ["automations/b.ts"] });
  expect(program.automations.map(({ manifest }) => manifest.name)).toEqual(["b"]);
  expect(program.deploy).toEqual({ b: { slots: 2 } });
});

test("only keeps some; unknown names are refused with the nearest", async () => {
  const cwd = makeProject({
    "fleet.config.ts": config("deploy: { pinger: { slots: 1 }, logger: { slots: 2 } }"),
    "automations/a.ts": automation("pinger"),
    "automations/b.ts": automation("logger"),
  });
  const { program } = await loadProject({ cwd, only: ["logger"] });
  expect(program.automations.map(({ manifest }) => manifest.name)).toEqual(["logger"]);
  expect(program.deploy).toEqual({ logger: { slots: 2 } });
  const error = await failureOf(cwd, { only: ["loger"] });
  expect(error).toMatchObject({
    code: "FLEET_USAGE",
    message: expect.stringContaining('did you mean "logger"?'),
  });
});

test("deploy for an automation that is not there is refused with the nearest name", async () => {
  const cwd = makeProject({
    "fleet.config.ts": config("deploy: { pingr: { slots: 1 } }"),
    "automations/a.ts": automation("pinger"),
  });
  expect(await failureOf(cwd)).toMatchObject({
    code: "FLEET_CONFIG_INVALID",
    message: expect.stringContaining('did you mean "pinger"?'),
  });
});

test("nothing to run, missing files, folders and globs without a match say what to do", async () => {
  const cwd = makeProject({ "automations/a.ts": automation("a") });
  expect((await failureOf(cwd)).message).toContain("write a fleet.config.ts");
  expect((await failureOf(cwd, { files: ["b.ts"] })).message).toContain("b.ts does not exist");
  expect((await failureOf(cwd, { files: ["automations"] })).message).toContain("write automations/*.ts");
  expect((await failureOf(cwd, { files: ["x/*.ts"] })).message).toContain("no file matches x/*.ts");
  expect((await failureOf(cwd, { files: ["{a,b}.ts"] })).message).toContain("only *, ** and ?");
  expect((await failureOf(cwd, { config: "my.config.ts" })).message).toContain("my.config.ts does not exist");
});

test("old builds go, but neither the newest nor those of a living process", async () => {
  const cwd = makeProject();
  const build = (name: string) => {
    const folder = join(cwd, ".fleet/build", name);
    writeInto(cwd, `.fleet/build/${name}/a.mjs`, "");
    return folder;
  };
  const kept = build("kept");
  const used = build("used");
  const old = build("old");
  const { hostname } = await import("node:os");
  writeInto(cwd, `.fleet/build/used/in-use.${hostname()}.${process.pid}`, "");
  writeInto(cwd, `.fleet/build/old/in-use.${hostname()}.999999999`, "");
  const twoHours = new Date(Date.now() - 7_200_000);
  utimesSync(used, twoHours, twoHours);
  utimesSync(old, twoHours, twoHours);
  pruneBuilds(cwd, 1);
  expect(readdirSync(join(cwd, ".fleet/build")).toSorted()).toEqual(["kept", "used"]);
  expect(existsSync(kept)).toBe(true);
});
