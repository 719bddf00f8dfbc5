// Short (`npm test`): a worker in this process, on SQLite in memory.
import { expect, test, vi } from "vitest";
import { z } from "zod";
import { defineContinuous } from "../src/automation/definition.ts";
import { defineStream } from "../src/contracts/stream.ts";
import type { Log } from "../src/internal/log.ts";
import { fleetOn } from "../src/automation/fleet.ts";
import { manifestOf } from "../src/automation/manifest.ts";
import type { Automation } from "../src/automation/definition.ts";
import { openSqliteStore } from "../src/store/sqlite/store.ts";
import { startWorker } from "../src/worker/worker.ts";
import type { WorkerTimings } from "../src/worker/timings.ts";

const TIMINGS: Partial<WorkerTimings> = {
  beatMs: 100,
  leaseMs: 1500,
  stopGraceMs: 500,
  backoffBaseMs: 50,
  backoffCapMs: 200,
};
const silent: Log = { debug() {}, info() {}, warn() {}, error() {} };

async function inlineWorker(automations: readonly unknown[], deploy = {}) {
  const store = await openSqliteStore("sqlite::memory:", {});
  const inline = new Map((automations as Automation[]).map((automation) => [automation.name, automation]));
  const program = {
    automations: [...inline.values()].map((automation) => ({
      manifest: manifestOf(automation, "1"),
      module: "",
      source: "test",
      isolate: "automation" as const,
    })),
    deploy,
  };
  const worker = await startWorker({
    store,
    storeUrl: "sqlite::memory:",
    program,
    log: silent,
    inline,
    timings: TIMINGS,
  });
  return { store, worker, fleet: fleetOn(store, { log: silent }), program };
}

const Ping = z.object({ n: z.number(), note: z.string().default("none"), at: z.coerce.date() });
const OUT = defineStream("producer", Ping);

test("typed data flows from one automation to another, parsed once by the consumer", async () => {
  const got: z.output<typeof Ping>[] = [];
  const producer = defineContinuous("producer", {
    output: OUT,
    async runSlot(ctx) {
      for await (const turn of ctx.loop({ everySeconds: 0.02 }))
        await ctx.emit({ n: turn.index, at: "2026-01-01T00:00:00Z" });
    },
  });
  const logger = defineContinuous("logger", {
    uses: { pop: [OUT] },
    async runSlot(ctx) {
      for await (const ping of ctx.stream(OUT)) got.push(ping);
    },
  });
  const { worker, fleet } = await inlineWorker([producer, logger]);
  await vi.waitFor(() => expect(got.length).toBeGreaterThan(5), { timeout: 10_000 });
  expect(got[0]).toEqual({ n: 0, note: "none", at: new Date("2026-01-01T00:00:00Z") });
  expect(got.map((ping) => ping.n)).toEqual(got.map((_, index) => index));
  expect(await worker.drain()).toEqual({ forced: false });
  await fleet.close();
});

test("each key is owned by exactly one slot, and scaling is seen live", async () => {
  const seen = new Map<number, number>();
  const owners = new Map<string, Set<number>>();
  const keys = Array.from({ length: 50 }, (_, i) => `https://example.com/${i}`);
  const sharded = defineContinuous("sharded", {
    async runSlot(ctx) {
      for await (const _ of ctx.loop({ everySeconds: 0.02 })) {
        seen.set(ctx.slotId, ctx.slotCount);
        if (ctx.slotCount === 4)
          for (const key of keys)
            if (ctx.owns(key)) owners.set(key, (owners.get(key) ?? new Set()).add(ctx.slotId));
      }
    },
  });
  const { worker, fleet, store } = await inlineWorker([sharded], { sharded: { slots: 2 } });
  await vi.waitFor(
    () =>
      expect(sorted(seen)).toEqual([
        [0, 2],
        [1, 2],
      ]),
    { timeout: 10_000 },
  );
  const { desired } = await store.registry.view();
  const before = desired["sharded"]!;
  await store.registry.putDesired({
    name: "sharded",
    desired: { ...before, slots: 4, generation: before.generation + 1 },
    expected: before.generation,
  });
  await vi.waitFor(
    () =>
      expect(sorted(seen)).toEqual([
        [0, 4],
        [1, 4],
        [2, 4],
        [3, 4],
      ]),
    { timeout: 10_000 },
  );
  await vi.waitFor(() => expect(owners.size).toBe(50));
  expect([...owners.values()].every((slots) => slots.size === 1)).toBe(true);
  await worker.drain();
  await fleet.close();
});

