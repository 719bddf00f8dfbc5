// Short (`npm test`): how a worker ends, and what user code can see of Fleet's own secrets. Real processes.
import { readFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { fleetOn } from "../src/automation/fleet.ts";
import { SILENT } from "../src/internal/log.ts";
import { healFleet, measured, ms, starts } from "./support/heal-fleet.ts";
import { TICKER, TICKS } from "./support/heal-ticker.ts";
import { PLACES, type Place } from "./support/places.ts";
import { descendants, isAlive } from "./support/processes.ts";
import { type RedisServer, startRedis } from "./support/redis.ts";

const SQLITE = PLACES[0] as Place;
const onServer = ({ url }: RedisServer): Place => ({
  name: "Redis",
  at: () => ({ url, namespace: "drain", flags: ["--store", url, "--namespace", "drain"] }),
});

test("SIGTERM drains: what was emitted is in the stream, the exit code is 0, and nothing is left", async () => {
  const fleet = await healFleet(SQLITE, {
    ...TICKER,
    "ticker.ts": TICKER["ticker.ts"].replace(
      `note(ctx, "stop"`,
      // Left to itself on purpose: accepted, so it must be written before the process ends.
      `for (let n = 0; n < 200; n++) void ctx.emit({ run, slot: ctx.slotId, worker: "last words", turn: n });
       note(ctx, "stop"`,
    ),
  });
  const worker = fleet.worker("w");
  for (const slot of SLOTS) await fleet.untilLine(starts(slot));
  const below = descendants(worker.pid);
  const at = performance.now();
  worker.signal("SIGTERM");
  expect(await worker.ended).toBe(0);
  measured("SIGTERM to exit", ms(performance.now() - at));
  expect(below.filter(isAlive)).toEqual([]);
  const entries = await fleetOn(fleet.store, { log: SILENT }).stream(TICKS).peek({ n: 10_000 });
  expect(entries.filter((entry) => entry.worker === "last words")).toHaveLength(4 * 200);
  expect(entries.length - 800).toBe(fleet.lines("ticker", "emitted").length);
  expect(fleet.lines("ticker", "stop").map((line) => line["reason"])).toEqual(Array(4).fill("drain"));
  expect((await fleet.store.registry.view()).leases).toEqual([]);
}, 60_000);

test("a second signal ends a drain at once, with exit code 5; so does the deadline", async () => {
  const fleet = await healFleet(SQLITE, {
    "stubborn.ts": `
      import { spawn } from "node:child_process";
      import { defineContinuous } from "fleet-framework";
      import { note } from "./tools.ts";
      export default defineContinuous("stubborn", {
        async runSlot(ctx) {
          const free = spawn("sleep", ["300"], { stdio: "ignore", detached: true });
          note(ctx, "start", { planted: free.pid });
          ctx.signal.addEventListener("abort", () => note(ctx, "told"));
          await new Promise(() => setInterval(() => undefined, 1000));
        },
      });`,
  });
  let since = 0;
  for (const [what, args] of [
    ["second signal", []],
    ["deadline of 1 s", ["--drain-seconds", "1"]],
  ] as const) {
    const worker = fleet.worker("w", { args: ["stubborn.ts", ...args] });
    const run = await fleet.untilLine(starts("stubborn/0"), since);
    worker.signal("SIGTERM");
    const at = performance.now();
    await fleet.untilLine(({ what: did }) => did === "told", since);
    since = fleet.ledger().length;
    if (args.length === 0) {
      await new Promise((resolve) => setTimeout(resolve, 500));
      worker.signal("SIGTERM");
    }
    expect(await worker.ended).toBe(5);
    const took = performance.now() - at;
    measured(`exit of a stubborn slot's worker, ${what}`, ms(took));
    expect(took).toBeLessThan(5000);
    await vi.waitFor(() => expect([run.pid, run["planted"] as number].filter(isAlive)).toEqual([]), {
      timeout: 5000,
    });
  }
}, 60_000);

test.each([
  ["stopped", (server: RedisServer) => server.kill("SIGSTOP")],
  ["killed", (server: RedisServer) => server.kill("SIGKILL")],
])(
  "SIGTERM with a Redis that was %s: the worker ends within its grace and 2 s, and leaves no process",
  async (what, break_) => {
    const server = await startRedis();
    try {
      const fleet = await healFleet(onServer(server), TICKER);
      const worker = fleet.worker("w", { args: ["--drain-seconds", "3"] });
      for (const slot of SLOTS) await fleet.untilLine(starts(slot));
      const below = descendants(worker.pid);
      await break_(server);
      // Each slot hangs in its emit, or has failed in it.
      await vi.waitFor(() => {
        const last = SLOTS.map((slot) => fleet.lines(slot).at(-1)?.what);
        expect(last).not.toContain("emitted");
      });
      const since = fleet.ledger().length;
      const at = performance.now();
      worker.signal("SIGTERM");
      const code = await worker.ended;
      const took = performance.now() - at;
      measured(`SIGTERM with Redis ${what}: exit code ${code} after`, ms(took));
      // Grace and 2 s, and a second for a machine that has much to do.
      expect(took).toBeLessThan(3000 + 2000 + 1000);
      expect([0, 5]).toContain(code);
      expect(
        fleet
          .ledger()
          .slice(since)
          .filter(({ what: did }) => did === "emitted"),
      ).toEqual([]);
      await vi.waitFor(() => expect(below.filter(isAlive)).toEqual([]), { timeout: 2000 });
    } finally {
      await server.stop();
    }
  },
  60_000,
);

test("with a store that was never there, the command ends with exit code 3", async () => {
  const server = await startRedis();
  const url = server.url;
  await server.stop();
  const fleet = await healFleet(SQLITE, TICKER);
  const at = performance.now();
  const worker = fleet.worker("w", { args: ["--store", url] });
  expect(await worker.ended).toBe(3);
  measured("exit with a store that was never there", ms(performance.now() - at));
}, 60_000);

test("user code sees no store address, token or password, neither in its environment nor in any process's arguments", async () => {
  const server = await startRedis({ password: "S3CRET-x" });
  try {
    const place = {
      name: "Redis",
      at: () => ({ ...onServer(server).at(""), flags: ["--namespace", "drain"] }),
    };
    const fleet = await healFleet(place, {
      "curious.ts": `
        import { defineContinuous } from "fleet-framework";
        import { note } from "./tools.ts";
        export default defineContinuous("curious", {
          async runSlot(ctx) {
            note(ctx, "start", { env: process.env, argv: [...process.argv, ...process.execArgv] });
            await ctx.sleep(600);
          },
        });`,
    });
    const worker = fleet.worker("w", {
      args: ["curious.ts"],
      env: { FLEET_STORE: server.url, FLEET_TOKEN: "S3CRET-x-token", API_KEY: "its own" },
    });
    const run = await fleet.untilLine(starts("curious/0"));
    expect((run["env"] as Record<string, string>)["API_KEY"]).toBe("its own");
    expect(
      Object.keys(run["env"] as object).filter((name) => /FLEET_(STORE|TOKEN|MASTER)/.test(name)),
    ).toEqual([]);
    expect(JSON.stringify([run["env"], run["argv"]])).not.toContain("S3CRET");
    // As other users of the machine would see it, and what its child and the reaper inherit.
    const below = descendants(worker.pid);
    expect(below).toContain(run.pid);
    for (const pid of below) {
      expect(readFileSync(`/proc/${pid}/cmdline`, "utf8")).not.toContain("S3CRET");
      expect(readFileSync(`/proc/${pid}/environ`, "utf8")).not.toContain("S3CRET");
    }
    expect(worker.stdout() + worker.stderr()).not.toContain("S3CRET");
    worker.signal("SIGTERM");
    expect(await worker.ended).toBe(0);
  } finally {
    await server.stop();
  }
}, 60_000);

const SLOTS = ["ticker/0", "ticker/1", "ticker/2", "ticker/3"];
