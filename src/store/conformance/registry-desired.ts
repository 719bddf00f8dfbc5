import { expect } from "vitest";
import type { Registry } from "../store.ts";
import { HandClock, openThree, range, siteCase, type StoreHarness, until } from "./harness.ts";
import { beat, claim, desired, manifest, register, status, TTL, worker } from "./workers.ts";

export function registryDesired(harness: StoreHarness): void {
  siteCase(
    harness,
    "desired state is stored only on top of the generation it was made from",
    async ({ open }) => {
      const [a, b] = await Promise.all([open(), open()]);
      const put = (registry: Registry, expected: number, slots: number) =>
        registry.putDesired({ name: "x", desired: desired(expected + 1, { slots }), expected });
      expect(await put(a.registry, 3, 1)).toBe("conflict");
      expect((await a.registry.view()).desired).toEqual({});
      expect(await put(a.registry, 0, 2)).toBe("stored");
      expect(await put(b.registry, 0, 3)).toBe("conflict");
      expect(await put(b.registry, 1, 4)).toBe("stored");
      expect(await put(a.registry, 1, 5)).toBe("conflict");
      expect((await a.registry.view()).desired).toEqual({ x: desired(2, { slots: 4 }) });
    },
  );

  siteCase(
    harness,
    "configs come back as they were: empty lists, big numbers, odd texts",
    async ({ open }) => {
      const [a, b] = await Promise.all([open(), open()]);
      const configs: unknown[] = [
        null,
        [],
        {},
        { tags: [], m: {}, n: 1_781_234_567_890_123, f: 0.1, tiny: 5e-324, huge: 1e21, t: "ü\u0000\ud800" },
        [[], [{}], null, false, ""],
        "text",
        0,
      ];
      const all = Object.fromEntries(
        configs.map((config, i) => [
          `a${i}`,
          desired(1, {
            config,
            paused: i % 2 === 0,
            deployed: i === 3 ? { slots: "2", config: '{"tags":[]}' } : {},
            changedBy: { slots: "cli", config: "api ü" },
          }),
        ]),
      );
      for (const [name, one] of Object.entries(all))
        expect(await a.registry.putDesired({ name, desired: one, expected: 0 })).toBe("stored");
      expect((await b.registry.view()).desired).toEqual(all);
    },
  );

  siteCase(harness, "of writers at once exactly one gets each generation", async (site) => {
    const stores = await openThree(site);
    for (const expected of range(0, 6)) {
      const answers = await Promise.all(
        range(0, 9).map((i) =>
          (stores[i % 3] as (typeof stores)[0]).registry.putDesired({
            name: "x",
            desired: desired(expected + 1, { slots: i }),
            expected,
          }),
        ),
      );
      expect(answers.filter((answer) => answer === "stored")).toHaveLength(1);
    }
    expect((await stores[0].registry.view()).desired).toMatchObject({ x: { generation: 6 } });
  });

  siteCase(harness, "revision grows with every change and rests without one", async ({ open }) => {
    const clock = new HandClock();
    const { registry } = await open(clock.options);
    let last = await registry.revision();
    const grows = async (what: string, change: () => Promise<unknown>) => {
      await change();
      const now = await registry.revision();
      expect({ what, grew: now > last }).toEqual({ what, grew: true });
      last = now;
    };
    const rests = async (what: string, call: () => Promise<unknown>) => {
      await call();
      expect({ what, revision: await registry.revision() }).toEqual({ what, revision: last });
    };
    const info = worker("w");
    await grows("register", () => register(registry, info));
    await grows("manifests", () =>
      registry.register({ worker: info, manifests: [manifest("m")], ttlMs: TTL }),
    );
    await grows("desired", () => registry.putDesired({ name: "x", desired: desired(1), expected: 0 }));
    await rests("conflict", () => registry.putDesired({ name: "x", desired: desired(1), expected: 0 }));
    const { token } = await registry.lead({ candidate: "w", leaseMs: 60_000 });
    last = await registry.revision();
    const assignments = { x: { "0": "w" } };
    await grows("assignments", () => registry.putAssignments({ assignments, token }));
    await rests("refused assignments", () => registry.putAssignments({ assignments: {}, token: "1" }));
    await rests("beat", () => beat(registry, info));
    await rests("view", () => registry.view());
    await rests("lead renewed", () => registry.lead({ candidate: "w", leaseMs: 60_000 }));
    await rests("nothing to prune", () => registry.pruneWorkers({ offlineMs: 1000 }));
    await rests("taken", () => register(registry, worker("w", 2)));
    await grows("deregister", () => registry.deregister({ workerId: "w", incarnation: "w-1" }));
    clock.advance(100_000);
    await grows("prune", () => registry.pruneWorkers({ offlineMs: 1000 }));
    expect((await registry.view()).revision).toBe(last);
  });

  siteCase(
    harness,
    "after a loss of all data the revision is past the time of what was read before",
    async ({ open }) => {
      const clock = new HandClock();
      const store = await open(clock.options);
      clock.advance(1000);
      await register(store.registry, worker("w"));
      const before = await store.registry.view();
      expect(before.revision).toBeGreaterThanOrEqual(clock.ms - 1000);
      expect(before.revision).toBeLessThan(before.now);
      await store.wipe();
      clock.advance(1);
      await register(store.registry, worker("w"));
      expect((await store.registry.view()).revision).toBeGreaterThan(before.now);
    },
  );

  siteCase(harness, "a beat answers the revision that the view shows", async ({ open }) => {
    const { registry } = await open();
    const info = worker("w");
    await register(registry, info);
    const answer = await beat(registry, info);
    expect(answer.outcome === "ok" && answer.revision).toBe((await registry.view()).revision);
  });

  siteCase(harness, "a change made by another connection hints", async ({ open }) => {
    const [watching, changing] = await Promise.all([open(), open()]);
    let hints = 0;
    const watch = watching.registry.watch(() => (hints += 1));
    await watch.ready;
    const info = worker("w");
    const { registry } = changing;
    const { token } = await registry.lead({ candidate: "w", leaseMs: 60_000 });
    const changes: Record<string, () => Promise<unknown>> = {
      register: () => register(registry, info),
      desired: () => registry.putDesired({ name: "x", desired: desired(1), expected: 0 }),
      assignments: () => registry.putAssignments({ assignments: { x: { "0": "w" } }, token }),
      deregister: () => registry.deregister({ workerId: "w", incarnation: "w-1" }),
    };
    for (const [name, change] of Object.entries(changes)) {
      const before = hints;
      await change();
      await until(`hint after ${name}`, () => hints > before, 2000);
    }
    await watch.close();
  });

  siteCase(harness, "the view is one consistent moment, also while everything changes", async ({ open }) => {
    const clock = new HandClock();
    const [a, b] = await Promise.all([open(clock.options), open(clock.options)]);
    const info = worker("w");
    await register(a.registry, info);
    await claim(a.registry, info, "x", [0]);
    const slots = [status("x", 0)];
    await a.registry.beat({
      workerId: "w",
      incarnation: "w-1",
      ttlMs: TTL,
      leaseMs: 3000,
      leases: [],
      slots,
    });
    // Two automations are always written in turn, so the first is never more than one generation ahead, and never behind.
    const work = { busy: true };
    const writing = (async () => {
      for (const expected of range(0, 40))
        for (const name of ["first", "second"])
          await a.registry.putDesired({ name, desired: desired(expected + 1), expected });
      work.busy = false;
    })();
    let last = 0;
    while (work.busy) {
      const view = await b.registry.view();
      const [first, second] = ["first", "second"].map((name) => view.desired[name]?.generation ?? 0);
      expect((first as number) - (second as number)).toBeGreaterThanOrEqual(0);
      expect((first as number) - (second as number)).toBeLessThanOrEqual(1);
      expect(view.revision).toBeGreaterThanOrEqual(last);
      last = view.revision;
      expect(view.workers).toMatchObject([{ id: "w", slots }]);
    }
    await writing;
  });
}
