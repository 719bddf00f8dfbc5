import { expect } from "vitest";
import { HandClock, range, siteCase, type StoreHarness } from "./harness.ts";
import { completed, declaredQueue, ended, failed, LEASE_MS, task, tasks } from "./queue-driver.ts";

export function queueLimits(harness: StoreHarness): void {
  siteCase(
    harness,
    "never more claims than the concurrency, and room again by every way out",
    async ({ open }) => {
      const clock = new HandClock();
      const q = await declaredQueue(await open(clock.options), { concurrency: 3, crashLimit: 100 });
      await q.submit(...range(0, 20).map((i) => task(`t${i}`)));
      const turn = await q.turn("h", 9);
      expect(turn.tasks).toHaveLength(3);
      expect(turn.ready).toBe(0);
      expect(await q.claim("other", 9)).toEqual([]);
      const [a, b, c] = turn.tasks;
      if (!a || !b || !c) throw new Error("three were claimed");
      for (const settlement of [completed(a), ended(b, "interrupted"), failed(c, { retryInMs: 1000 })]) {
        const settled = await q.turn("h", 9, [settlement]);
        expect(settled.tasks).toHaveLength(1);
        expect(settled.ready).toBe(0);
      }
      expect(await q.claim("h", 9)).toEqual([]);
      await q.lose(["h"]);
      const next = await q.claim("h", 9);
      expect(next).toHaveLength(3);
      expect(await q.settle(...next.map((claim) => ended(claim, "cancelled")))).toHaveLength(3);
      expect(await q.claim("h2", 9)).toHaveLength(3);
      clock.advance(LEASE_MS);
      expect(await q.claim("h3", 9)).toHaveLength(3);
      clock.advance(LEASE_MS);
      await q.sweep();
      expect(await q.counts()).not.toHaveProperty("active");
      expect(await q.claim("h4", 9)).toHaveLength(3);
    },
  );

  siteCase(
    harness,
    "never more claims of a key than its limit; tasks without a key are free",
    async ({ open }) => {
      const clock = new HandClock();
      const q = await declaredQueue(await open(clock.options), { keyConcurrency: 2, crashLimit: 100 });
      await q.submit(...tasks(["a0", "a1", "a2", "a3", "a4", "a5"], { key: "a" }));
      await q.submit(...tasks(["b0"], { key: "b" }), ...tasks(["x0", "x1", "x2", "x3"]));
      const claims = await q.claim("h", 20);
      expect(claims.map(({ id }) => id)).toEqual(["a0", "b0", "x0", "a1", "x1", "x2", "x3"]);
      expect((await q.stats()).busyKeys).toEqual([{ key: "a", active: 2, waiting: 4 }]);
      expect(await q.claim("h", 20)).toEqual([]);
      const first = claims[0] as (typeof claims)[0];
      expect((await q.turn("h", 20, [completed(first)])).tasks.map(({ id }) => id)).toEqual(["a2"]);
      expect(await q.cancel("a3", "a2")).toEqual(["cancelled", "cancelling"]);
      expect(await q.claim("h", 20)).toEqual([]);
      await q.lose(["h"], ["a1"]);
      expect((await q.claimIds("h2", 20)).filter((id) => id.startsWith("a"))).toEqual(["a1", "a4"]);
      clock.advance(LEASE_MS);
      expect((await q.claimIds("h3", 20)).filter((id) => id.startsWith("a"))).toEqual(["a1", "a4"]);
      expect((await q.stats()).busyKeys).toEqual([{ key: "a", active: 2, waiting: 1 }]);
    },
  );

  siteCase(harness, "both limits hold together", async ({ open }) => {
    const q = await declaredQueue(await open(), { concurrency: 4, keyConcurrency: 2 });
    await q.submit(...range(0, 30).map((i) => task(`t${i}`, { key: `k${i % 3}` })));
    expect((await q.claim("h", 30)).map(({ key }) => key)).toEqual(["k0", "k1", "k2", "k0"]);
    await q.lose(["h"]);
    const [a] = await q.claim("h", 1);
    expect(a).toBeDefined();
    expect(await q.claim("h2", 30)).toHaveLength(3);
  });

  siteCase(harness, "limits that are changed count from the next claim on", async ({ open }) => {
    const store = await open();
    const q = await declaredQueue(store, { concurrency: 1, keyConcurrency: 1 });
    await q.submit(
      ...tasks(["a0", "a1", "a2", "a3", "a4"], { key: "a" }),
      ...tasks(["b0", "b1"], { key: "b" }),
    );
    expect(await q.claimIds("h", 9)).toEqual(["a0"]);
    await declaredQueue(store, { concurrency: 4, keyConcurrency: 1 });
    expect(await q.claimIds("h", 9)).toEqual(["b0"]);
    await declaredQueue(store, { concurrency: 4, keyConcurrency: 2 });
    expect((await q.claimIds("h", 9)).toSorted()).toEqual(["a1", "b1"]);
    await declaredQueue(store, { concurrency: 0, keyConcurrency: 0 });
    const turn = await q.turn("h", 1);
    expect(turn.tasks.map(({ id }) => id)).toEqual(["a2"]);
    expect(turn.ready).toBeGreaterThan(0);
    expect(turn.ready).toBeLessThanOrEqual(2);
    // Lowered: three of `a` are held now, which is above both.
    await declaredQueue(store, { concurrency: 2, keyConcurrency: 1 });
    expect(await q.turn("h2", 9)).toMatchObject({ tasks: [], ready: 0 });
    expect((await q.stats()).busyKeys).toEqual([{ key: "a", active: 3, waiting: 2 }]);
    const held = new Map(((await q.keep("h"))[0] ?? []).map((claim) => [claim.id, claim]));
    expect([...held.keys()].toSorted()).toEqual(["a0", "a1", "a2", "b0", "b1"]);
    const room: string[][] = [];
    for (const id of ["b0", "b1", "a1", "a0", "a2"]) {
      const claim = held.get(id) as { id: string; token: string };
      room.push((await q.turn("h2", 9, [completed(claim)])).tasks.map((task) => task.id));
    }
    expect(room).toEqual([[], [], [], [], ["a3"]]);
  });

  siteCase(
    harness,
    "another owner's limit takes nothing from keys that have waited at the old one",
    async (site) => {
      const store = await site.open();
      const q = await declaredQueue(store, { keyConcurrency: 1 });
      await q.submit(...range(0, 40).map((i) => task(`t${i}`, { key: `k${i % 10}` })));
      expect(await q.claim("h", 99)).toHaveLength(10);
      await declaredQueue(store, { keyConcurrency: 3 });
      const second = await q.claim("h", 99);
      expect(second).toHaveLength(20);
      await declaredQueue(store, { keyConcurrency: 2 });
      // From three of each key to two: no room yet; to one: room for one each.
      expect(await q.settle(...second.slice(0, 10).map((claim) => completed(claim)))).toHaveLength(10);
      expect(await q.claim("h", 99)).toEqual([]);
      expect(await q.settle(...second.slice(10).map((claim) => completed(claim)))).toHaveLength(10);
      expect(await q.claim("h", 99)).toHaveLength(10);
      expect(await q.counts()).toEqual({ active: 20, completed: 20 });
    },
  );

  siteCase(harness, "a key at its limit whose waiting tasks go leaves no trace", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options), { keyConcurrency: 1 });
    const busy = async () => (await q.stats()).busyKeys;
    for (const how of ["expires", "is cancelled"]) {
      await q.submit(task(`a ${how}`, { key: "k" }), task(`b ${how}`, { key: "k", ttlMs: 1000 }));
      const claim = await q.claimOne("h");
      expect(await busy()).toEqual([{ key: "k", active: 1, waiting: 1 }]);
      if (how === "expires") clock.advance(1000);
      else await q.cancel(`b ${how}`);
      await q.sweep();
      expect(await busy()).toEqual([]);
      await q.settle(completed(claim));
      expect(await busy()).toEqual([]);
    }
    await q.submit(...tasks(["c", "d"], { key: "k" }));
    expect(await q.claimIds("h", 9)).toEqual(["c"]);
    expect(await busy()).toEqual([{ key: "k", active: 1, waiting: 1 }]);
  });
}
