// Short (`npm test`): where a master of the command line listens, and its token. Needs dist/ (`npm run build`).
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { makeProject, runFleet, startFleet, type RunningFleet } from "./support/cli.ts";
import { freshNamespace } from "./support/stores.ts";

const IDLE = `
  import { defineContinuous } from "fleet-framework";
  export default defineContinuous("idle", {
    async runSlot(ctx) { for await (const _ of ctx.loop({ everySeconds: 0.2 })); },
  });`;
const project = () =>
  makeProject({ "fleet.config.ts": `export default { automations: ["./a.ts"] };`, "a.ts": IDLE });

const urlOf = (fleet: RunningFleet) => /master at (http:\S+)/.exec(fleet.stderr())?.[1] ?? "";
const listening = (text: string) => text.includes("master at http:");

/** An address of this machine that no other test uses; only Linux has them all without being told. */
const ownAddress = () => `127.${randomInt(1, 255)}.${randomInt(1, 255)}.${randomInt(1, 255)}`;

async function taken(port: number, host: string): Promise<number> {
  const server = createServer().listen(port, host);
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as { port: number }).port;
}

async function end(fleet: RunningFleet): Promise<void> {
  fleet.signal("SIGTERM");
  expect(await fleet.ended).toBe(0);
}

describe("the admin token", () => {
  it(
    "is made at the first start, kept for its owner alone, and told to nobody",
    { timeout: 40_000 },
    async () => {
      const cwd = project();
      const first = startFleet(["master", "--port", "0", "--log-level", "debug"], { cwd });
      await first.until(listening);
      const file = join(cwd, ".fleet", "token");
      const token = readFileSync(file, "utf8").trim();
      expect(token.length).toBeGreaterThan(40);
      const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
      expect([modeOf(file), modeOf(join(cwd, ".fleet"))]).toEqual(["600", "700"]);
      expect(first.stderr()).toContain(`token_file=${file} token_made=now`);
      const ask = (fleet: RunningFleet, given: string) =>
        fetch(`${urlOf(fleet)}/api/v1/fleet`, { headers: { authorization: `Bearer ${given}` } });
      expect((await ask(first, token)).status).toBe(200);
      expect((await ask(first, "wrong-wrong-wrong-wrong")).status).toBe(401);
      await end(first);
      expect(first.stdout() + first.stderr()).not.toContain(token);

      const same = startFleet(["master", "--port", "0"], { cwd });
      await same.until(listening);
      expect((await ask(same, token)).status).toBe(200);
      expect(same.stderr()).not.toContain("token_made");
      expect(same.stderr()).not.toContain("chmod");
      await end(same);

      chmodSync(file, 0o644);
      const exposed = startFleet(["master", "--port", "0"], { cwd });
      await exposed.until(listening);
      expect((await ask(exposed, token)).status).toBe(200);
      expect(exposed.stderr()).toContain(`chmod 600 ${file}`);
      await end(exposed);

      const again = startFleet(["master", "--port", "0"], {
        cwd,
        env: { FLEET_TOKEN: "one-of-my-own-choice" },
      });
      await again.until(listening);
      expect((await ask(again, "one-of-my-own-choice")).status).toBe(200);
      expect((await ask(again, token)).status).toBe(401);
      expect(again.stderr()).not.toContain("one-of-my-own-choice");
      await end(again);
      expect(readFileSync(file, "utf8").trim()).toBe(token);
    },
  );

  it(
    "has to be chosen before others can reach the master, and to be long enough",
    { timeout: 40_000 },
    async () => {
      const cwd = project();
      const [open, short] = await Promise.all([
        runFleet(["master", "--host", "0.0.0.0", "--port", "0"], { cwd }),
        runFleet(["master", "--port", "0"], { cwd, env: { FLEET_TOKEN: "too-short-1" } }),
      ]);
      // Also where one was made for this machine alone.
      mkdirSync(join(cwd, ".fleet"), { recursive: true });
      writeFileSync(join(cwd, ".fleet", "token"), `flt_${"a".repeat(43)}\n`, { mode: 0o600 });
      const kept = await runFleet(["master", "--host", "0.0.0.0", "--port", "0"], { cwd });
      expect([kept.code, kept.stderr]).toEqual([open.code, open.stderr]);
      expect(open.code).toBe(2);
      expect(open.stderr).toContain(
        "--host 0.0.0.0: a master that others can reach needs a token of your choice",
      );
      expect(open.stderr).toContain("set FLEET_TOKEN");
      expect(short.code).toBe(2);
      expect(short.stderr).toContain("FLEET_TOKEN must be a token of 16 to 512 printable characters");
      expect(short.stderr).not.toContain("too-short-1");
    },
  );
});

describe("the port", () => {
  it("that somebody chose and that is taken is an error, for each command", { timeout: 40_000 }, async () => {
    const cwd = project();
    const port = await taken(0, "127.0.0.1");
    const runs = await Promise.all([
      // On a server: a connection that is left open would keep the command from ending.
      runFleet(
        ["up", "--port", String(port), "--store", inject("redisUrl"), "--namespace", freshNamespace()],
        {
          cwd,
        },
      ),
      runFleet(["master"], { cwd, env: { FLEET_PORT: String(port) } }),
      runFleet(["master"], { cwd, env: { FLEET_PORT: "none" } }),
      runFleet(["up", "--port", "65536"], { cwd }),
      runFleet(["master", "--port", "0", "--worker-store", "postgres://u:S3CRET@h"], { cwd }),
    ]);
    expect(runs.map(({ code }) => code)).toEqual([2, 2, 2, 2, 2]);
    for (const { stderr } of runs.slice(0, 2))
      expect(stderr).toContain(
        `cannot listen on 127.0.0.1:${port}: something listens there already; choose another --port (FLEET_PORT)`,
      );
    expect(runs[2]?.stderr).toContain('FLEET_PORT must be a port from 0 to 65535, got "none"');
    expect(runs[3]?.stderr).toContain("It must be a whole number from 0 to 65535.");
    expect(runs[4]?.stderr).toMatch(/--worker-store is "postgres:.*it must be a Redis address/);
    expect(runs[4]?.stderr).not.toContain("S3CRET");
  });

  it.runIf(process.platform === "linux")(
    "that nobody chose and that is taken is given up by up with a warning, and refused by master",
    { timeout: 40_000 },
    async () => {
      const cwd = project();
      const host = ownAddress();
      await taken(4400, host);
      const refused = await runFleet(["master", "--host", host], { cwd });
      expect(refused.code).toBe(2);
      expect(refused.stderr).toContain(`cannot listen on ${host}:4400`);
      const up = startFleet(["up", "--host", host], { cwd });
      await up.until((text) => text.includes("running idle"));
      expect(up.stderr()).toContain("port 4400 is taken; the master listens on a free one");
      expect(new URL(urlOf(up)).port).not.toBe("4400");
      expect((await fetch(`${urlOf(up)}/healthz`)).status).toBe(200);
      await end(up);
    },
  );
});
