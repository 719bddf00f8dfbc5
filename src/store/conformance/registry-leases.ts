import { expect } from "vitest";
import type { HeldLease, Registry } from "../store.ts";
import { HandClock, openThree, range, siteCase, type StoreHarness } from "./harness.ts";
import { beat, claim, LEASE, register, slotIds, TTL, worker } from "./workers.ts";

async function two(registry: Registry) {
  const [a, b] = [worker("a"), worker("b")];
  await register(registry, a);
  await register(registry, b);
  return [a, b] as const;
}

const only = (leases: readonly HeldLease[]): HeldLease => {
  expect(leases).toHaveLength(1);
  return leases[0] as HeldLease;
};

export function registryLeases(harness: StoreHarness): void {
  siteCase(harness, "a claim grants what is free and only that", async ({ open }) => {
    const clock = new HandClock();
    const { registry } = await open(clock.options);
    const [a, b] = await two(registry);
    expect(slotIds(await claim(registry, a, "x", [0, 1]))).toEqual([0, 1]);
    const granted = await claim(registry, b, "x", [0, 1, 2]);
    expect(slotIds(granted)).toEqual([2]);
    // The holder's own slots are no exception: it renews them by its beat.
    expect(await claim(registry, a, "x", [0, 1, 2])).toEqual([]);
    expect(slotIds(await claim(registry, a, "y", [0]))).toEqual([0]);
    expect(await claim(registry, a, "y", [])).toEqual([]);
    const { leases } = await registry.view();
    expect(leases).toHaveLength(4);
    expect(leases.find((lease) => lease.automation === "x" && lease.slotId === 2)).toEqual({
      automation: "x",
      slotId: 2,
      workerId: "b",
      incarnation: "b-1",
      token: granted[0]?.token,
      expiresAt: clock.ms + LEASE,
    });
  });

  siteCase(harness, "a lease ends at its time, then another may claim the slot", async ({ open }) => {
    const clock = new HandClock();
    const { registry } = await open(clock.options);
    const [a, b] = await two(registry);
    const first = only(await claim(registry, a, "x", [0]));
    clock.advance(LEASE - 1);
    expect(await claim(registry, b, "x", [0])).toEqual([]);
    clock.advance(1);
    const second = only(await claim(registry, b, "x", [0]));
    expect(BigInt(second.token) > BigInt(first.token)).toBe(true);
    expect(await beat(registry, a, [first])).toMatchObject({ outcome: "ok", lost: [first] });
    expect(await beat(registry, b, [second])).toMatchObject({ outcome: "ok", lost: [] });
    expect((await registry.view()).leases).toMatchObject([{ workerId: "b", token: second.token }]);
  });

  siteCase(
    harness,
    "a beat renews the leases it names, also one that expired unclaimed",
    async ({ open }) => {
      const clock = new HandClock();
      const { registry } = await open(clock.options);
      const [a, b] = await two(registry);
      const lease = only(await claim(registry, a, "x", [0]));
      clock.advance(LEASE - 1);
      expect(await beat(registry, a, [lease])).toMatchObject({ outcome: "ok", lost: [] });
      clock.advance(LEASE - 1);
      expect(await claim(registry, b, "x", [0])).toEqual([]);
      clock.advance(LEASE);
      expect(await beat(registry, a, [lease])).toMatchObject({ outcome: "ok", lost: [] });
      expect(await claim(registry, b, "x", [0])).toEqual([]);
      expect((await registry.view()).leases).toMatchObject([
        { token: lease.token, expiresAt: clock.ms + LEASE },
      ]);
    },
  );

  siteCase(harness, "a beat tells which leases are lost: taken, released, never given", async ({ open }) => {
    const clock = new HandClock();
    const { registry } = await open(clock.options);
    const [a, b] = await two(registry);
    const leases = await claim(registry, a, "x", [0, 1, 2]);
    const [taken, released, kept] = [0, 1, 2].map((id) => leases.find(({ slotId }) => slotId === id)) as [
      HeldLease,
      HeldLease,
      HeldLease,
    ];
    const invented = { automation: "x", slotId: 9, token: "1" };
    await registry.releaseSlots({ leases: [released] });
    clock.advance(LEASE);
    await claim(registry, b, "x", [0]);
    const result = await beat(registry, a, [taken, released, kept, invented]);
    expect(result).toMatchObject({ outcome: "ok" });
    expect(result.outcome === "ok" ? result.lost.toSorted((x, y) => x.slotId - y.slotId) : []).toEqual([
      taken,
      released,
      invented,
    ]);
    expect(slotIds((await registry.view()).leases)).toEqual([0, 2]);
  });

  siteCase(
    harness,
    "leases that ended long ago are forgotten with workers that did, and no others",
    async ({ open, openBeside }) => {
      const clock = new HandClock();
      const [{ registry }, beside] = [await open(clock.options), await openBeside("-b", clock.options)];
      const [a, b] = await two(registry);
      await register(beside.registry, a);
      await claim(beside.registry, a, "x", [0]);
      const longAgo = await claim(registry, a, "x", [0, 1]);
      await claim(registry, b, "y", [5]);
      clock.advance(1000);
      const recent = only(await claim(registry, b, "x", [2]));
      clock.advance(1000);
      // Longer than its worker is known.
      const held = await registry.claimSlots({
        workerId: b.id,
        incarnation: b.incarnation,
        leaseMs: 600_000,
        slots: [{ automation: "x", slotId: 3 }],
      });
      clock.advance(LEASE);
      const slots = async () =>
        (await registry.view()).leases.map((lease) => `${lease.automation}/${lease.slotId}`).toSorted();
      expect(await registry.pruneWorkers({ offlineMs: 2000 })).toEqual({ removed: 0 });
      expect(await slots()).toEqual(["x/0", "x/1", "x/2", "x/3", "y/5"]);
      const { revision } = await registry.view();
      expect(await registry.pruneWorkers({ offlineMs: 1999 })).toEqual({ removed: 0 });
      expect(await slots()).toEqual(["x/2", "x/3"]);
      expect(await registry.revision()).toBe(revision);
      expect((await beside.registry.view()).leases).toHaveLength(1);
      // Whoever still bears one hears that it is lost; one that is there is renewed.
      const first = longAgo.find(({ slotId }) => slotId === 0) as HeldLease;
      expect(await beat(registry, b, [first, recent])).toMatchObject({ outcome: "ok", lost: [first] });
      expect(slotIds(await claim(registry, b, "x", [0, 3]))).toEqual([0]);
      clock.advance(TTL + LEASE);
      expect(await registry.pruneWorkers({ offlineMs: 0 })).toEqual({ removed: 2 });
      expect(await slots()).toEqual(["x/3"]);
      expect((await registry.view()).leases).toMatchObject([{ token: only(held).token }]);
      expect(await registry.removeWorker({ workerId: "b" })).toBe("unknown");
      expect(await slots()).toEqual(["x/3"]);
    },
  );

  siteCase(harness, "leases not named in a beat are not renewed", async ({ open }) => {
    const clock = new HandClock();
    const { registry } = await open(clock.options);
    const [a, b] = await two(registry);
    await claim(registry, a, "x", [0]);
    clock.advance(LEASE);
    await beat(registry, a, []);
    expect(slotIds(await claim(registry, b, "x", [0]))).toEqual([0]);
  });

  siteCase(harness, "under contention each slot is granted once", async (site) => {
    const stores = await openThree(site);
    const workers = range(0, 9).map((i) => worker(`w${i}`));
    for (const info of workers) await register(stores[0].registry, info);
    for (const round of range(0, 8)) {
      const granted = await Promise.all(
        workers.map((info, i) =>
          claim((stores[i % 3] as (typeof stores)[0]).registry, info, `x${round}`, range(0, 20)),
        ),
      );
      expect(slotIds(granted.flat())).toEqual(range(0, 20));
      expect(new Set(granted.flat().map(({ token }) => token)).size).toBe(20);
    }
  });

  siteCase(
    harness,
    "tokens grow, also within one microsecond and when the clock steps back",
    async ({ open }) => {
      const clock = new HandClock();
      const { registry } = await open(clock.options);
      const [a] = await two(registry);
      const tokens: bigint[] = [];
      const take = async (automation: string, ids: readonly number[]) => {
        const leases = await claim(registry, a, automation, ids);
        expect(leases).toHaveLength(ids.length);
        tokens.push(...leases.map(({ token }) => BigInt(token)).toSorted((x, y) => (x < y ? -1 : 1)));
        return leases;
      };
      const first = await take("x", [0, 1, 2]);
      await take("y", [0, 1]);
      clock.advance(-60_000);
      await take("z", [0]);
      await registry.releaseSlots({ leases: first });
      await take("x", [0, 1, 2]);
      clock.advance(120_000);
      await take("late", [0]);
      expect(tokens).toEqual([...new Set(tokens)].toSorted((x, y) => (x < y ? -1 : 1)));
      expect(tokens).toHaveLength(10);
      const micros = BigInt(clock.ms) * 1000n;
      expect(tokens.at(-1)).toBeGreaterThanOrEqual(micros);
      expect(tokens.at(-1)).toBeLessThan(micros + 1_000_000n);
    },
  );

  siteCase(harness, "tokens stay ahead over the loss of all data", async ({ open }) => {
    const store = await open();
    const [a] = await two(store.registry);
    const before = only(await claim(store.registry, a, "x", [0]));
    const led = await store.registry.lead({ candidate: "a", leaseMs: LEASE });
    await store.wipe();
    await two(store.registry);
    const after = only(await claim(store.registry, a, "x", [0]));
    expect(BigInt(after.token) > BigInt(before.token)).toBe(true);
    const leads = await store.registry.lead({ candidate: "b", leaseMs: LEASE });
    expect(leads.leading && BigInt(leads.token) > BigInt(led.token)).toBe(true);
  });

  siteCase(harness, "a release works by token only", async ({ open }) => {
    const { registry } = await open(new HandClock().options);
    const [a, b] = await two(registry);
    const lease = only(await claim(registry, a, "x", [0]));
    const wrong = { ...lease, token: String(BigInt(lease.token) - 1n) };
    await registry.releaseSlots({ leases: [wrong, { automation: "never", slotId: 3, token: lease.token }] });
    expect(await claim(registry, b, "x", [0])).toEqual([]);
    await registry.releaseSlots({ leases: [lease] });
    await registry.releaseSlots({ leases: [] });
    expect((await registry.view()).leases).toEqual([]);
    const next = only(await claim(registry, b, "x", [0]));
    await registry.releaseSlots({ leases: [lease] });
    expect((await registry.view()).leases).toMatchObject([{ workerId: "b", token: next.token }]);
  });

  siteCase(
    harness,
    "a thousand slots are claimed, renewed and released in one call each",
    async ({ open }) => {
      const clock = new HandClock();
      const { registry } = await open(clock.options);
      const [a, b] = await two(registry);
      const leases = await claim(registry, a, "x", range(0, 1000));
      expect(slotIds(leases)).toEqual(range(0, 1000));
      clock.advance(LEASE - 1);
      expect(await beat(registry, a, leases)).toMatchObject({ outcome: "ok", lost: [] });
      clock.advance(LEASE - 1);
      expect(await claim(registry, b, "x", range(0, 1000))).toEqual([]);
      await registry.releaseSlots({ leases });
      expect((await registry.view()).leases).toEqual([]);
    },
  );

  siteCase(
    harness,
    "a slot's state is written by the holder of its lease only, and outlives the lease",
    async ({ open }) => {
      const clock = new HandClock();
      const { registry } = await open(clock.options);
      const [a, b] = await two(registry);
      const slot = { automation: "x", slotId: 0 };
      expect(await registry.getState(slot)).toBeUndefined();
      const first = only(await claim(registry, a, "x", [0]));
      const text = '{"cursor":1781234567890123,"tags":[],"m":{},"t":"ü\\u0000 \\ud800"}';
      expect(await registry.setState({ ...slot, token: first.token, value: text })).toBe("stored");
      expect(await registry.getState(slot)).toBe(text);
      expect(await registry.getState({ automation: "x", slotId: 1 })).toBeUndefined();
      expect(await registry.setState({ ...slot, token: "1", value: '"no"' })).toBe("lease-lost");
      clock.advance(LEASE);
      const second = only(await claim(registry, b, "x", [0]));
      expect(await registry.setState({ ...slot, token: first.token, value: '"late"' })).toBe("lease-lost");
      expect(await registry.setState({ ...slot, token: first.token, value: null })).toBe("lease-lost");
      expect(await registry.getState(slot)).toBe(text);
      expect(await registry.setState({ ...slot, token: second.token, value: null })).toBe("stored");
      expect(await registry.getState(slot)).toBeUndefined();
      expect(await registry.setState({ ...slot, token: second.token, value: "null" })).toBe("stored");
      expect(await registry.getState(slot)).toBe("null");
      await registry.releaseSlots({ leases: [second] });
      expect(await registry.setState({ ...slot, token: second.token, value: "1" })).toBe("lease-lost");
      expect(await registry.getState(slot)).toBe("null");
    },
  );
}
