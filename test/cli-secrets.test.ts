// Field case 38: a password in a store's address shows up nowhere.
import { expect, onTestFinished, test, vi } from "vitest";
import { makeProject, runFleet, type RunResult, writeInto } from "./support/cli.ts";
import { freePort, startRedis } from "./support/redis.ts";

// Each test starts several processes: where two cores are shared, that takes its time.
vi.setConfig({ testTimeout: 90_000 });

const SECRET = "S3CRET-x";
const AUTOMATION = `
import { defineContinuous } from "fleet-framework";
export default defineContinuous("a", { async runSlot(ctx) { await ctx.sleep(1); } });
`;

function expectHidden({ stdout, stderr }: RunResult): void {
  expect(stdout + stderr).not.toContain(SECRET);
  expect(stderr).not.toBe("");
}

test("a wrong password: exit 4, and it is not printed", async () => {
  const redis = await startRedis({ password: "right" });
  onTestFinished(() => redis.stop());
  const url = `redis://:${SECRET}@127.0.0.1:${redis.port}`;
  const cwd = makeProject({ "a.ts": AUTOMATION });
  const byFlag = ["--store", url];
  const byEnv = { FLEET_STORE: url };
  const results = await Promise.all([
    runFleet(["up", "a.ts", ...byFlag], { cwd }),
    runFleet(["worker", "a.ts", "--json"], { cwd, env: byEnv }),
    runFleet(["status", ...byFlag], { cwd }),
    runFleet(["stream", "ls", "--json"], { cwd, env: byEnv }),
    runFleet(["wipe", "--yes", ...byFlag], { cwd }),
  ]);
  writeInto(
    cwd,
    "fleet.config.ts",
    `import { defineConfig } from "fleet-framework"; export default defineConfig({ automations: ["a.ts"], store: ${JSON.stringify(url)} });`,
  );
  results.push(await runFleet(["up"], { cwd }), await runFleet(["status"], { cwd }));
  for (const result of results) {
    expect(result.code).toBe(4);
    expectHidden(result);
  }
});

test("a store that is away, and addresses that are broken", async () => {
  const cwd = makeProject();
  const port = await freePort();
  const expected: [string, number][] = [
    [`redis://:${SECRET}@127.0.0.1:${port}`, 3],
    [`redis://user:${SECRET}@127.0.0.1:port`, 2],
    [`redis:/:${SECRET}@127.0.0.1`, 2],
    [`http://:${SECRET}@127.0.0.1`, 2],
    [`rediss://:${SECRET}@[::1`, 2],
  ];
  const results = await Promise.all(expected.map(([url]) => runFleet(["status", "--store", url], { cwd })));
  for (const [i, result] of results.entries()) {
    expect(result.code).toBe(expected[i]?.[1]);
    expectHidden(result);
  }
});
