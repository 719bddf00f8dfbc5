import { expect } from "vitest";
import { HandClock, openThree, range, siteCase, type StoreHarness } from "./harness.ts";

const LEASE = 3000;

export function registryLeader(harness: StoreHarness): void {
  siteCase(harness, "one leads while its lease lasts, and renews under the same token", async ({ open }) => {
    const clock = new HandClock();
    const { registry } = await open(clock.options);
    const lead = (candidate: string) => registry.lead({ candidate, leaseMs: LEASE });
    const first = await lead("a");
    expect(first).toEqual({ leading: true, token: first.token, leader: "a" });
    expect(await lead("b")).toMatchObject({ leading: false, leader: "a" });
    expect((await registry.view()).leader).toBe("a");
    clock.advance(LEASE - 1);
    expect(await lead("a")).toEqual(first);
    clock.advance(LEASE - 1);
    expect(await lead("b")).toMatchObject({ leading: false, leader: "a" });
    clock.advance(1);
    expect((await registry.view()).leader).toBeNull();
    const second = await lead("b");
    expect(second).toMatchObject({ leading: true, leader: "b" });
    expect(BigInt(second.token) > BigInt(first.token)).toBe(true);
    expect(await lead("a")).toMatchObject({ leading: false, leader: "b" });
    expect((await registry.view()).leader).toBe("b");
    // One that ended is renewed where nobody else has led: so the token tells who came back whether others did.
    clock.advance(LEASE);
    expect((await registry.view()).leader).toBeNull();
    expect(await lead("b")).toEqual(second);
  });

  siteCase(
    harness,
    "one of higher rank takes the lead over, and keeps it from those below",
    async ({ open }) => {
      const clock = new HandClock();
      const { registry } = await open(clock.options);
      const lead = (candidate: string, rank?: 0 | 1) =>
        registry.lead({ candidate, leaseMs: LEASE, ...(rank === undefined ? {} : { rank }) });
      const worker = await lead("worker");
      const master = await lead("master", 1);
      expect(master).toMatchObject({ leading: true, leader: "master" });
      expect(BigInt(master.token) > BigInt(worker.token)).toBe(true);
      expect(await registry.putAssignments({ assignments: {}, token: worker.token })).toBe("not-leader");
      expect(await lead("worker")).toMatchObject({ leading: false, leader: "master" });
      expect(await lead("other", 1)).toMatchObject({ leading: false, leader: "master" });
      expect(await lead("master", 1)).toEqual(master);
      expect((await registry.view()).leader).toBe("master");
      clock.advance(LEASE);
      expect(await lead("worker", 0)).toMatchObject({ leading: true, leader: "worker" });
    },
  );

  siteCase(harness, "of many candidates at once one leads", async (site) => {
    const stores = await openThree(site);
    const answers = await Promise.all(
      range(0, 9).map((i) =>
        (stores[i % 3] as (typeof stores)[0]).registry.lead({ candidate: `c${i}`, leaseMs: 10_000 }),
      ),
    );
    expect(answers.filter(({ leading }) => leading)).toHaveLength(1);
    expect(new Set(answers.map(({ leader }) => leader)).size).toBe(1);
  });

  siteCase(harness, "resigning frees the lead at once, and only the leader's does", async ({ open }) => {
    const { registry } = await open(new HandClock().options);
    const lead = (candidate: string) => registry.lead({ candidate, leaseMs: LEASE });
    const first = await lead("a");
    await registry.resign({ candidate: "b" });
    expect((await registry.view()).leader).toBe("a");
    await registry.resign({ candidate: "a" });
    expect((await registry.view()).leader).toBeNull();
    expect(await registry.putAssignments({ assignments: { x: { "0": "w" } }, token: first.token })).toBe(
      "not-leader",
    );
    const second = await lead("b");
    expect(second).toMatchObject({ leading: true, leader: "b" });
    expect(BigInt(second.token) > BigInt(first.token)).toBe(true);
  });

  siteCase(
    harness,
    "assignments are replaced as a whole, by the present leader's token only",
    async ({ open }) => {
      const clock = new HandClock();
      const [a, b] = await Promise.all([open(clock.options), open(clock.options)]);
      const first = await a.registry.lead({ candidate: "a", leaseMs: LEASE });
      const assignments = { x: { "0": "w1", "1": "w2", "10": "w.1" }, y: { "0": "w1" }, z: {} };
      expect(await a.registry.putAssignments({ assignments, token: first.token })).toBe("stored");
      expect((await b.registry.view()).assignments).toEqual(assignments);
      clock.advance(LEASE);
      // Nobody else leads yet, but this one does not any more either.
      expect(await a.registry.putAssignments({ assignments: {}, token: first.token })).toBe("not-leader");
      const second = await b.registry.lead({ candidate: "b", leaseMs: LEASE });
      expect(await a.registry.putAssignments({ assignments: {}, token: first.token })).toBe("not-leader");
      expect(await a.registry.putAssignments({ assignments: {}, token: "" })).toBe("not-leader");
      expect((await a.registry.view()).assignments).toEqual(assignments);
      expect(await b.registry.putAssignments({ assignments: { y: { "3": "w" } }, token: second.token })).toBe(
        "stored",
      );
      expect((await a.registry.view()).assignments).toEqual({ y: { "3": "w" } });
      expect(await b.registry.putAssignments({ assignments: {}, token: second.token })).toBe("stored");
      expect((await a.registry.view()).assignments).toEqual({});
    },
  );
}
