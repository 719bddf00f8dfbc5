// `fleet up` and `fleet worker`: what they print, how signals end them, and that nothing stays behind.
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { makeProject, runFleet, startFleet } from "./support/cli.ts";

// Each test starts several processes: where two cores are shared, that takes its time.
vi.setConfig({ testTimeout: 90_000 });

const automation = (name: string, body: string) => `
import { defineContinuous } from "fleet-framework";
export default defineContinuous("${name}", { async runSlot(ctx) { ${body} } });
`;
const CONFIG = (name: string) => `
import { defineConfig } from "fleet-framework";
export default defineConfig({ automations: ["./a.ts"], deploy: { ${name}: { slots: 1 } } });
`;
const POLITE = `console.log("pid", process.pid); while (!ctx.signal.aborted) await ctx.sleep(0.1);`;
const STUBBORN = `console.log("pid", process.pid); setInterval(() => {}, 1000); await new Promise(() => {});`;

const pidIn = (text: string) => Number(/pid (\d+)/.exec(text)?.[1]);
const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};
const untilGone = (pid: number) => vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: 10_000 });

test("up makes its store, says what runs, and a signal drains it", async () => {
  const cwd = makeProject({ "fleet.config.ts": CONFIG("polite"), "a.ts": automation("polite", POLITE) });
  const up = startFleet(["up", "--labels", "region=eu", "--capacity", "3"], { cwd });
  await up.until((text) => text.includes("pid "));
  expect(up.stdout()).toMatch(/^pid \d+\n$/);
  expect(up.stderr()).toMatch(/info {2}running polite on sqlite:\.fleet\/fleet\.db as worker \S+\n/);
  expect(existsSync(join(cwd, ".fleet/fleet.db"))).toBe(true);
  expect(readFileSync(join(cwd, ".fleet/.gitignore"), "utf8")).toBe("*\n");
  expect((statSync(join(cwd, ".fleet")).mode & 0o777).toString(8)).toBe("700");

  await vi.waitFor(
    async () => {
      const { stdout } = await runFleet(["status", "--json"], { cwd });
      expect(JSON.parse(stdout)).toMatchObject({
        workers: [{ state: "online", capacity: 3, labels: { region: "eu" }, automations: ["polite"] }],
        automations: [
          { name: "polite", slots: 1, running: 1, slot_list: [{ state: "running", reason: null }] },
        ],
      });
    },
    { timeout: 20_000, interval: 200 },
  );

  up.signal("SIGTERM");
  expect(await up.ended).toBe(0);
  expect(up.stderr()).toContain("SIGTERM: draining");
  await untilGone(pidIn(up.stdout()));
  expect(JSON.parse((await runFleet(["status", "--json"], { cwd })).stdout)).toMatchObject({
    workers: [{ state: "offline" }],
    automations: [
      { slot_list: [{ state: "waiting", reason: expect.stringContaining("no worker is online") }] },
    ],
  });
});

test("with --json every log line is JSON", async () => {
  const cwd = makeProject({ "a.ts": automation("polite", POLITE), "fleet.config.ts": CONFIG("polite") });
  const worker = startFleet(["worker", "--json", "--id", "my-worker"], { cwd });
  await worker.until((text) => text.includes("pid "));
  worker.signal("SIGINT");
  expect(await worker.ended).toBe(0);
  const lines = worker.stderr().trimEnd().split("\n");
  const logged = lines.map((line) => JSON.parse(line) as { level: string; msg: string });
  expect(logged[0]).toMatchObject({ level: "info", msg: expect.stringContaining("as worker my-worker") });
});

test("a slot that does not end is killed at the deadline: exit 5", async () => {
  const cwd = makeProject({
    "a.ts": automation("stubborn", STUBBORN),
    "fleet.config.ts": CONFIG("stubborn"),
  });
  const up = startFleet(["up", "--drain-seconds", "0.5"], { cwd });
  await up.until((text) => text.includes("pid "));
  up.signal("SIGTERM");
  expect(await up.ended).toBe(5);
  await untilGone(pidIn(up.stdout()));
});

test("a second signal forces the end at once: exit 5", async () => {
  const cwd = makeProject({
    "a.ts": automation("stubborn", STUBBORN),
    "fleet.config.ts": CONFIG("stubborn"),
  });
  const up = startFleet(["up", "--drain-seconds", "60"], { cwd });
  await up.until((text) => text.includes("pid "));
  up.signal("SIGINT");
  await up.until((text) => text.includes("draining"));
  // One that follows at once counts as an echo of the first, so this says it until it is heard.
  const again = setInterval(() => up.signal("SIGINT"), 100);
  expect(await up.ended.finally(() => clearInterval(again))).toBe(5);
  expect(up.stderr()).toContain("forced to end");
  await untilGone(pidIn(up.stdout()));
});

test("an --id that is in use is refused: exit 1", async () => {
  const cwd = makeProject({ "a.ts": automation("polite", POLITE), "fleet.config.ts": CONFIG("polite") });
  const first = startFleet(["up", "--id", "one"], { cwd });
  await first.until((text) => text.includes("as worker one"));
  const second = await runFleet(["up", "--id", "one"], { cwd });
  expect(second.code).toBe(1);
  expect(second.stderr).toContain('bears the id "one" already');
  first.signal("SIGTERM");
  expect(await first.ended).toBe(0);
});

test("the process that reads a module dies with its parent, even when the module never lets go", async () => {
  const cwd = makeProject({
    "a.ts": `import { writeFileSync } from "node:fs"; writeFileSync("pid.txt", "pid " + process.pid); for (;;) {}`,
  });
  const up = startFleet(["up", "a.ts"], { cwd });
  const pid = await vi.waitFor(
    () => {
      const found = pidIn(readFileSync(join(cwd, "pid.txt"), "utf8"));
      expect(found).toBeGreaterThan(0);
      return found;
    },
    { timeout: 20_000 },
  );
  expect(isAlive(pid)).toBe(true);
  up.signal("SIGKILL");
  await up.ended;
  await untilGone(pid);
});
