// Short (`npm test`): what is asked of a worker inside a program, and what becomes of it where the store is lost.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { defineContinuous } from "../src/automation/definition.ts";
import { cordon, drain } from "../src/control/operations.ts";
import { changeDesired, pause } from "../src/control/desire.ts";
import { workerState } from "../src/protocol/status.ts";
import { openStore } from "../src/store/open.ts";
import { createWorker } from "../src/worker/create-worker.ts";
import { makeProject } from "./support/cli.ts";

test("it leaves the fleet and tells the program; a slot that does not end makes it a forced drain", async () => {
  const url = `sqlite:${join(makeProject(), "fleet.db")}`;
  let ended = "";
  const idle = defineContinuous("idle", {
    config: z.object({ deaf: z.boolean().default(false) }),
    async runSlot(ctx) {
      if (ctx.config.deaf) await new Promise(() => undefined);
      for await (const _ of ctx.loop({ everySeconds: 0.1 }));
      ended = String((ctx.signal.reason as { reason?: unknown }).reason ?? ctx.signal.reason);
    },
  });
  const store = await openStore(url);
  const start = (deaf: boolean) =>
    createWorker({
      store: url,
      id: "w1",
      automations: [idle],
      deploy: { idle: { config: { deaf } } },
      timings: { beatMs: 100, leaseMs: 2000, stopGraceMs: 30_000 },
    });
  const record = async () => (await store.registry.view()).workers.find(({ id }) => id === "w1");
  const running = () =>
    vi.waitFor(async () => expect((await record())?.slots[0]?.state).toBe("running"), { timeout: 10_000 });
  const gone = () =>
    vi.waitFor(
      async () => {
        const view = await store.registry.view();
        expect(view.workers.map((one) => workerState(one, view.now))).toEqual(["offline"]);
      },
      { timeout: 15_000 },
    );

  const first = await start(false);
  await running();
  expect(await drain(store.registry, "w1", { by: "anna", deadlineSeconds: 20 })).toMatchObject({
    outcome: "changed",
  });
  expect(await first.asked).toEqual({ by: "anna", deadlineSeconds: 20 });
  expect(await first.drain()).toEqual({ forced: false });
  await gone();
  expect(ended).toContain("drain");
  expect((await record())?.drain).toMatchObject({ by: "anna", forced: false });

  const second = await start(true);
  await running();
  await drain(store.registry, "w1", { by: "bert", deadlineSeconds: 0.3 });
  await second.asked;
  expect(await second.drain()).toEqual({ forced: true });
  await gone();
  expect((await record())?.drain).toMatchObject({ by: "bert", forced: true });
  await store.close();
});

test("a cordon comes back with all that workers know, where the store has lost it", async () => {
  const url = `sqlite:${join(makeProject(), "fleet.db")}`;
  const idle = defineContinuous("idle", {
    async runSlot(ctx) {
      for await (const _ of ctx.loop({ everySeconds: 0.1 }));
    },
  });
  const store = await openStore(url);
  const other = { incarnation: "w2-1", host: "h", pid: 1, version: "0.1.0", startedAt: 0, capacity: 1 };
  await store.registry.register({
    worker: { id: "w2", ...other, labels: {}, automations: [], draining: false },
    manifests: [],
    ttlMs: 60_000,
  });
  const worker = await createWorker({
    store: url,
    id: "w1",
    automations: [idle],
    timings: { beatMs: 100, leaseMs: 2000 },
  });
  const state = async () =>
    (await store.registry.view()).workers.find(({ id }) => id === "w1")?.slots[0]?.state;
  await vi.waitFor(async () => expect(await state()).toBe("running"), { timeout: 10_000 });
  await cordon(store.registry, "w1", "anna");
  await cordon(store.registry, "w2", "bert");
  // Once it has followed what was asked later, it has seen the cordons too.
  await changeDesired(store.registry, "idle", pause);
  await vi.waitFor(async () => expect(await state()).not.toBe("running"), { timeout: 10_000 });

  await store.wipe();
  expect((await store.registry.view()).workers).toEqual([]);
  await vi.waitFor(
    async () => {
      const [back] = (await store.registry.view()).workers;
      expect(back?.wish?.cordon?.by).toBe("anna");
    },
    { timeout: 10_000 },
  );
  // One that is not back yet finds it when it is.
  await vi.waitFor(
    async () => {
      await store.registry.register({
        worker: { id: "w2", ...other, labels: {}, automations: [], draining: false },
        manifests: [],
        ttlMs: 60_000,
      });
      const again = (await store.registry.view()).workers.find(({ id }) => id === "w2");
      expect(again?.wish?.cordon?.by).toBe("bert");
    },
    { timeout: 10_000 },
  );
  await worker.drain();
  await store.close();
});

test("with the policy exit it leaves by itself when the store has been away for long, and tells the program", async () => {
  const file = join(makeProject(), "fleet.db");
  const idle = defineContinuous("idle", {
    async runSlot(ctx) {
      for await (const _ of ctx.loop({ everySeconds: 0.1 }));
    },
  });
  const options = { store: `sqlite:${file}`, id: "w1", automations: [idle], partitionSeconds: 0.6 };
  const timings = { beatMs: 100, leaseMs: 600 };
  await expect(createWorker({ ...options, timings })).rejects.toThrow("partitionSeconds");
  const worker = await createWorker({ ...options, timings, partition: "exit" });
  const store = await openStore(options.store);
  onTestFinished(() => store.close());
  await vi.waitFor(async () => expect((await store.registry.view()).leases).toHaveLength(1), 10_000);
  rmSync(file);
  expect(await worker.lost).toEqual({ afterSeconds: 0.6 });
  expect(await worker.drain()).toEqual({ forced: false });
}, 30_000);
