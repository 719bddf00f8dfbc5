// What is saved while nobody watches yet. The whole command is tested in test/cli-dev.test.ts.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { FleetError } from "../errors.ts";
import { SILENT } from "../internal/log.ts";
import type { Program, ProgramAutomation } from "../protocol/program.ts";
import type { Project } from "../project/project.ts";
import { reloadOnSave } from "./dev.ts";
import type { Terminal } from "./terminal.ts";

const WAIT = { timeout: 20_000, interval: 20 };

/** A folder whose files in `folders` are the automations: their names are the automations', their texts the versions. */
function folder(folders: readonly string[]) {
  const dir = mkdtempSync(join(tmpdir(), "fleet-dev-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  for (const one of ["automations", "more"]) mkdirSync(join(dir, one));
  const write = (path: string, text: string) => writeFileSync(join(dir, path), text);
  write("automations/one.ts", "v1");
  write("mark.ts", "m1");
  const project = (): Project => {
    const files = folders.flatMap((one) => readdirSync(join(dir, one)).map((file) => join(dir, one, file)));
    const mark = readIfThere(join(dir, "mark.ts"));
    const automations = files.map(
      (file) =>
        ({
          manifest: { name: file.slice(dir.length + 1), version: `${readFileSync(file, "utf8")} ${mark}` },
        }) as ProgramAutomation,
    );
    return {
      dir,
      configFile: undefined,
      store: undefined,
      namespace: undefined,
      partition: undefined,
      partitionSeconds: undefined,
      program: { automations, deploy: {} },
      watch: [...files, join(dir, "mark.ts")],
      patterns: { dir, list: folders.map((one) => `${one}/*.ts`) },
    };
  };
  return { dir, write, project };
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    throw new FleetError("FLEET_PROJECT_INVALID", "there is no mark.ts");
  }
}

/** Starts reloading; `load` is called for each build, and `refuse` may throw as the worker takes a program. */
function reload(project: Project, load: () => Project, refuse: () => void = () => undefined) {
  const replaced: Record<string, string>[] = [];
  const complaints: string[] = [];
  const said: string[] = [];
  const note = (message: string) => void said.push(message);
  const reloading = reloadOnSave({
    project,
    load: async () => load(),
    worker: {
      replace: async ({ automations }: Program) => {
        replaced.push(
          Object.fromEntries(automations.map(({ manifest }) => [manifest.name, manifest.version])),
        );
        refuse();
      },
    },
    log: { ...SILENT, info: note, warn: note, error: note },
    terminal: { json: false, complain: (text: string) => complaints.push(text) } as unknown as Terminal,
  });
  onTestFinished(() => reloading.close());
  return { replaced, complaints, said };
}

test("a file that appears after the build and before the watch is taken up", async () => {
  const { write, project } = folder(["automations"]);
  const built = project();
  const { replaced } = reload(built, project);
  write("automations/two.ts", "v1");
  await vi.waitFor(
    () => expect(replaced).toEqual([{ "automations/one.ts": "v1 m1", "automations/two.ts": "v1 m1" }]),
    WAIT,
  );
});

test("a file that appears in a folder while that begins to be watched is taken up", async () => {
  const folders = ["automations"];
  const { write, project } = folder(folders);
  let late = true;
  const { replaced } = reload(project(), () => {
    const next = project();
    if (late && folders.length === 2) write("more/two.ts", "v1");
    late = folders.length < 2;
    return next;
  });
  folders.push("more");
  write("automations/one.ts", "v2");
  await vi.waitFor(
    () => expect(replaced.at(-1)).toEqual({ "automations/one.ts": "v2 m1", "more/two.ts": "v1 m1" }),
    WAIT,
  );
});

test("an imported file that goes and comes back is taken up, and its absence told once", async () => {
  const { dir, write, project } = folder(["automations"]);
  const { replaced, complaints, said } = reload(project(), project);
  write("mark.ts", "m2");
  await vi.waitFor(() => expect(replaced.at(-1)).toEqual({ "automations/one.ts": "v1 m2" }), WAIT);
  rmSync(join(dir, "mark.ts"));
  await vi.waitFor(() => expect(complaints.join()).toContain("there is no mark.ts"), WAIT);
  expect(said).toContain("not reloaded; the last good version keeps running");
  write("mark.ts", "m3");
  await vi.waitFor(() => expect(replaced.at(-1)).toEqual({ "automations/one.ts": "v1 m3" }), WAIT);
  expect(complaints).toHaveLength(1);
});

test.each([
  [
    "for now",
    new FleetError("FLEET_STORE_FAILED", "OOM", { retryable: true }),
    "the new version of automations/one.ts runs here; the store does not have it yet, trying again",
    [],
  ],
  [
    "for good",
    new TypeError("deploy: one: slots must be 0 or more"),
    "the new version of automations/one.ts runs here, but what it asks for is refused",
    [expect.stringContaining("slots must be 0 or more")],
  ],
])(
  "a version that the store refuses %s runs here all the same, and is the one that the next is compared with",
  async (_, error, words, shown) => {
    const { write, project } = folder(["automations"]);
    let refuses = true;
    const { replaced, complaints, said } = reload(project(), project, () => {
      if (refuses) throw error;
    });
    write("automations/one.ts", "v2");
    await vi.waitFor(() => expect(said).toEqual([words]), WAIT);
    expect(complaints).toEqual(shown);
    refuses = false;
    // Back to what it was at first: that is not what runs.
    write("automations/one.ts", "v1");
    await vi.waitFor(() => expect(replaced.at(-1)).toEqual({ "automations/one.ts": "v1 m1" }), WAIT);
    expect(replaced.length).toBeGreaterThan(1);
  },
);
