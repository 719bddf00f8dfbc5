// Usage errors, exit codes and forms of output of the command as a whole.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { VERSION } from "../src/protocol/version.ts";
import { makeProject, runFleet } from "./support/cli.ts";
import { freePort } from "./support/redis.ts";

// Each test starts several processes: where two cores are shared, that takes its time.
vi.setConfig({ testTimeout: 90_000 });

test("version and help go to stdout and succeed", async () => {
  const cwd = makeProject();
  expect(await runFleet(["--version"], { cwd })).toEqual({ code: 0, stdout: `${VERSION}\n`, stderr: "" });
  const help = await runFleet(["--help"], { cwd });
  expect(help).toMatchObject({ code: 0, stderr: "" });
  expect(help.stdout).toContain("Examples:");
  expect((await runFleet(["stream", "--help"], { cwd })).stdout).toContain("fleet stream tail");
});

test.each([
  [[], "Usage: fleet"],
  [["stauts"], "Did you mean status?"],
  [["up", "--capasity", "3"], "Did you mean --capacity?"],
  [["worker", "--port", "80"], "unknown option '--port'"],
  [["up", "--port", "eighty"], "whole number from 0 to 65535"],
  [["up", "--capacity", "many"], "whole number"],
  [["up", "--log-level", "loud"], "Allowed choices"],
  [["worker", "--labels", "x"], "pairs"],
  [["stream", "peek"], "missing required argument 'name'"],
  [["stream", "peek", "x", "-n", "0"], "whole number"],
  [["stream", "peek", "Not/A:Name", "--store", "sqlite:x.db"], "not a valid name"],
  [["status", "--store", "mysql://h"], "accepted forms"],
  [["status", "--store", "sqlite::memory:"], "use a file"],
  [["status", "--namespace", "A B"], "namespace"],
  [["scale", "a"], "missing required argument 'count'"],
  [["scale", "a", "10001"], "whole number from 0 to 10000"],
  [["scale", "a", "-1"], "whole number from 0 to 10000"],
  [["scale", "a", "many"], "whole number"],
  [["pause", "Not/A:Name", "--store", "sqlite:x.db"], "not a valid name"],
  [["recycle", "a", "--slot", "first"], "whole number"],
  [["resume", "a", "--wait", "long"], "number of seconds"],
  [["worker", "--via-master"], "--via-master goes with --join"],
  [["up"], "write a fleet.config.ts"],
  [["dev"], "write a fleet.config.ts"],
])("fleet %j is refused with 2 and says why", async (args, message) => {
  const cwd = makeProject();
  const result = await runFleet(args, { cwd });
  expect(result).toMatchObject({ code: 2, stdout: "" });
  expect(result.stderr).toContain(message);
});

test("with --json an error is one object", async () => {
  const cwd = makeProject();
  for (const [args, code] of [
    [["status", "--json"], "FLEET_STORE_UNAVAILABLE"],
    [["stauts", "--json"], "FLEET_USAGE"],
  ] as const) {
    const { stderr } = await runFleet(args, { cwd });
    expect(JSON.parse(stderr)).toMatchObject({ code });
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  }
});

test("a SQLite file that is not there: exit 3, and it is not made", async () => {
  const cwd = makeProject();
  for (const args of [
    ["status"],
    ["stream", "ls"],
    ["stream", "pop", "x"],
    ["wipe", "--yes"],
    ["scale", "x", "2"],
  ]) {
    const result = await runFleet(args, { cwd });
    expect(result).toMatchObject({ code: 3, stdout: "" });
    expect(result.stderr).toContain("does not exist");
  }
  expect(existsSync(join(cwd, ".fleet"))).toBe(false);
});

test("a Redis that is not there: exit 3", async () => {
  const cwd = makeProject();
  const result = await runFleet(["status", "--store", `redis://127.0.0.1:${await freePort()}`], { cwd });
  expect(result).toMatchObject({ code: 3, stdout: "" });
});

test("a project that does not compile: exit 2, with the code frame", async () => {
  const cwd = makeProject({ "a.ts": "export default {\n  b: = 2,\n};" });
  const result = await runFleet(["up", "a.ts"], { cwd });
  expect(result).toMatchObject({ code: 2, stdout: "" });
  expect(result.stderr).toContain("a.ts:2:5");
  expect(result.stderr).toContain("b: = 2");
});
