// Short (`npm test`): the README's tutorial, followed to the letter from its own code blocks. Needs dist/ (`npm run build`).
import { execFile } from "node:child_process";
import { existsSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createClient } from "@redis/client";
import { describe, expect, inject, it } from "vitest";
import {
  makeProject,
  PUBLISHED_ZOD,
  runFleet,
  startFleet,
  writeInto,
  type RunningFleet,
  type RunResult,
} from "./support/cli.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const README = readFileSync(join(ROOT, "README.md"), "utf8");
const { version: VERSION } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  version: string;
};

interface Block {
  language: string;
  lines: string[];
}
const blocks: Block[] = [...README.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(
  ([, language = "", text = ""]) => ({
    language,
    lines: text.trimEnd().split("\n"),
  }),
);

/** Files of the tutorial: blocks that begin with `// name`. */
const files = Object.fromEntries(
  blocks
    .filter(({ language }) => language === "ts" || language === "js")
    .map(({ lines }) => [/^\/\/ (\S+)$/.exec(lines[0] ?? "")?.[1] ?? "?", `${lines.join("\n")}\n`]),
);
const { "fleet.config.ts": config = "", ...sources } = files;

const commands = blocks.filter(({ language }) => language === "sh").flatMap(({ lines }) => lines);
const STORE = /--store (\S+)/;
const onSqlite = (name: string) =>
  commands.filter((line) => line.includes(name) && STORE.exec(line)?.[1] === "sqlite:fleet.db");
const onRedis = (name: string) =>
  commands.filter((line) => line.includes(name) && line.includes("redis://127.0.0.1:6379"));

/** The arguments of `npx fleet …`, with another Redis in place of the README's. */
function fleetArguments(command: string, redisUrl = ""): string[] {
  expect(command).toMatch(/^npx fleet /);
  return command.replace("redis://127.0.0.1:6379", redisUrl).split(" ").slice(2);
}
const start = (command: string, cwd: string, redisUrl?: string): RunningFleet =>
  startFleet(fleetArguments(command, redisUrl), { cwd });
const run = (command: string, cwd: string, redisUrl?: string): Promise<RunResult> =>
  runFleet(fleetArguments(command, redisUrl), { cwd });

const got = (count: number) => (text: string) => (text.match(/got \d+ of /g) ?? []).length >= count;
const SLOW = 60_000;

async function end(fleet: RunningFleet): Promise<void> {
  fleet.signal("SIGINT");
  expect(await fleet.ended).toBe(0);
}

describe("the README", () => {
  it("consists of blocks that these tests know", () => {
    expect(Object.keys(files)).toEqual(["producer.ts", "logger.ts", "fleet.config.ts", "read.js"]);
    expect(commands).toEqual([
      "npm install && npm run demo",
      "npm install && npm test",
      "npm install && npm pack",
      "mkdir hello-fleet && cd hello-fleet",
      "npm init -y && npm pkg set type=module",
      `npm install ../fleet/fleet-framework-${VERSION}.tgz zod`,
      "npm install -D typescript @types/node",
      "npx fleet up producer.ts logger.ts",
      ...onSqlite("worker"),
      ...onRedis("worker"),
      ...onRedis("stream"),
      ...onRedis("status"),
      "redis-cli ZRANGE stream:producer 0 0",
      "npx fleet up",
      "node read.js",
    ]);
    expect([onSqlite("worker").length, onRedis("worker").length, onRedis("stream").length]).toEqual([
      2, 2, 3,
    ]);
  });

  it("has a TypeScript set-up that takes its files, and finds a wrong one", { timeout: SLOW }, async () => {
    const tsconfig = blocks.find(({ language }) => language === "json")?.lines.join("\n") ?? "";
    const cwd = makeProject(
      { ...sources, "fleet.config.ts": config, "tsconfig.json": tsconfig },
      PUBLISHED_ZOD,
    );
    for (const name of ["@types", "typescript"])
      symlinkSync(join(ROOT, "node_modules", name), join(cwd, "node_modules", name));
    writeInto(cwd, "package.json", '{ "type": "module" }');
    const tsc = () =>
      promisify(execFile)(process.execPath, ["node_modules/typescript/bin/tsc"], { cwd }).then(
        ({ stdout }) => stdout,
        (error: unknown) => (error as { stdout: string }).stdout,
      );
    expect(await tsc()).toBe("");
    writeInto(cwd, "logger.ts", sources["logger.ts"]?.replace("reading.at", "reading.when") ?? "");
    expect(await tsc()).toMatch(/^logger\.ts\(\d+,\d+\): error TS2339/);
  });

  it("links only to files that are there", () => {
    const links = [...README.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, link = ""]) => link);
    expect(links.length).toBeGreaterThan(10);
    expect(links.filter((link) => !existsSync(join(ROOT, link)))).toEqual([]);
  });

  it("up: both in one worker, data flows, and it ends cleanly", { timeout: SLOW }, async () => {
    const cwd = makeProject(sources, PUBLISHED_ZOD);
    const up = start("npx fleet up producer.ts logger.ts", cwd);
    await up.until(got(3), SLOW);
    expect(up.stderr()).toMatch(/info +got 0 of .* automation=logger slot=0\n/);
    expect(existsSync(join(cwd, ".fleet", "fleet.db"))).toBe(true);
    await end(up);
  });

  it("worker twice, on one SQLite file", { timeout: SLOW }, async () => {
    const cwd = makeProject(sources, PUBLISHED_ZOD);
    const [producer = "", logger = ""] = onSqlite("worker");
    const both = [start(producer, cwd), start(logger, cwd)];
    await both[1]?.until(got(3), SLOW);
    expect(both[0]?.stderr()).not.toContain("got 0");
    await Promise.all(both.map(end));
  });

  it("worker twice, on one Redis; then a look inside", { timeout: SLOW * 2 }, async () => {
    // A database that no other test uses, so that the stream's key is exactly the README's.
    const redisUrl = `${inject("redisUrl")}/13`;
    const cwd = makeProject(sources, PUBLISHED_ZOD);
    const [producer = "", logger = ""] = onRedis("worker");
    const both = [start(producer, cwd, redisUrl), start(logger, cwd, redisUrl)] as const;
    await both[1].until(got(3), SLOW);
    await end(both[1]);
    const client = await createClient({ url: redisUrl }).connect();
    try {
      const [, ...zrange] = [
        "redis-cli",
        ...commands
          .find((line) => line.startsWith("redis-cli"))!
          .split(" ")
          .slice(1),
      ];
      await expect.poll(() => client.zCard("stream:producer"), { timeout: SLOW }).toBeGreaterThanOrEqual(3);
      const [raw = ""] = await client.sendCommand<string[]>(zrange);
      const envelope = JSON.parse(raw) as Record<string, unknown>;
      expect(Object.keys(envelope)).toEqual(["id", "slot_id", "ts", "payload"]);
      expect(envelope).toMatchObject({
        slot_id: 0,
        payload: { n: expect.any(Number) as number, at: expect.stringMatching(/Z$/) as string },
      });
      for (const look of [...onRedis("stream"), ...onRedis("status")]) {
        const { code, stdout, stderr } = await run(look, cwd, redisUrl);
        expect({ look, code, stderr }).toEqual({ look, code: 0, stderr: "" });
        expect(stdout).toMatch(
          look.includes("length") ? /^\d+\n$/ : look.includes("peek") ? /"payload":\{"n":/ : /producer/,
        );
      }
    } finally {
      client.destroy();
    }
    await end(both[0]);
  });

  it("up with a config file, then a script", { timeout: SLOW * 2 }, async () => {
    const cwd = makeProject({ ...sources, "fleet.config.ts": config }, PUBLISHED_ZOD);
    const up = start("npx fleet up", cwd);
    await up.until(got(4), SLOW);
    const { stdout } = await runFleet(["status", "--json"], { cwd });
    const status = JSON.parse(stdout) as { automations: { name: string; slots: number; running: number }[] };
    expect(status.automations).toContainEqual(
      expect.objectContaining({ name: "producer", slots: 2, running: 2 }),
    );
    await end(up);
    const script = await promisify(execFile)(process.execPath, ["read.js"], {
      cwd,
      env: { PATH: process.env.PATH },
    });
    expect(script.stdout).toContain("n: 1000");
  });

  it(
    "dev: loads a file that was saved, and keeps the old version when it does not compile",
    { timeout: SLOW * 2 },
    async () => {
      expect(README).toContain("`npx fleet dev producer.ts logger.ts`");
      const cwd = makeProject(sources, PUBLISHED_ZOD);
      const dev = start("npx fleet dev producer.ts logger.ts", cwd);
      await dev.until(got(2), SLOW);
      writeInto(cwd, "logger.ts", `${sources["logger.ts"]}\nthis is no code {`);
      await dev.until((text) => text.includes("the last good version keeps running"), SLOW);
      const before = (dev.stderr().match(/got \d+ of /g) ?? []).length;
      await dev.until(got(before + 2), SLOW);
      writeInto(cwd, "logger.ts", sources["logger.ts"]?.replace("got ", "has seen ") ?? "");
      await dev.until((text) => text.includes("has seen "), SLOW);
      await end(dev);
    },
  );
});
