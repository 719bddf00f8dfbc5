// Short (`npm test`): who holds items of pools and ends: a run that returns or throws, a task, a process that is killed or frozen.
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { defineBatch } from "../src/automation/definition-batch.ts";
import { defineContinuous } from "../src/automation/definition.ts";
import { definePool } from "../src/contracts/pool.ts";
import { defineQueue } from "../src/contracts/queue.ts";
import { messageOf } from "../src/errors.ts";
import { SILENT } from "../src/internal/log.ts";
import { Pools } from "../src/primitives/pools.ts";
import { inlineWorker, KINDS } from "./support/batch-worker.ts";
import { type Children, prepareChildren } from "./support/children.ts";
import type { HolderInput, HolderMessage } from "./support/children/holder.ts";
import { openPlace, PLACES } from "./support/places.ts";
import { temporaryFolder } from "./support/stores.ts";

vi.setConfig({ testTimeout: 30_000 });

const KEYS = definePool("keys", { payload: z.string() });
const HOLD = { holdSeconds: 3600 };

describe.each(KINDS)("in automations on %s", (kind) => {
  it("what a run still holds is released when it throws, and says who held it", async () => {
    const seen: string[] = [];
    const user = defineContinuous("user", {
      async runSlot(ctx) {
        const lease = await ctx.pool(KEYS).claim({ ...HOLD, waitSeconds: 20 });
        if (lease === null) return;
        seen.push((await ctx.pool(KEYS).get(lease.id))?.holder?.by ?? "nobody");
        throw new Error("no use");
      },
    });
    const { fleet } = await inlineWorker(kind, [[user, 1]]);
    const pool = fleet.pool(KEYS);
    const id = await pool.put({ payload: "k" });
    // Its second run gets it again, long before the hold is over.
    await expect.poll(() => seen.length, { timeout: 20_000 }).toBeGreaterThanOrEqual(2);
    expect(seen[0]).toMatch(/^user\/0 on \S+$/);
    expect((await pool.get(id))?.uses).toBeGreaterThanOrEqual(2);
    expect((await pool.stats())?.totals.leasesExpired).toBe(0);
  });

  it("what a task still holds is released before its end is told", async () => {
    const queue = defineQueue("work", { payload: z.enum(["return", "throw"]), maxAttempts: 1 });
    const work = defineBatch("work", {
      tasks: queue,
      async runOne(task, ctx) {
        const lease = await ctx.pool(KEYS).claim(HOLD);
        if (task.payload === "throw") throw new Error(`no use: ${lease?.id}`);
        return lease?.payload;
      },
    });
    const { fleet } = await inlineWorker(kind, [[work, 1]]);
    await fleet.pool(KEYS).put({ payload: "k" });
    expect(await fleet.call(queue, "return", { waitSeconds: 20 })).toBe("k");
    expect(await fleet.pool(KEYS).count("free")).toBe(1);
    await expect(fleet.call(queue, "throw", { waitSeconds: 20 })).rejects.toThrow(/no use: \w/);
    expect(await fleet.pool(KEYS).count("free")).toBe(1);
  });

  it("a retirement within a run stays, whether the run returns or throws (field case 20)", async () => {
    const queue = defineQueue("work", { payload: z.enum(["return", "throw"]), maxAttempts: 1 });
    const work = defineBatch("work", {
      tasks: queue,
      async runOne(task, ctx) {
        const lease = await ctx.pool(KEYS).claim(HOLD);
        await lease?.retire(`to ${task.payload}`);
        if (task.payload === "throw") throw new Error("after all");
        return lease?.id;
      },
    });
    const { fleet } = await inlineWorker(kind, [[work, 1]]);
    const pool = fleet.pool(KEYS);
    for (const [at, how] of (["return", "throw"] as const).entries()) {
      const id = await pool.put({ payload: how });
      const ended = await fleet
        .call(queue, how, { waitSeconds: 20 })
        .catch((error: unknown) => messageOf(error));
      expect(ended).toContain(how === "throw" ? "after all" : id);
      expect(await pool.get(id)).toMatchObject({
        state: "retired",
        retired: { reason: "asked", note: `to ${how}` },
      });
      expect(await pool.count("retired")).toBe(at + 1);
      expect(await pool.claim()).toBeNull();
    }
  });

  it("what code still holds that does not end when it is told to is released with its host", async () => {
    const deaf = defineContinuous("deaf", {
      async runSlot(ctx) {
        await ctx.lock("l", HOLD);
        await ctx.pool(KEYS).claim({ ...HOLD, autoExtend: true, waitSeconds: 20 });
        await new Promise(() => undefined);
      },
    });
    const { fleet, worker } = await inlineWorker(kind, [[deaf, 1]]);
    const pool = fleet.pool(KEYS);
    await pool.put({ payload: "k" });
    await expect.poll(() => pool.count("held"), { timeout: 20_000 }).toBe(1);
    expect(await fleet.lock("l")).toBeNull();
    expect(await worker.drain({ deadlineSeconds: 0.2 })).toEqual({ forced: true });
    expect(await pool.count("free")).toBe(1);
    expect(await fleet.lock("l")).not.toBeNull();
    expect((await pool.stats())?.totals.leasesExpired).toBe(0);
  });
});

describe.each(PLACES)("in processes on $name", ({ at }) => {
  let children: Children;
  beforeAll(async () => {
    children = await prepareChildren();
  });
  afterAll(() => children.dispose());

  async function holder(options: Pick<HolderInput, "holdSeconds" | "autoExtend">) {
    const folder = temporaryFolder();
    onTestFinished(() => folder.remove());
    const place = at(folder.path);
    const store = await openPlace(place);
    const pools = new Pools(store, { log: SILENT });
    onTestFinished(async () => {
      await pools.close();
      await store.close();
    });
    const pool = pools.handle(KEYS);
    await pool.put({ payload: "k" });
    const child = children.start<HolderMessage>("holder", { ...place, pool: "keys", ...options });
    const { token } = await child.next(
      (message): message is { held: string; token: string } => "held" in message,
    );
    expect(await pool.claim()).toBeNull();
    return { pool, child, token };
  }

  it.each([false, true])(
    "what a holder that is killed held is claimable after its hold and a second (renewed: %s)",
    async (autoExtend) => {
      const { pool, child, token } = await holder({ holdSeconds: 2, autoExtend });
      // It is alive until it is killed, and so has released nothing by itself.
      expect(process.kill(child.pid, 0)).toBe(true);
      child.kill("SIGKILL");
      await child.ended;
      const killed = performance.now();
      expect(await pool.claim()).toBeNull();
      const lease = await pool.claim({ waitSeconds: 20 });
      expect(performance.now() - killed).toBeLessThan(3000);
      expect(BigInt(lease?.token ?? 0)).toBeGreaterThan(BigInt(token));
    },
  );

  it("a holder that was frozen finds its lease lost before it does anything with it", async () => {
    const { pool, child } = await holder({ holdSeconds: 1, autoExtend: true });
    child.kill("SIGSTOP");
    const lease = await pool.claim({ waitSeconds: 20 });
    expect(lease).not.toBeNull();
    child.kill("SIGCONT");
    const { lost } = await child.next((message): message is { lost: string } => "lost" in message);
    expect(lost).toBe("FLEET_LEASE_LOST");
    await delay(50);
    expect((await pool.get(lease?.id as string))?.score).toBe(0);
    await lease?.report("ok");
  });
});
