import { expect, test, vi } from "vitest";
import { z } from "zod";
import { FLEET_TOPICS } from "../contracts/life-cycle.ts";
import { definePool } from "../contracts/pool.ts";
import { SILENT } from "../internal/log.ts";
import { eventBus } from "../primitives/events.ts";
import { poolSettings } from "../primitives/pool-settings.ts";
import { register, TTL, worker } from "../store/conformance/workers.ts";
import { openStore } from "../store/open.ts";
import { Departures } from "./departures.ts";
import { Leader } from "./leader.ts";

test("sweeps pools: retired items are forgotten when they were kept for long enough", async () => {
  let now = 1_781_234_567_890;
  const store = await openStore("sqlite::memory:", { frozenNow: () => now });
  const pool = "keys";
  const settings = poolSettings(definePool(pool, { payload: z.string(), keepRetiredSeconds: 60 }));
  await store.pools.declare({ pool, settings, as: "owner" });
  await store.pools.put({ pool, items: [{ id: "k", payload: "1", tags: {}, tagsJson: "{}", ttlMs: 0 }] });
  await store.pools.retire({ pool, id: "k", note: "" });
  now += 61_000;
  expect(await store.pools.get({ pool, id: "k" })).toMatchObject({ state: "retired" });
  const leader = new Leader({ store, candidate: "a", rank: 0, leaseMs: 3_000, sweepMs: 20_000, log: SILENT });
  await leader.turn(undefined);
  await vi.waitFor(async () => expect(await store.pools.get({ pool, id: "k" })).toBeUndefined());
  await leader.resign();
  await store.close();
});

test("forgets the probes of workers that are gone, and topics that are silent for a week", async () => {
  let now = 1_781_234_567_890;
  const store = await openStore("sqlite::memory:", { frozenNow: () => now });
  const publish = async (topic: string) =>
    (await store.events.publish({ topic, source: "s", payload: "1" })).seq;
  for (const topic of ["fleet.probe.gone", "fleet.probe.here", "orders", "silent"]) await publish(topic);
  const known = async () => {
    const watch = store.events.subscribe({ pattern: "*" }, () => undefined);
    const topics = [...(await watch.baselines).keys()].toSorted();
    await watch.close();
    return topics;
  };
  const sweep = async (left: string[]) => {
    const leader = new Leader({
      store,
      candidate: "a",
      rank: 0,
      leaseMs: 3_000,
      sweepMs: 20_000,
      log: SILENT,
    });
    await leader.turn(undefined);
    await vi.waitFor(async () => expect(await known()).toEqual(left));
    await leader.resign();
  };
  now += 3_600_000;
  await publish("fleet.probe.here");
  await sweep(["fleet.probe.here", "orders", "silent"]);
  now += 6 * 86_400_000;
  expect(await publish("orders")).toBe(2);
  await publish("fleet.probe.here");
  now += 86_400_000 - 3_600_000;
  await sweep(["orders"]);
  expect(await publish("silent")).toBe(1);
  expect(await publish("orders")).toBe(3);
  await store.close();
});

test("forgets as much as there is, of all queues in turn, as long as it leads", async () => {
  const store = await openStore("sqlite::memory:");
  const order: string[] = [];
  const left: Record<string, number> = { busy: 400, calm: 1 };
  let leader: Leader | undefined;
  const swept = vi.spyOn(store.queues, "sweep").mockImplementation(async ({ queue }) => {
    order.push(queue);
    left[queue] = (left[queue] ?? 0) - 1;
    if (order.length === 300) await leader?.resign();
    return { reclaimed: 0, expired: 0, forgotten: 500, more: (left[queue] ?? 0) > 0 };
  });
  vi.spyOn(store.queues, "list").mockImplementation(async () => ["busy", "calm"]);
  const lead = (candidate: string) =>
    (leader = new Leader({ store, candidate, rank: 0, leaseMs: 60_000, sweepMs: 20_000, log: SILENT })).turn(
      undefined,
    );
  await lead("a");
  await vi.waitFor(() => expect(order.length).toBeGreaterThanOrEqual(300));
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(swept).toHaveBeenCalledTimes(300);
  expect(order.slice(0, 3)).toEqual(["busy", "calm", "busy"]);
  await lead("b");
  await vi.waitFor(() => expect(left).toEqual({ busy: 0, calm: -1 }));
  await leader?.resign();
  await store.close();
});

test("a master that waits for the lead asks for it every second, so that it leads soon after the lease of a dead one", async () => {
  let now = 1_781_234_567_890;
  const store = await openStore("sqlite::memory:", { frozenNow: () => now });
  const options = { store, leaseMs: 30_000, sweepMs: 60_000, log: SILENT };
  const dead = new Leader({ ...options, candidate: "dead", rank: 1 });
  await dead.turn(undefined);
  const next = new Leader({ ...options, candidate: "next", rank: 1 });
  const worker = new Leader({ ...options, candidate: "worker", rank: 0 });
  for (const one of [next, worker]) await one.turn(undefined);
  now += 30_001;
  await vi.waitFor(
    async () => {
      // Whoever asks first after the end has it, and a master takes it from a worker.
      await next.turn(undefined);
      expect(next.leading).toBe(true);
    },
    { timeout: 9000, interval: 50 },
  );
  await worker.turn(undefined);
  expect(worker.leading).toBe(false);
  for (const one of [dead, next, worker]) await one.resign();
  await store.close();
}, 20_000);

