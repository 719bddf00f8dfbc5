// Short (`npm test`): what workers do without the store, by each policy. Real worker processes, a real Redis that stands still.
import { expect, onTestFinished, test, vi } from "vitest";
import { openStore } from "../src/store/open.ts";
import { runFleet } from "./support/cli.ts";
import { healFleet, type Line } from "./support/heal-fleet.ts";
import type { Place } from "./support/places.ts";
import { descendants, isAlive } from "./support/processes.ts";
import { type RedisServer, startRedis } from "./support/redis.ts";

const LEASE_MS = 3000;
const EXIT_SECONDS = 4;
const TIMINGS = { leaseMs: LEASE_MS, stopGraceMs: 60_000 };

/** What it does reaches no store, so nothing can refuse it; and it does not stop when it is told to. */
const STUBBORN = `
  import { defineContinuous } from "fleet-framework";
  import { note } from "./tools.ts";
  export default defineContinuous("stubborn", {
    async runSlot(ctx) {
      note(ctx, "start");
      ctx.signal.addEventListener("abort", () => note(ctx, "told", { reason: ctx.signal.reason }));
      await new Promise(() => setInterval(() => { ctx.progress(); note(ctx, "works"); }, 50));
    },
  });`;

const onServer = ({ url }: RedisServer): Place => ({
  name: "Redis",
  at: () => ({ url, namespace: "part", flags: ["--store", url, "--namespace", "part"] }),
});

test("finish, stop and exit: what runs on, what ends with its lease, and which worker leaves", async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const { url, dir, store, ...fleet } = await healFleet(onServer(server), {
    "stubborn.ts": STUBBORN,
    // A flag counts before the file.
    "fleet.config.ts": `export default {
      automations: ["./stubborn.ts"],
      deploy: { stubborn: { slots: 3 } },
      partition: "exit",
      partitionSeconds: ${EXIT_SECONDS},
    };`,
  });
  const start = (id: string, ...args: string[]) =>
    fleet.worker(id, { timings: TIMINGS, args: ["--capacity", "1", ...args] });
  const workers = {
    finish: start("finish", "--partition", "finish"),
    stop: start("stop", "--partition", "stop"),
    exit: start("exit", "--drain-seconds", "1"),
  };
  const of = (worker: string, what: string) => (line: Line) => line.worker === worker && line.what === what;
  for (const id of Object.keys(workers)) await fleet.untilLine(of(id, "start"), 0, 60_000);

  const shown = await runFleet(["status", "--json", ...fleet.flags], { cwd: dir });
  expect(JSON.parse(shown.stdout)).toMatchObject({
    workers: [
      { id: "exit", partition: "exit", partition_seconds: EXIT_SECONDS },
      { id: "finish", partition: "finish", partition_seconds: null },
      { id: "stop", partition: "stop", partition_seconds: null },
    ],
  });

  const away = async () => {
    await server.kill("SIGSTOP");
    const probe = openStore(url, { namespace: "part", deadlineSeconds: 0.3 });
    await expect(probe).rejects.toMatchObject({ code: "FLEET_STORE_UNAVAILABLE" });
  };
  // Well within the lease it is as if nothing had been.
  await away();
  await server.kill("SIGCONT");
  const all = fleet.ledger().length;
  await vi.waitFor(async () => expect((await store.registry.view()).leases).toHaveLength(3), 10_000);
  await fleet.untilLine(of("stop", "works"), all);
  expect(fleet.lines("stubborn", "told")).toEqual([]);

  const children = descendants(workers.stop.pid);
  const childOf = (id: string) => fleet.lines("stubborn").findLast(of(id, "works"))?.pid as number;
  const [ofFinish, ofStop, ofExit] = [childOf("finish"), childOf("stop"), childOf("exit")];
  expect(children).toContain(ofStop);
  const at = Date.now();
  await away();
  const told = await fleet.untilLine(of("stop", "told"), 0, 20_000);
  expect(told["reason"]).toBe("lease-lost");
  expect(told.at - at).toBeGreaterThan(LEASE_MS / 3);
  await vi.waitFor(() => expect(isAlive(ofStop)).toBe(false), { timeout: 20_000, interval: 10 });
  const gone = Date.now();
  // It has a minute to stop: what ended the other is the policy.
  await fleet.untilLine((line) => of("finish", "works")(line) && line.at > gone, 0, 5000);
  expect(isAlive(ofFinish)).toBe(true);
  expect(gone - at).toBeGreaterThan(LEASE_MS / 2);

  expect(await workers.exit.ended).toBe(3);
  expect(Date.now() - at).toBeGreaterThan(EXIT_SECONDS * 1000 - 1000);
  expect(workers.exit.stderr()).toContain(`the store has been away for ${EXIT_SECONDS} s`);
  expect(isAlive(ofExit)).toBe(false);
  expect([workers.finish, workers.stop].map(({ pid }) => isAlive(pid))).toEqual([true, true]);

  await server.kill("SIGCONT");
  const before = fleet.ledger().length;
  await fleet.untilLine(of("stop", "start"), before, 30_000);
  const slot = fleet.lines("stubborn").findLast(of("stop", "start"))?.slot as string;
  const health = await store.registry.slotHealth();
  expect(health[slot]?.history.map(({ cause }) => cause) ?? []).not.toContain("would-not-stop");
  expect(health[slot]?.failures ?? 0).toBe(0);
}, 120_000);
