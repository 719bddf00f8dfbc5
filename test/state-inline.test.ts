// Short (`npm test`): locks, counters and rates in automations, in a worker of this process.
import { expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { defineBatch } from "../src/automation/definition-batch.ts";
import { type Automation, defineContinuous } from "../src/automation/definition.ts";
import { fleetOn } from "../src/automation/fleet.ts";
import { manifestOf } from "../src/automation/manifest.ts";
import { SILENT } from "../src/internal/log.ts";
import type { LockLease } from "../src/primitives/lock.ts";
import { openSqliteStore } from "../src/store/sqlite/store.ts";
import { startWorker } from "../src/worker/worker.ts";

vi.setConfig({ testTimeout: 30_000 });

async function run(...automations: unknown[]) {
  const store = await openSqliteStore("sqlite::memory:", {});
  const inline = new Map((automations as Automation[]).map((automation) => [automation.name, automation]));
  const worker = await startWorker({
    store,
    storeUrl: "sqlite::memory:",
    program: {
      automations: [...inline.values()].map((automation) => ({
        manifest: manifestOf(automation, "1"),
        module: "",
        source: "test",
        isolate: "automation" as const,
      })),
      deploy: Object.fromEntries([...inline.keys()].map((name) => [name, { slots: 2 }])),
    },
    log: SILENT,
    inline,
    timings: { beatMs: 100, leaseMs: 1500, stopGraceMs: 500, backoffBaseMs: 50, backoffCapMs: 100 },
  });
  const fleet = fleetOn(store, { log: SILENT });
  onTestFinished(async () => {
    await worker.drain();
    await fleet.close();
  });
  return { store, fleet, worker };
}

test("one slot at a time has the lock; a run that ends gives it back, also where it throws", async () => {
  const seen: { slot: number; by: string | undefined }[] = [];
  const { store, fleet } = await run(
    defineContinuous("taker", {
      async runSlot(ctx) {
        const lease = await ctx.lock("l", { holdSeconds: 3600, waitSeconds: 60 });
        if (lease === null) return;
        await ctx.counter("entered").add();
        expect(await ctx.lock("l")).toBeNull();
        const [shown] = await store.state.locks.show({ name: "l" });
        seen.push({ slot: ctx.slotId, by: shown?.holder?.by });
        throw new Error("ends with the lock in its hands");
      },
    }),
  );
  await vi.waitFor(() => expect(new Set(seen.map(({ slot }) => slot)).size).toBe(2), 15_000);
  for (const { slot, by } of seen) expect(by).toMatch(new RegExp(`^taker/${slot} on `));
  expect(await fleet.counter("entered").get()).toBeGreaterThanOrEqual(seen.length);
});

test("a task gives back what it held before its end is told; waits end with the task", async () => {
  const leases: LockLease[] = [];
  const batch = defineBatch("worker", {
    tasks: { payload: z.object({ wait: z.boolean() }), timeoutSeconds: 1, maxAttempts: 1 },
    async runOne(task, ctx) {
      if (!task.payload.wait) {
        const lease = await ctx.lock("l", { holdSeconds: 3600 });
        if (lease !== null) leases.push(lease);
        return;
      }
      const rate = ctx.rateLimit("r", { limit: 1, perSeconds: 3600 });
      const answers = await Promise.all([
        ctx.lock("held", { waitSeconds: Number.POSITIVE_INFINITY }),
        rate.take({ waitSeconds: Number.POSITIVE_INFINITY }),
      ]);
      expect(answers).toMatchObject([null, { granted: false }]);
    },
  });
  const { fleet } = await run(batch);
  await fleet.call(batch.tasks, { wait: false }, { waitSeconds: 20 });
  expect(leases).toHaveLength(1);
  const mine = await fleet.lock("l");
  expect(mine).not.toBeNull();
  await expect(leases[0]?.extend(1)).rejects.toMatchObject({ code: "FLEET_LEASE_LOST" });

  await fleet.lock("held");
  await fleet.rateLimit("r", { limit: 1, perSeconds: 3600 }).take();
  const started = performance.now();
  await expect(fleet.call(batch.tasks, { wait: true }, { waitSeconds: 20 })).rejects.toMatchObject({
    code: "FLEET_TASK_FAILED",
  });
  expect(performance.now() - started).toBeLessThan(10_000);
});

test("waiting for a lock or a permit is waiting on purpose: no slot is taken for stuck", async () => {
  let runs = 0;
  const got: string[] = [];
  const { fleet, store } = await run(
    defineContinuous("patient", {
      stuckSeconds: 1,
      async runSlot(ctx) {
        runs += 1;
        if (ctx.slotId === 0) {
          if ((await ctx.lock("busy", { waitSeconds: 60 })) !== null) got.push("lock");
        } else {
          const taken = await ctx.rateLimit("slow", { limit: 1, perSeconds: 3 }).take({ waitSeconds: 60 });
          if (taken.granted) got.push("permit");
          await ctx.sleep(60);
        }
        await ctx.sleep(60);
      },
    }),
  );
  const lease = await fleet.lock("busy", { holdSeconds: 60, waitSeconds: 10 });
  await fleet.rateLimit("slow", { limit: 1, perSeconds: 3 }).take({ waitSeconds: 10 });
  await vi.waitFor(() => expect(got).toContain("permit"), 15_000);
  await lease?.release();
  await vi.waitFor(() => expect(got.toSorted()).toEqual(["lock", "permit"]), 15_000);
  expect(runs).toBe(2);
  expect(await store.registry.slotHealth()).toEqual({});
});
