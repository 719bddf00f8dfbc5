import { expect } from "vitest";
import { signedOff, workerState } from "../../protocol/status.ts";
import { HandClock, openThree, range, siteCase, type StoreHarness } from "./harness.ts";
import { beat, claim, manifest, register, slotIds, status, TTL, worker } from "./workers.ts";

export function registryWorkers(harness: StoreHarness): void {
  siteCase(harness, "an empty fleet has an empty view, of the right types", async ({ open }) => {
    const clock = new HandClock();
    const { registry } = await open(clock.options);
    const { revision, ...view } = await registry.view();
    expect(view).toEqual({
      now: clock.ms,
      workers: [],
      desired: {},
      assignments: {},
      leases: [],
      leader: null,
      damaged: [],
    });
    expect(await registry.revision()).toBe(revision);
    expect(await registry.manifests()).toEqual({});
  });

  siteCase(harness, "a registered worker stands in the view as it described itself", async ({ open }) => {
    const clock = new HandClock();
    const [a, b] = await Promise.all([open(clock.options), open(clock.options)]);
    const plain = worker("w.1");
    const rich = worker("w-2", 1, {
      labels: { region: "eü", gpu: "true", "": "empty" },
      automations: ["x", "y"],
      capacity: 1,
      draining: true,
      startedAt: clock.ms - 123_456,
    });
    expect(await register(a.registry, plain)).toEqual({
      outcome: "registered",
      generation: 1,
      now: clock.ms,
    });
    await register(b.registry, rich);
    const stamped = { generation: 1, lastSeenAt: clock.ms, expiresAt: clock.ms + TTL, slots: [] };
    const { workers } = await b.registry.view();
    expect(workers.toSorted((x, y) => (x.id < y.id ? -1 : 1))).toEqual([
      { ...rich, ...stamped },
      { ...plain, ...stamped },
    ]);
  });

  siteCase(harness, "an id is taken while its last beat is younger than its ttl", async ({ open }) => {
    const clock = new HandClock();
    const { registry } = await open(clock.options);
    const [first, second] = [worker("w", 1, { host: "there", pid: 77 }), worker("w", 2)];
    await register(registry, first);
    clock.advance(5000);
    expect(await beat(registry, first)).toMatchObject({ outcome: "ok", now: clock.ms, lost: [] });
    const seen = clock.ms;
    clock.advance(TTL - 1);
    const taken = { outcome: "taken", by: first, lastSeenAt: seen };
    expect(await register(registry, second)).toEqual(taken);
    expect((await registry.view()).workers).toMatchObject([{ incarnation: "w-1", generation: 1 }]);
    clock.advance(1);
    expect(await register(registry, second)).toMatchObject({ outcome: "registered", generation: 2 });
    expect((await registry.view()).workers).toMatchObject([{ incarnation: "w-2", generation: 2 }]);
    expect(await beat(registry, first)).toEqual({ outcome: "unknown" });
    expect(await beat(registry, second)).toMatchObject({ outcome: "ok" });
  });

  siteCase(harness, "of many incarnations that register at once one gets the id", async (site) => {
    const stores = await openThree(site);
    const results = await Promise.all(
      range(0, 9).map((i) => register((stores[i % 3] as (typeof stores)[0]).registry, worker("w", i))),
    );
    expect(results.filter(({ outcome }) => outcome === "registered")).toHaveLength(1);
  });

  siteCase(
    harness,
    "an incarnation that the store has lost goes on with its generation",
    async ({ open }) => {
      const store = await open();
      const { registry } = store;
      for (let i = 1; i <= 3; i++)
        await registry.register({
          worker: worker("w", i),
          manifests: [],
          ttlMs: TTL,
          replaces: `w-${i - 1}`,
        });
      await store.wipe();
      const again = { worker: worker("w", 3), manifests: [], ttlMs: TTL, generation: 3 };
      expect(await registry.register(again)).toMatchObject({ outcome: "registered", generation: 3 });
      expect(await registry.register(again)).toMatchObject({ outcome: "registered", generation: 3 });
      expect((await registry.view()).workers).toMatchObject([{ id: "w", generation: 3 }]);
      const next = { worker: worker("w", 4), manifests: [], ttlMs: TTL, replaces: "w-3" };
      expect(await registry.register(next)).toMatchObject({ outcome: "registered", generation: 4 });
    },
  );

  siteCase(harness, "the same incarnation may register again, and is no new generation", async ({ open }) => {
    const clock = new HandClock();
    const { registry } = await open(clock.options);
    await register(registry, worker("w"));
    clock.advance(1000);
    const again = await register(registry, worker("w", 1, { capacity: 3, draining: true }));
    expect(again).toEqual({ outcome: "registered", generation: 1, now: clock.ms });
    expect((await registry.view()).workers).toMatchObject([
      { capacity: 3, draining: true, lastSeenAt: clock.ms },
    ]);
  });

  siteCase(harness, "a beat renews the record; slots left out stay as they were", async ({ open }) => {
    const clock = new HandClock();
    const { registry } = await open(clock.options);
    const info = worker("w");
    await register(registry, info);
    const slots = [
      status("a", 0, { lastError: 'TypeError: "x" ü\n\tat y', reason: "back-off" }),
      status("a", 1, { state: "backing-off", since: clock.ms }),
    ];
    const self = { workerId: "w", incarnation: "w-1", ttlMs: TTL, leaseMs: 3000, leases: [] };
    clock.advance(1000);
    expect(await registry.beat({ ...self, slots })).toMatchObject({ outcome: "ok", lost: [] });
    clock.advance(1000);
    await registry.beat({ ...self, ttlMs: 20_000 });
    const times = { generation: 1, lastSeenAt: clock.ms, expiresAt: clock.ms + 20_000 };
    expect((await registry.view()).workers).toEqual([{ ...info, ...times, slots }]);
    await registry.beat({ ...self, slots: [] });
    expect((await registry.view()).workers).toMatchObject([{ slots: [] }]);
  });

  siteCase(harness, "an unknown incarnation is told to register", async ({ open }) => {
    const { registry } = await open();
    expect(await beat(registry, worker("w"))).toEqual({ outcome: "unknown" });
    await register(registry, worker("w"));
    expect(await beat(registry, worker("w", 2))).toEqual({ outcome: "unknown" });
    expect((await registry.view()).workers).toMatchObject([{ incarnation: "w-1" }]);
  });

  siteCase(
    harness,
    "a worker past its ttl is offline, and online again with its next beat",
    async ({ open }) => {
      const clock = new HandClock();
      const { registry } = await open(clock.options);
      const info = worker("w");
      await register(registry, info);
      clock.advance(TTL);
      const state = async () => {
        const view = await registry.view();
        return view.workers.map((one) => workerState(one, view.now));
      };
      expect(await state()).toEqual(["offline"]);
      expect(await beat(registry, info)).toMatchObject({ outcome: "ok" });
      expect(await state()).toEqual(["online"]);
    },
  );

  siteCase(harness, "deregister takes the worker offline at once and frees its slots", async ({ open }) => {
    const clock = new HandClock();
    const { registry } = await open(clock.options);
    const [leaving, staying] = [worker("w"), worker("other")];
    await register(registry, leaving);
    await register(registry, staying);
    await claim(registry, leaving, "a", [0, 1]);
    await claim(registry, staying, "a", [2]);
    clock.advance(1);
    await registry.deregister({ workerId: "w", incarnation: "w-1" });
    const view = await registry.view();
    const states = view.workers.map((one) => [one.id, workerState(one, view.now)]);
    expect(Object.fromEntries(states)).toEqual({ w: "offline", other: "online" });
    // It can be told from one whose time ran out, and nothing late brings it back.
    expect(view.workers.filter((one) => signedOff(one)).map(({ id }) => id)).toEqual(["w"]);
    expect(await beat(registry, leaving)).toEqual({ outcome: "unknown" });
    expect(slotIds(await claim(registry, staying, "a", [0, 1, 2]))).toEqual([0, 1]);
    expect(await register(registry, worker("w", 2))).toMatchObject({ outcome: "registered", generation: 2 });
    clock.advance(TTL);
    const later = await registry.view();
    for (const one of later.workers)
      expect([workerState(one, later.now), signedOff(one)]).toEqual(["offline", false]);
  });

  siteCase(harness, "deregister by an incarnation of the past changes nothing", async ({ open }) => {
    const clock = new HandClock();
    const { registry } = await open(clock.options);
    const [old, present] = [worker("w", 1), worker("w", 2)];
    await register(registry, old);
    clock.advance(TTL);
    await register(registry, present);
    await claim(registry, present, "a", [0]);
    await registry.deregister({ workerId: "w", incarnation: "w-1" });
    await registry.deregister({ workerId: "never", incarnation: "seen" });
    const view = await registry.view();
    expect(view.workers.map((one) => workerState(one, view.now))).toEqual(["online"]);
    expect(view.leases).toHaveLength(1);
  });

  siteCase(
    harness,
    "pruneWorkers removes who has been offline for longer, and nobody else",
    async ({ open }) => {
      const clock = new HandClock();
      const { registry } = await open(clock.options);
      await registry.register({ worker: worker("gone"), manifests: [manifest("m")], ttlMs: TTL });
      clock.advance(30_000);
      await register(registry, worker("late"));
      clock.advance(TTL + 20_000);
      await register(registry, worker("alive"));
      expect(await registry.pruneWorkers({ offlineMs: 60_000 })).toEqual({ removed: 0 });
      expect(await registry.pruneWorkers({ offlineMs: 40_000 })).toEqual({ removed: 1 });
      expect((await registry.view()).workers.map(({ id }) => id).toSorted()).toEqual(["alive", "late"]);
      expect(Object.keys(await registry.manifests())).not.toContain("gone");
      expect(await registry.pruneWorkers({ offlineMs: 0 })).toEqual({ removed: 1 });
      expect(await registry.pruneWorkers({ offlineMs: 0 })).toEqual({ removed: 0 });
      expect((await registry.view()).workers.map(({ id }) => id)).toEqual(["alive"]);
    },
  );

  siteCase(
    harness,
    "manifests come back as published and are put in place of the old ones",
    async ({ open }) => {
      const [a, b] = await Promise.all([open(), open()]);
      const two = [manifest("x"), manifest("y")];
      await a.registry.register({ worker: worker("w"), manifests: two, ttlMs: TTL });
      await a.registry.register({ worker: worker("v"), manifests: [manifest("x")], ttlMs: TTL });
      expect(await b.registry.manifests()).toEqual({ w: two, v: [manifest("x")] });
      await a.registry.register({ worker: worker("w"), manifests: [manifest("z")], ttlMs: TTL });
      expect(await b.registry.manifests()).toEqual({ w: [manifest("z")], v: [manifest("x")] });
    },
  );
}