test("a run that throws starts again after a back-off, with its error on record; a config that does not fit blocks", async () => {
  let runs = 0;
  const flaky = defineContinuous("flaky", {
    async runSlot(ctx) {
      runs += 1;
      if (runs < 3) throw new Error(`boom ${runs}`);
      await ctx.sleep(60);
    },
  });
  const strict = defineContinuous("strict", { config: z.object({ url: z.url() }), async runSlot() {} });
  const { worker, fleet, store } = await inlineWorker([flaky, strict]);
  await vi.waitFor(
    async () => {
      const view = await store.registry.view();
      const slots = view.workers[0]!.slots;
      const of = (name: string) => slots.find((slot) => slot.automation === name);
      expect(of("flaky")).toMatchObject({
        state: "running",
        restarts: 2,
        lastError: expect.stringContaining("boom 2"),
      });
      expect(of("strict")).toMatchObject({ state: "blocked", reason: expect.stringContaining("url") });
    },
    { timeout: 10_000 },
  );
  expect(await worker.drain()).toEqual({ forced: false });
  await fleet.close();
});

test("emit without a declared output, or with a wrong payload, is a TypeError and writes nothing", async () => {
  const errors: unknown[] = [];
  const mute = defineContinuous("mute", {
    async runSlot(ctx) {
      await (ctx.emit as (payload: unknown) => Promise<unknown>)({ a: 1 }).catch((error: unknown) =>
        errors.push(error),
      );
      await ctx.sleep(60);
    },
  });
  const producer = defineContinuous("producer", {
    output: OUT,
    async runSlot(ctx) {
      await (ctx.emit as (payload: unknown) => Promise<unknown>)({ n: "one", at: "2026-01-01" }).catch(
        (error: unknown) => errors.push(error),
      );
      await ctx.sleep(60);
    },
  });
  const { worker, fleet } = await inlineWorker([mute, producer]);
  await vi.waitFor(() => expect(errors).toHaveLength(2), { timeout: 10_000 });
  for (const error of errors) expect(error).toBeInstanceOf(TypeError);
  expect(errors).toContainEqual(expect.objectContaining({ code: "FLEET_OUTPUT_UNDECLARED" }));
  expect(errors).toContainEqual(
    expect.objectContaining({ code: "FLEET_PAYLOAD_INVALID", message: expect.stringContaining("n: ") }),
  );
  expect(await fleet.stream(OUT).length()).toBe(0);
  await worker.drain();
  await fleet.close();
});

test("ctx.state outlives a restart of the slot", async () => {
  const found: unknown[] = [];
  const cursor = defineContinuous("cursor", {
    state: z.object({ at: z.number() }),
    async runSlot(ctx) {
      const before = await ctx.state.get();
      found.push(before);
      await ctx.state.set({ at: (before?.at ?? 0) + 1 });
      if (found.length < 3) return;
      await ctx.sleep(60);
    },
  });
  const { worker, fleet } = await inlineWorker([cursor]);
  await vi.waitFor(() => expect(found).toEqual([undefined, { at: 1 }, { at: 2 }]), { timeout: 10_000 });
  await worker.drain();
  await fleet.close();
});

test("what a run leaves going ends with it: the next run starts alone", async () => {
  let runs = 0;
  const turning = new Map<number, number>();
  const reasons: unknown[] = [];
  const torn = defineContinuous("torn", {
    async runSlot(ctx) {
      const run = ++runs;
      ctx.signal.addEventListener("abort", () => reasons.push(ctx.signal.reason));
      const loop = async () => {
        for await (const _ of ctx.loop({ everySeconds: 0.01 })) turning.set(run, performance.now());
      };
      const failing = ctx.sleep(0.1).then(() => {
        if (run === 1) throw new Error("one part fails");
      });
      await Promise.all([loop(), failing]);
    },
  });
  const { worker, fleet } = await inlineWorker([torn]);
  await vi.waitFor(() => expect(turning.has(2)).toBe(true), { timeout: 10_000 });
  expect(reasons).toEqual(["ended"]);
  const last = turning.get(1);
  const since = turning.get(2) as number;
  await vi.waitFor(() => expect(turning.get(2)).toBeGreaterThan(since + 200), { timeout: 10_000 });
  expect(turning.get(1)).toBe(last);
  await worker.drain();
  await fleet.close();
});

function sorted(map: ReadonlyMap<number, number>): [number, number][] {
  return [...map].toSorted(([a], [b]) => a - b);
}
