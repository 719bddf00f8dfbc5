// Short (`npm test`), Redis only: a server whose memory is full, and that may throw nothing away. Writers are told so; what makes room, and
// what slots live by, goes on (field case F27 of fault catalogues: "pops and acks go on, so it drains").
import { createClient } from "@redis/client";
import { expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { fleetOn } from "../src/automation/fleet.ts";
import { definePool } from "../src/contracts/pool.ts";
import { SILENT } from "../src/internal/log.ts";
import { runFleet } from "./support/cli.ts";
import { healFleet, measured, ms, type HealFleet } from "./support/heal-fleet.ts";
import { startRedis } from "./support/redis.ts";

const LEASE_MS = 3000;
const TASKS = 12;
const FILES = {
  "contracts.ts": `
    import { z } from "zod";
    import { definePool, defineQueue, defineStream } from "fleet-framework";
    export const BEATS = defineStream("source", z.object({ n: z.number() }));
    export const WORK = defineQueue("job", { payload: z.object({ n: z.number() }) });
    export const TOKENS = definePool("tokens", {
      payload: z.object({}),
      refill: { below: 1, submit: WORK, payload: () => ({ n: -1 }) },
    });`,
  "source.ts": `
    import { defineContinuous } from "fleet-framework";
    import { BEATS } from "./contracts.ts";
    import { note } from "./tools.ts";
    export default defineContinuous("source", {
      output: BEATS,
      async runSlot(ctx) {
        note(ctx, "start");
        for await (const turn of ctx.loop({ everySeconds: 0.05 })) {
          try {
            await ctx.emit({ n: turn.index });
            note(ctx, "emitted");
          } catch (error) {
            note(ctx, "refused", { code: error.code });
          }
        }
      },
    });`,
  "sink.ts": `
    import { defineContinuous } from "fleet-framework";
    import { BEATS } from "./contracts.ts";
    import { note } from "./tools.ts";
    export default defineContinuous("sink", {
      async runSlot(ctx) {
        note(ctx, "start");
        for await (const turn of ctx.loop({ everySeconds: 0.1 })) {
          if ((await ctx.stream(BEATS).pop({ n: 1 })).length > 0) note(ctx, "popped");
        }
      },
    });`,
  "borrower.ts": `
    import { defineContinuous } from "fleet-framework";
    import { TOKENS } from "./contracts.ts";
    import { note } from "./tools.ts";
    export default defineContinuous("borrower", {
      async runSlot(ctx) {
        note(ctx, "start");
        for await (const turn of ctx.loop({ everySeconds: 0.1 })) {
          await using lock = await ctx.lock("one", { waitSeconds: 1 });
          const lease = await ctx.pool(TOKENS).claim({ holdSeconds: 5 });
          await lease?.release();
          if (lock !== null && lease !== null) note(ctx, "borrowed");
        }
      },
    });`,
  "job.ts": `
    import { defineBatch } from "fleet-framework";
    import { WORK } from "./contracts.ts";
    import { note } from "./tools.ts";
    export default defineBatch("job", {
      tasks: WORK,
      schedules: { yearly: { cron: "0 0 1 1 *", payload: { n: -2 } } },
      async runOne({ payload }, ctx) {
        await new Promise((resolve) => setTimeout(resolve, 400));
        note(ctx, "done", { n: payload.n });
        return { n: payload.n };
      },
    });`,
  "fleet.config.ts": `
    import { defineConfig } from "fleet-framework";
    export default defineConfig({ automations: ["./source.ts", "./sink.ts", "./borrower.ts", "./job.ts"] });`,
};

test("a full Redis refuses what makes it grow, and the fleet drains it with the slots that it has", async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const admin = await createClient({ url: redis.url }).connect();
  onTestFinished(() => admin.destroy());
  const limit = (bytes: string) => admin.sendCommand(["CONFIG", "SET", "maxmemory", bytes]);
  const flags = ["--store", redis.url, "--namespace", "full"];
  const fleet = await healFleet(
    { name: "a full Redis", at: () => ({ url: redis.url, namespace: "full", flags }) },
    FILES,
  );
  // Enough of them, so that nothing is refilled.
  const tokens = fleetOn(fleet.store, { log: SILENT }).pool(definePool("tokens", { payload: z.object({}) }));
  await Promise.all([tokens.put({ payload: {} }), tokens.put({ payload: {} })]);
  const worker = fleet.worker("w", { timings: { leaseMs: LEASE_MS } });
  await fleet.untilLine((line) => line.what === "popped");
  await fleet.untilLine((line) => line.what === "borrowed");
  const before = await heldSlots(fleet);
  expect(before).toHaveLength(4);
  const submit = await runFleet(
    ["task", "submit", "job", ...Array.from({ length: TASKS }, (_, n) => JSON.stringify({ n })), ...flags],
    { cwd: fleet.dir },
  );
  expect(submit.stderr + submit.stdout).not.toContain("FLEET_");
  await fleet.untilLine((line) => line.what === "done");

  await limit("1");
  const fullAt = Date.now();
  const refused = await fleet.untilLine((line) => line.what === "refused");
  expect(refused["code"]).toBe("FLEET_STORE_FAILED");
  const since = fleet.ledger().length;
  const later = () => fleet.ledger().slice(since);
  await vi.waitFor(() => expect(fleet.lines("job", "done")).toHaveLength(TASKS), { timeout: 30_000 });
  await vi.waitFor(async () => expect(await fleet.store.streams.length({ stream: "source" })).toBe(0), {
    timeout: 30_000,
  });
  // Longer than any lease that was there when it began.
  await fleet.untilLine((line) => line.at > fullAt + 2 * LEASE_MS);
  const { counts } = (await fleet.store.queues.stats({ queue: "job" })) ?? {};
  expect(counts).toMatchObject({ completed: TASKS, waiting: 0, active: 0 });
  expect(await heldSlots(fleet)).toEqual(before);
  expect(fleet.ledger().filter(({ what }) => what === "start")).toHaveLength(3);
  expect(later().filter(({ what }) => what === "emitted")).toEqual([]);
  expect(later().filter(({ what }) => what === "borrowed").length).toBeGreaterThan(5);
  // Somebody who comes to see what is the matter is let in.
  const status = await runFleet(["status", ...flags], { cwd: fleet.dir });
  expect(status).toMatchObject({ code: 0, stderr: "" });
  expect(status.stdout).toMatch(/sink +1 of 1 slots running/);

  // So is another worker, which takes over where the first is gone.
  const second = fleet.worker("v", { timings: { leaseMs: LEASE_MS } });
  await second.until((text) => text.includes("running"));
  worker.signal("SIGKILL");
  const by = (what: string) => fleet.untilLine((line) => line.worker === "v" && line.what === what);
  await Promise.all([by("refused"), by("borrowed")]);

  await limit("0");
  const roomAt = Date.now();
  const again = await fleet.untilLine((line) => line.what === "emitted" && line.at > roomAt);
  measured("memory full, then not: emits again after", ms(again.at - roomAt));
  second.signal("SIGTERM");
  expect(await second.ended).toBe(0);
}, 120_000);

async function heldSlots(fleet: HealFleet): Promise<string[]> {
  const { leases } = await fleet.store.registry.view();
  return leases.map(({ automation, slotId, token }) => `${automation}/${slotId} ${token}`).toSorted();
}