test("tells those who listen of workers that are lost, and not of those that signed off", async () => {
  let now = 1_781_234_567_890;
  const store = await openStore("sqlite::memory:", { frozenNow: () => now });
  const { registry } = store;
  const heard: string[] = [];
  const ear = eventBus({ store: store.events, source: "monitor" }).subscribe(FLEET_TOPICS.workerOffline);
  const listening = (async () => {
    for await (const { payload } of ear) heard.push(`${payload.worker} ${payload.reason}`);
  })();
  await ear.ready;
  for (const id of ["killed", "drained", "stays"]) await register(registry, worker(id));
  const options = { store, leaseMs: 600_000, sweepMs: 600_000, log: SILENT };
  const leader = new Leader({ ...options, candidate: "a", rank: 0 });
  await leader.turn(await registry.revision());
  await registry.deregister({ workerId: "drained", incarnation: "drained-1" });
  now += TTL;
  const turn = async () => {
    await registry.beat({
      workerId: "stays",
      incarnation: "stays-1",
      ttlMs: TTL,
      leaseMs: 1,
      leases: [],
    });
    await leader.turn(await registry.revision());
  };
  // With the first event lost on its way out.
  const publish = vi.spyOn(store.events, "publishMany").mockRejectedValueOnce(new Error("lost"));
  await vi.waitFor(
    async () => {
      await turn();
      expect(heard).toEqual(["killed lost"]);
    },
    { timeout: 30_000, interval: 100 },
  );
  expect(publish).toHaveBeenCalledTimes(2);
  await leader.resign();
  await ear.close();
  await listening;
  await store.close();
}, 40_000);

test("what it saw of workers counts for as long as nobody else has led", async () => {
  let now = 1_781_234_567_890;
  const store = await openStore("sqlite::memory:", { frozenNow: () => now });
  const forget = vi.spyOn(Departures.prototype, "forget");
  const options = { store, leaseMs: 300, sweepMs: 600_000, log: SILENT };
  const leader = new Leader({ ...options, candidate: "a", rank: 0 });
  const other = new Leader({ ...options, candidate: "b", rank: 1 });
  const turnsUntil = (leading: boolean) =>
    vi.waitFor(
      async () => {
        await leader.turn(undefined);
        expect(leader.leading).toBe(leading);
      },
      { timeout: 10_000, interval: 20 },
    );
  await turnsUntil(true);
  const before = forget.mock.calls.length;
  // The store is away for longer than its lease; then it leads again, as nobody else came.
  const away = vi.spyOn(store.registry, "lead").mockRejectedValue(new Error("away"));
  await vi.waitFor(async () => {
    await leader.turn(undefined).catch(() => undefined);
    expect(leader.leading).toBe(false);
  }, 10_000);
  away.mockRestore();
  now += 120_000;
  await turnsUntil(true);
  expect(forget).toHaveBeenCalledTimes(before);
  await other.turn(undefined);
  await turnsUntil(false);
  await other.resign();
  const others = forget.mock.calls.length;
  await turnsUntil(true);
  expect(forget).toHaveBeenCalledTimes(others + 1);
  forget.mockRestore();
  await leader.resign();
  await store.close();
}, 40_000);

test("who has resigned is granted nothing any more, and gives back what it was granted late", async () => {
  const store = await openStore("sqlite::memory:");
  const { registry } = store;
  const options = { store, leaseMs: 600_000, sweepMs: 600_000, log: SILENT };
  const leads = async () => (await registry.view()).leader;
  const first = new Leader({ ...options, candidate: "first", rank: 0 });
  // It resigns while it asks for the lead.
  const turning = first.turn(undefined);
  await first.resign();
  await turning;
  expect([await leads(), first.leading]).toEqual([null, false]);
  await first.turn(undefined);
  expect(await leads()).toBeNull();

  // Its resignation is lost, and made again.
  const second = new Leader({ ...options, candidate: "second", rank: 0 });
  const third = new Leader({ ...options, candidate: "third", rank: 0 });
  for (const one of [second, third]) await one.turn(undefined);
  expect(await leads()).toBe("second");
  vi.spyOn(registry, "resign").mockRejectedValueOnce(new Error("lost"));
  await expect(second.resign()).rejects.toThrow("lost");
  expect(second.leading).toBe(false);
  await second.resign();
  expect(await leads()).toBeNull();
  // Others ask from time to time, and at once where they have seen that nobody leads.
  await third.turn(undefined);
  expect(third.leading).toBe(false);
  third.vacant();
  await third.turn(undefined);
  expect([await leads(), third.leading]).toEqual(["third", true]);
  await third.resign();
  await store.close();
});
