// `fleet dev`: a save replaces the running code; a version that does not build or load leaves the last good one running.
import { renameSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { makeProject, type RunningFleet, startFleet, writeInto } from "./support/cli.ts";

// Each test starts several processes: where two cores are shared, that takes its time.
vi.setConfig({ testTimeout: 90_000 });

const says = (name: string, what: string) => `
import { defineContinuous } from "fleet-framework";
import { mark } from "../mark.ts";
export default defineContinuous("${name}", {
  async runSlot(ctx) {
    for await (const _ of ctx.loop({ everySeconds: 0.05 })) console.log(mark("${name}", "${what}", ctx.slotId));
  },
});
`;
const mark = (sign: string) =>
  `export const mark = (name: string, what: string, slot: number) => "${sign}" + name + " " + what + " " + slot;`;
const config = (slots: number) => `
import { defineConfig } from "fleet-framework";
export default defineConfig({
  automations: ["./automations/*.ts"],
  deploy: { one: { slots: ${slots} } },
});
`;

function project(): string {
  return makeProject({
    "fleet.config.ts": config(1),
    "mark.ts": mark("> "),
    "automations/one.ts": says("one", "v1"),
  });
}

/** Waits for `line` in what is printed from now on. */
async function next(dev: RunningFleet, line: string): Promise<void> {
  const from = dev.stdout().length;
  await dev.until(() => dev.stdout().slice(from).includes(line));
}

test("a save runs the new code, also of an imported file and of one replaced by rename", async () => {
  const cwd = project();
  const dev = startFleet(["dev"], { cwd });
  await next(dev, "> one v1 0");

  writeInto(cwd, "automations/one.ts", says("one", "v2"));
  await next(dev, "> one v2 0");
  expect(dev.stderr()).toMatch(/reloaded one in \d+ ms/);

  writeInto(cwd, "mark.ts", mark("# "));
  await next(dev, "# one v2 0");

  // As many editors save.
  writeInto(cwd, "one.tmp", says("one", "v3"));
  renameSync(join(cwd, "one.tmp"), join(cwd, "automations/one.ts"));
  await next(dev, "# one v3 0");
  writeInto(cwd, "automations/one.ts", says("one", "v4"));
  await next(dev, "# one v4 0");

  dev.signal("SIGINT");
  expect(await dev.ended).toBe(0);
});

test("a broken save shows the code frame, and the old version keeps running", async () => {
  const cwd = project();
  const dev = startFleet(["dev"], { cwd });
  await next(dev, "one v1");

  writeInto(cwd, "automations/one.ts", "const x = = 1;");
  await dev.until(() => dev.stderr().includes("automations/one.ts:1:10"));
  expect(dev.stderr()).toContain("const x = = 1;");
  expect(dev.stderr()).toContain("the last good version keeps running");
  await next(dev, "one v1");

  writeInto(cwd, "automations/one.ts", "throw new Error('broken at load');");
  await dev.until(() => dev.stderr().includes("broken at load"));
  await next(dev, "one v1");

  writeInto(cwd, "automations/one.ts", says("one", "v2"));
  await next(dev, "one v2");
});

test("new files and changes of the config are taken up", async () => {
  const cwd = project();
  const dev = startFleet(["dev"], { cwd });
  await next(dev, "one v1 0");
  expect(dev.stdout()).not.toContain("one v1 1");

  writeInto(cwd, "fleet.config.ts", config(2));
  await next(dev, "one v1 1");
  expect(dev.stderr()).toContain("reloaded deploy");

  writeInto(cwd, "automations/two.ts", says("two", "v1"));
  await dev.until(() => dev.stderr().includes("reloaded two"));
  writeInto(
    cwd,
    "fleet.config.ts",
    config(2).replace("one: { slots: 2 }", "one: { slots: 2 }, two: { slots: 1 }"),
  );
  await next(dev, "two v1 0");
});

test("a project that is broken at first: the code frame is shown, and it starts once that is mended", async () => {
  const cwd = project();
  writeInto(cwd, "automations/one.ts", "const x = = 1;");
  const dev = startFleet(["dev"], { cwd });
  await dev.until(() => dev.stderr().includes("waiting for a change"));
  expect(dev.stderr()).toContain("automations/one.ts:1:10");
  expect(dev.stderr()).toContain("const x = = 1;");

  writeInto(cwd, "automations/one.ts", "throw new Error('broken at load');");
  await dev.until(() => dev.stderr().includes("broken at load"));
  writeInto(cwd, "automations/one.ts", says("one", "v1"));
  await next(dev, "> one v1 0");

  // From here on as ever.
  writeInto(cwd, "automations/one.ts", says("one", "v2"));
  await next(dev, "> one v2 0");
  dev.signal("SIGINT");
  expect(await dev.ended).toBe(0);
});

test("a signal ends the wait for a first version: exit 0; a mistake in the arguments is not waited for: exit 2", async () => {
  const cwd = project();
  const wrong = startFleet(["dev", "--only", "two"], { cwd });
  expect(await wrong.ended).toBe(2);

  writeInto(cwd, "fleet.config.ts", "export default {");
  const dev = startFleet(["dev"], { cwd });
  await dev.until(() => dev.stderr().includes("waiting for a change"));
  dev.signal("SIGTERM");
  expect(await dev.ended).toBe(0);
});
