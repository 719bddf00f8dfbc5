// Short (`npm test`): a pool that refills itself, on both stores. Harvest tasks are run by turns of the store itself.
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { definePool } from "../src/contracts/pool.ts";
import { defineQueue } from "../src/contracts/queue.ts";
import { Refills } from "../src/control/refills.ts";
import { SILENT } from "../src/internal/log.ts";
import { Pools } from "../src/primitives/pools.ts";
import type { ClaimedTask, Settlement } from "../src/protocol/task.ts";
import type { Store } from "../src/store/store.ts";
import { openPlace, PLACES } from "./support/places.ts";
import { temporaryFolder } from "./support/stores.ts";

vi.setConfig({ testTimeout: 30_000 });

const BELOW = 3;
const HARVEST = defineQueue("harvest", { payload: z.object({ site: z.string() }), maxAttempts: 1 });
const SESSIONS = definePool("sessions", {
  payload: z.object({ cookie: z.string() }),
  tags: z.object({ site: z.string() }),
  maxUses: 1,
  refill: { below: BELOW, submit: HARVEST, payload: ({ site }) => ({ site: String(site) }) },
});

describe.each(PLACES)("on $name", ({ at }) => {
  async function setUp() {
    const folder = temporaryFolder();
    onTestFinished(() => folder.remove());
    const store = await openPlace(at(folder.path));
    const pools = new Pools(store, { log: SILENT });
    onTestFinished(async () => {
      await pools.close();
      await store.close();
    });
    const outstanding = async () => {
      const counts = (await store.queues.stats({ queue: "harvest" }))?.counts;
      return counts === undefined ? 0 : counts.waiting + counts.scheduled + counts.active;
    };
    /** The most that was ever seen unfinished right after a submission. */
    const seen = { most: 0, submitted: 0 };
    const counted: Store = {
      ...store,
      fleetId: store.fleetId,
      queues: {
        ...store.queues,
        submit: async (args) => {
          const answer = await store.queues.submit(args);
          seen.submitted += args.lists.length;
          seen.most = Math.max(seen.most, await outstanding());
          return answer;
        },
      },
    };
    const lead = (leading: () => boolean = () => true) => {
      const refills = new Refills({ store: counted, leading, log: SILENT, roundMs: 20 });
      onTestFinished(() => refills.stop());
      refills.start();
      return refills;
    };
    const holder = randomUUID();
    const turn = (settle: readonly Settlement[], claim: number) =>
      store.queues.turn({ queue: "harvest", holder, worker: "w", leaseMs: 30_000, settle, claim });
    return { store, pool: pools.handle(SESSIONS), outstanding, seen, lead, turn };
  }
  type Site = Awaited<ReturnType<typeof setUp>>;

  /** Does as a batch automation would, until it is told to end. */
  function harvester({ turn }: Site, work: (task: ClaimedTask) => Promise<void>): () => Promise<void> {
    const over = new AbortController();
    const running = (async () => {
      while (!over.signal.aborted) {
        const { tasks } = await turn([], 10);
        for (const task of tasks) {
          await work(task);
          await turn([{ id: task.id, token: task.token, outcome: "completed", result: null }], 0);
        }
        if (tasks.length === 0) await delay(5);
      }
    })();
    return async () => {
      over.abort();
      await running;
    };
  }

  it("fifty that are hungry make no more tasks than there are items missing", async () => {
    const site = await setUp();
    const { pool, seen, lead, store } = site;
    const stop = harvester(site, async ({ payload }) => {
      const { site: of } = JSON.parse(payload) as { site: string };
      await pool.put({ payload: { cookie: "c" }, tags: { site: of } });
    });
    lead();
    // Each item is used up by its first use, so that fifty have to be harvested.
    const used = await Promise.all(
      Array.from({ length: 50 }, async () => {
        const lease = await pool.where({ site: "a" }).claim({ waitSeconds: 25 });
        await lease?.release();
        return lease?.id;
      }),
    );
    await stop();
    expect(new Set(used).size).toBe(50);
    expect(used).not.toContain(undefined);
    expect(seen.most).toBeGreaterThan(0);
    expect(seen.most).toBeLessThanOrEqual(BELOW);
    const stats = await store.pools.stats({ pool: "sessions" });
    expect(stats?.totals.put).toBeGreaterThanOrEqual(50);
    expect(stats?.totals.put).toBeLessThanOrEqual(50 + BELOW);
  });

  it("a new leader goes on with what is under way", async () => {
    const site = await setUp();
    const { pool, store, outstanding, seen, lead, turn } = site;
    expect(await pool.where({ site: "a" }).claim()).toBeNull();
    const first = lead();
    await expect.poll(outstanding).toBe(BELOW);
    await first.stop();
    // One of the lower places ends and brings an item: two are missing, and two are under way.
    const { tasks } = await turn([], 1);
    const [task] = tasks as [ClaimedTask];
    await pool.put({ payload: { cookie: "c" }, tags: { site: "a" } });
    await turn([{ id: task.id, token: task.token, outcome: "completed", result: null }], 0);
    const counted = vi.spyOn(store.pools, "count");
    lead();
    await expect.poll(() => counted.mock.calls.length).toBeGreaterThan(5);
    expect(await outstanding()).toBe(BELOW - 1);
    expect(seen).toEqual({ most: BELOW, submitted: BELOW });
  });

  it("two that both take themselves for the leader submit no task twice", async () => {
    const { pool, outstanding, seen, lead, store } = await setUp();
    const counted = vi.spyOn(store.pools, "count");
    for (let i = 0; i < 4; i++) lead();
    expect(await pool.where({ site: "a" }).claim()).toBeNull();
    await expect.poll(outstanding).toBe(BELOW);
    counted.mockClear();
    await expect.poll(() => counted.mock.calls.length).toBeGreaterThan(20);
    expect([await outstanding(), seen.most]).toEqual([BELOW, BELOW]);
  });

  it("each kind of claim has its own, and one that does not lead does nothing", async () => {
    const { pool, store, outstanding, lead } = await setUp();
    const counted = vi.spyOn(store.pools, "list");
    lead(() => false);
    expect(await pool.where({ site: "a" }).claim()).toBeNull();
    expect(await pool.where({ site: ["b", "c"] }).claim()).toBeNull();
    expect(await store.pools.refills({ pool: "sessions" })).toMatchObject([
      { where: { site: ["a"] }, below: BELOW, payload: '{"site":"a"}', maxAttempts: 1 },
      { where: { site: ["b", "c"] }, queue: "harvest", payload: '{"site":"b,c"}' },
    ]);
    await delay(100);
    expect([await outstanding(), counted.mock.calls.length]).toEqual([0, 0]);
    lead();
    await expect.poll(outstanding).toBe(2 * BELOW);
  });

  it("waits longer and longer, and tries one alone, where harvests bring nothing", async () => {
    const site = await setUp();
    const { pool, seen, lead } = site;
    const started: number[] = [];
    const stop = harvester(site, async () => void started.push(performance.now()));
    lead();
    expect(await pool.where({ site: "a" }).claim()).toBeNull();
    await expect.poll(() => started.length, { timeout: 15_000 }).toBeGreaterThanOrEqual(BELOW + 2);
    await stop();
    const [fourth, fifth] = started.slice(BELOW) as [number, number];
    expect(fourth - (started[BELOW - 1] as number)).toBeGreaterThanOrEqual(950);
    expect(fifth - fourth).toBeGreaterThanOrEqual(1900);
    expect(seen.most).toBe(BELOW);
  });

  it("refuses a payload that the queue would not take, with the claim", async () => {
    const wrong = definePool("wrong", {
      payload: z.string(),
      refill: { below: 1, submit: HARVEST, payload: () => ({ site: 5 as unknown as string }) },
    });
    const folder = temporaryFolder();
    onTestFinished(() => folder.remove());
    const store = await openPlace(at(folder.path));
    const pools = new Pools(store, { log: SILENT });
    onTestFinished(() => store.close());
    await expect(pools.handle(wrong).claim()).rejects.toThrow(
      /^pool "wrong": refill: payload for queue "harvest": site: /,
    );
  });
});
