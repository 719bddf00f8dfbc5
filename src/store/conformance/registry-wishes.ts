import { expect } from "vitest";
import type { Cordon, DrainWish } from "../../protocol/status.ts";
import type { Registry } from "../store.ts";
import { HandClock, siteCase, type StoreHarness, until } from "./harness.ts";
import { beat, claim, manifest, register, TTL, worker } from "./workers.ts";

const CORDON: Cordon = { by: 'Anna "ü" | x', at: 1_781_234_567_890 };
const drainOf = (incarnation: string): DrainWish => ({
  by: "api",
  at: 1_781_234_567_891,
  incarnation,
  deadlineMs: 60_000,
});

const wishOf = async (registry: Registry, id = "w") =>
  (await registry.view()).workers.find((one) => one.id === id)?.wish;

export function registryWishes(harness: StoreHarness): void {
  siteCase(harness, "a wish stands in the view with its worker, and each kind alone", async ({ open }) => {
    const [a, b] = await Promise.all([open(), open()]);
    await register(a.registry, worker("w"));
    await register(a.registry, worker("v"));
    expect(await wishOf(b.registry)).toBeUndefined();
    expect(await a.registry.setWish({ workerId: "w", kind: "cordon", wish: CORDON })).toBe("stored");
    expect(await wishOf(b.registry)).toEqual({ cordon: CORDON });
    const drain = drainOf("w-1");
    expect(await b.registry.setWish({ workerId: "w", kind: "drain", wish: drain })).toBe("stored");
    expect(await wishOf(a.registry)).toEqual({ cordon: CORDON, drain });
    expect(await wishOf(a.registry, "v")).toBeUndefined();
    expect(await b.registry.setWish({ workerId: "w", kind: "cordon", wish: null })).toBe("stored");
    expect(await wishOf(a.registry)).toEqual({ drain });
    expect(await b.registry.setWish({ workerId: "w", kind: "drain", wish: null })).toBe("stored");
    expect((await a.registry.view()).workers.every((one) => !("wish" in one))).toBe(true);
  });

  siteCase(
    harness,
    "a change of a wish is a new revision and a hint; the same again is neither",
    async (site) => {
      const [a, b] = await Promise.all([site.open(), site.open()]);
      await register(a.registry, worker("w"));
      let hints = 0;
      const watch = b.registry.watch(() => (hints += 1));
      await watch.ready;
      const before = await a.registry.revision();
      await a.registry.setWish({ workerId: "w", kind: "cordon", wish: CORDON });
      await until("the hint has come", () => hints > 0);
      const after = await b.registry.revision();
      expect(after).toBeGreaterThan(before);
      expect(await a.registry.setWish({ workerId: "w", kind: "cordon", wish: { ...CORDON } })).toBe(
        "unchanged",
      );
      expect(await a.registry.setWish({ workerId: "v", kind: "cordon", wish: null })).toBe("unchanged");
      expect(await b.registry.revision()).toBe(after);
      await watch.close();
    },
  );

  siteCase(
    harness,
    "a cordon outlives the incarnation, the worker's sign-off and its record; a drain is for one incarnation",
    async ({ open }) => {
      const clock = new HandClock();
      const { registry } = await open(clock.options);
      await register(registry, worker("w", 1));
      await registry.setWish({ workerId: "w", kind: "cordon", wish: CORDON });
      await registry.setWish({ workerId: "w", kind: "drain", wish: drainOf("w-1") });
      await registry.deregister({ workerId: "w", incarnation: "w-1" });
      await register(registry, worker("w", 2));
      expect(await wishOf(registry)).toEqual({ cordon: CORDON });
      clock.advance(TTL + 1000);
      expect(await registry.pruneWorkers({ offlineMs: 0 })).toEqual({ removed: 1 });
      // As with that of an earlier incarnation: pruning has cleared away what was asked of one that is gone.
      await register(registry, worker("w", 1));
      expect(await wishOf(registry)).toEqual({ cordon: CORDON });
    },
  );

  siteCase(harness, "a wish can be kept for a worker that has no record yet", async ({ open }) => {
    const { registry } = await open();
    expect(await registry.setWish({ workerId: "w", kind: "cordon", wish: CORDON })).toBe("stored");
    expect((await registry.view()).workers).toEqual([]);
    await register(registry, worker("w"));
    expect(await wishOf(registry)).toEqual({ cordon: CORDON });
  });

  siteCase(harness, "an offline worker is removed with all that was asked of it", async ({ open }) => {
    const clock = new HandClock();
    const { registry } = await open(clock.options);
    const info = worker("w");
    await registry.register({ worker: info, manifests: [manifest("m")], ttlMs: TTL });
    await register(registry, worker("v"));
    await registry.setWish({ workerId: "w", kind: "cordon", wish: CORDON });
    const held = await claim(registry, info, "a", [0]);
    expect(await registry.removeWorker({ workerId: "w" })).toBe("alive");
    expect(await registry.view()).toMatchObject({ workers: expect.objectContaining({ length: 2 }) });
    await beat(registry, info, held);
    await registry.deregister({ workerId: "w", incarnation: "w-1" });
    const before = await registry.revision();
    expect(await registry.removeWorker({ workerId: "w" })).toBe("removed");
    expect(await registry.revision()).toBeGreaterThan(before);
    expect((await registry.view()).workers.map(({ id }) => id)).toEqual(["v"]);
    expect(Object.keys(await registry.manifests())).not.toContain("w");
    expect(await registry.removeWorker({ workerId: "w" })).toBe("unknown");
    expect(await registry.register({ worker: worker("w", 2), manifests: [], ttlMs: TTL })).toMatchObject({
      outcome: "registered",
      // The count of incarnations never goes back.
      generation: 2,
    });
    expect(await wishOf(registry)).toBeUndefined();
  });

  siteCase(harness, "the leases of a removed worker end by their own time", async ({ open }) => {
    const clock = new HandClock();
    const { registry } = await open(clock.options);
    const [gone, other] = [worker("w"), worker("v")];
    await register(registry, gone, 1000);
    await register(registry, other);
    await claim(registry, gone, "a", [0]);
    clock.advance(1000);
    expect(await registry.removeWorker({ workerId: "w" })).toBe("removed");
    expect(await claim(registry, other, "a", [0])).toEqual([]);
    clock.advance(2000);
    expect(await claim(registry, other, "a", [0])).toHaveLength(1);
  });

  siteCase(harness, "removing an unknown worker takes back what was asked of it", async ({ open }) => {
    const { registry } = await open();
    await registry.setWish({ workerId: "w", kind: "cordon", wish: CORDON });
    expect(await registry.removeWorker({ workerId: "w" })).toBe("unknown");
    await register(registry, worker("w"));
    expect(await wishOf(registry)).toBeUndefined();
  });
}
