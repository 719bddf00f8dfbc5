// Short (`npm test`): SIGTERM for a master, and for a worker that has joined one, when what they work on is away (field case 27).
import { expect, inject, onTestFailed, test, vi } from "vitest";
import { makeProject, type RunningFleet, startFleet } from "./support/cli.ts";
import { freePort, type RedisServer, startRedis } from "./support/redis.ts";
import { freshNamespace } from "./support/stores.ts";

vi.setConfig({ testTimeout: 90_000 });

const TOKEN = "a-token-for-those-that-end";
/** docs/operations.md: grace + 2 s; and one more for a machine that has much to do. */
const MORE_MS = 3000;

const FILES = {
  "ticker.ts": `
    import { defineContinuous } from "fleet-framework";
    import { z } from "zod";
    export default defineContinuous("ticker", {
      output: z.object({}),
      async runSlot(ctx) { for await (const _ of ctx.loop({ everySeconds: 0.1 })) await ctx.emit({}); },
    });`,
  "fleet.config.ts": `export default { automations: ["./ticker.ts"], deploy: { ticker: { slots: 2 } } };`,
};

async function startMaster(cwd: string, store: string, more: readonly string[] = []) {
  const port = String(await freePort());
  const master = startFleet(["master", "--port", port, "--store", store, ...more], {
    cwd,
    env: { FLEET_TOKEN: TOKEN },
  });
  onTestFailed(() => console.log(`master:\n${master.stderr()}`));
  await master.until((text) => text.includes("master at"));
  return { master, url: `http://127.0.0.1:${port}` };
}

async function endsWithin(process: RunningFleet, graceMs: number): Promise<number | null> {
  const at = performance.now();
  process.signal("SIGTERM");
  const code = await process.ended;
  expect(performance.now() - at).toBeLessThan(graceMs + MORE_MS);
  return code;
}

const gone: [string, (server: RedisServer) => Promise<void>][] = [
  ["stands still", (server) => server.kill("SIGSTOP")],
  ["was killed", (server) => server.kill("SIGKILL")],
];

test.each(gone)("a master ends with code 0 when its Redis %s", async (_, break_) => {
  const server = await startRedis();
  try {
    const { master, url } = await startMaster(makeProject(), server.url);
    const headers = { authorization: `Bearer ${TOKEN}` };
    expect((await fetch(`${url}/readyz`, { headers })).status).toBe(200);
    await break_(server);
    // One that is waited for all the while must not keep it.
    const asked = fetch(`${url}/api/v1/automations`, { headers }).catch(() => undefined);
    expect((await fetch(`${url}/readyz`, { headers })).status).toBe(503);
    expect(await endsWithin(master, 0)).toBe(0);
    await asked;
  } finally {
    await server.stop();
  }
});

test("a master whose store was never there ends with code 3, and says why", async () => {
  const nobody = `redis://127.0.0.1:${await freePort()}`;
  const master = startFleet(["master", "--port", "0", "--store", nobody], { cwd: makeProject() });
  expect(await master.ended).toBe(3);
  expect(master.stderr()).toContain("no connection to");
});

test.each<[string, NodeJS.Signals]>([
  ["stands still", "SIGSTOP"],
  ["was killed", "SIGKILL"],
])("a worker that has joined ends within its grace when its master %s", async (_, signal) => {
  const cwd = makeProject(FILES);
  const { master, url } = await startMaster(cwd, "sqlite:fleet.db");
  const worker = startFleet(["worker", "--join", url, "--drain-seconds", "3"], {
    cwd,
    env: { FLEET_TOKEN: TOKEN },
  });
  onTestFailed(() => console.log(`worker:\n${worker.stderr()}`));
  await worker.until((text) => text.includes("running ticker"));
  const headers = { authorization: `Bearer ${TOKEN}` };
  const running = async () => (await fetch(`${url}/api/v1/automations/ticker`, { headers })).text();
  await vi.waitFor(async () => expect(await running()).toMatch(/"running":\s*2/), {
    timeout: 20_000,
    interval: 100,
  });
  master.signal(signal);
  if (signal === "SIGKILL") await worker.until((text) => text.includes("lost the link"));
  expect([0, 5]).toContain(await endsWithin(worker, 3000));
  master.signal("SIGKILL");
  await master.ended;
});

test("a worker whose master was never there ends with code 3; one with a wrong token with 4; one of another namespace is refused", async () => {
  const cwd = makeProject(FILES);
  const nobody = `http://127.0.0.1:${await freePort()}`;
  for (const more of [[], ["--via-master"]]) {
    const worker = startFleet(["worker", "--join", nobody, ...more], { cwd, env: { FLEET_TOKEN: TOKEN } });
    expect(await worker.ended).toBe(3);
  }
  const { master, url } = await startMaster(cwd, "sqlite:fleet.db");
  for (const more of [[], ["--via-master"]]) {
    const worker = startFleet(["worker", "--join", url, ...more], {
      cwd,
      env: { FLEET_TOKEN: "a-token-that-is-not-its-own" },
    });
    expect(await worker.ended).toBe(4);
    expect(worker.stderr()).not.toContain("a-token-that-is-not-its-own");
  }
  for (const more of [[], ["--via-master"]]) {
    const args = ["worker", "--join", url, "--namespace", "staging", ...more];
    const worker = startFleet(args, { cwd, env: { FLEET_TOKEN: TOKEN } });
    expect(await worker.ended).not.toBe(0);
    expect(worker.stderr()).toContain('the master serves no namespace, not "staging"');
  }
  expect(await endsWithin(master, 0)).toBe(0);
});

test("a worker that would get its store's address from a master of another namespace is refused, too", async () => {
  const cwd = makeProject(FILES);
  const redis = inject("redisUrl");
  const namespace = freshNamespace();
  const { master, url } = await startMaster(cwd, redis, ["--namespace", namespace, "--worker-store", redis]);
  const worker = startFleet(["worker", "--join", url, "--namespace", "staging"], {
    cwd,
    env: { FLEET_TOKEN: TOKEN },
  });
  expect(await worker.ended).not.toBe(0);
  expect(worker.stderr()).toContain(`the master serves the namespace "${namespace}", not "staging"`);
  expect(await endsWithin(master, 0)).toBe(0);
});
