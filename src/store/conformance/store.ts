import { describe, expect } from "vitest";
import { isFleetError } from "../../errors.ts";
import type { Store } from "../store.ts";
import { failureOf, HandClock, siteCase, type StoreHarness } from "./harness.ts";
import { declared, entry, peekAll } from "./producer.ts";
import { worker } from "./workers.ts";

const MINUTE = 60_000;

/** What holds for a store as a whole: its clock, its namespaces, its end. */
export function storeConformance(harness: StoreHarness): void {
  describe("store: clock", () => {
    clock(harness);
  });
  describe("store: namespaces and wipe", () => {
    namespaces(harness);
  });
  describe("store: close", () => {
    closing(harness);
  });
}

function clock(harness: StoreHarness): void {
  siteCase(harness, "store time is the time of day in milliseconds", async ({ open }) => {
    const store = await open();
    const now = await store.now();
    expect(Math.abs(now - Date.now())).toBeLessThan(MINUTE);
    const producer = await declared(store, "t");
    await producer.push(1);
    const { oldestTs } = (await store.streams.stats({ stream: "t" })) ?? {};
    expect(Number.isInteger(oldestTs)).toBe(true);
    expect(oldestTs).toBeGreaterThanOrEqual(Math.floor(now));
  });

  siteCase(harness, "a clock offset moves everything that this connection stamps", async ({ open }) => {
    const store = await open({ clockOffsetMs: -86_400_000 });
    const day = Date.now() - 86_400_000;
    expect(Math.abs((await store.now()) - day)).toBeLessThan(MINUTE);
    await (await declared(store, "t")).push(1);
    const { oldestTs } = (await store.streams.stats({ stream: "t" })) ?? {};
    expect(Math.abs((oldestTs ?? 0) - day)).toBeLessThan(MINUTE);
    const { ts } = await store.events.publish({ topic: "t", source: "s", payload: "1" });
    expect(Math.abs(ts - day)).toBeLessThan(MINUTE);
    const view = await store.registry.view();
    expect(Math.abs(view.now - day)).toBeLessThan(MINUTE);
  });

  siteCase(harness, "a frozen clock is the only clock", async ({ open }) => {
    const hand = new HandClock();
    const store = await open(hand.options);
    expect(await store.now()).toBe(hand.ms);
    hand.advance(1234);
    expect(await store.now()).toBe(hand.ms);
    expect((await store.registry.view()).now).toBe(hand.ms);
  });
}

async function fill(store: Store): Promise<void> {
  await (await declared(store, "t")).push("mine");
  await store.streams.quarantine({ stream: "t", entries: [{ raw: "x", reason: "y" }] });
  await store.events.publish({ topic: "t", source: "s", payload: "1" });
  await store.registry.register({ worker: worker("w"), manifests: [], ttlMs: MINUTE });
  const slots = [{ automation: "a", slotId: 0 }];
  const [lease] = await store.registry.claimSlots({
    workerId: "w",
    incarnation: "w-1",
    leaseMs: MINUTE,
    slots,
  });
  await store.registry.setState({ automation: "a", slotId: 0, token: lease?.token ?? "", value: '"state"' });
  await store.registry.lead({ candidate: "w", leaseMs: MINUTE });
}

async function contents(store: Store): Promise<unknown> {
  const view = await store.registry.view();
  return {
    streams: await store.streams.list(),
    entries: await peekAll(store, "t"),
    quarantined: (await store.streams.quarantined({ stream: "t", n: 9 })).length,
    seq: (await store.events.publish({ topic: "t", source: "s", payload: "1" })).seq,
    workers: view.workers.map(({ id }) => id),
    leases: view.leases.length,
    leader: view.leader,
    state: await store.registry.getState({ automation: "a", slotId: 0 }),
  };
}

const FULL = {
  streams: ["t"],
  entries: ["mine"],
  quarantined: 1,
  seq: 2,
  workers: ["w"],
  leases: 1,
  leader: "w",
  state: '"state"',
};
const EMPTY = {
  streams: [],
  entries: [],
  quarantined: 0,
  seq: 1,
  workers: [],
  leases: 0,
  leader: null,
  state: undefined,
};

function namespaces(harness: StoreHarness): void {
  siteCase(harness, "connections share one fleet id, namespaces do not", async ({ open, openBeside }) => {
    const [a, b, other] = await Promise.all([open(), open(), openBeside("x")]);
    expect(a.fleetId).not.toBe("");
    expect(b.fleetId).toBe(a.fleetId);
    expect(b.namespace).toBe(a.namespace);
    expect(other.fleetId).not.toBe(a.fleetId);
    expect(other.namespace).not.toBe(a.namespace);
  });

  siteCase(harness, "namespaces never meet, and wipe takes its own only", async ({ open, openBeside }) => {
    const own = await open();
    const other = await openBeside("x");
    await fill(own);
    expect(await contents(other)).toEqual(EMPTY);
    await other.wipe();
    await fill(other);
    expect((await own.wipe()).deleted).toBeGreaterThan(0);
    expect(await contents(own)).toEqual(EMPTY);
    expect(await contents(other)).toEqual(FULL);
    expect((await other.wipe()).deleted).toBeGreaterThan(0);
  });

  siteCase(harness, "a wiped store works on: undeclared, declare, push", async ({ open }) => {
    const store = await open();
    const producer = await declared(store, "t");
    await producer.push(1);
    await store.wipe();
    expect(await producer.pushEntries([entry(2)])).toEqual({ outcome: "undeclared" });
    await declared(store, "t");
    expect(await producer.repeat([entry(2)])).toMatchObject({ outcome: "pushed", length: 1 });
    expect(await store.streams.stats({ stream: "t" })).toMatchObject({ pushed: 1 });
    expect((await store.wipe()).deleted).toBeGreaterThan(0);
  });
}

function closing(harness: StoreHarness): void {
  siteCase(harness, "close is idempotent and every later call fails with FLEET_CLOSED", async ({ open }) => {
    const store = await open();
    await declared(store, "t");
    const watches = [
      store.streams.watch({ stream: "t" }, () => {}),
      store.events.subscribe({ pattern: "*" }, () => {}),
      store.registry.watch(() => {}),
    ];
    await Promise.all(watches.map(({ ready }) => ready));
    await Promise.all([store.close(), store.close()]);
    await store.close();
    for (const [name, call] of Object.entries(callsOn(store))) {
      const error = await failureOf(call);
      const code = isFleetError(error) ? error.code : String(error);
      expect({ name, code }).toEqual({ name, code: "FLEET_CLOSED" });
    }
    await Promise.all(watches.map((watch) => watch.close()));
  });

  siteCase(harness, "calls under way at the close settle", async ({ open }) => {
    const store = await open();
    const producer = await declared(store, "t");
    const calls = [
      producer.push(1),
      store.streams.length({ stream: "t" }),
      store.registry.view(),
      store.now(),
    ];
    const settled = Promise.allSettled(calls);
    await store.close();
    for (const one of await settled)
      if (one.status === "rejected") expect(one.reason).toSatisfy((reason) => isFleetError(reason));
  });

  if (harness.connections === "many") {
    siteCase(harness, "closing one connection leaves the others alone", async ({ open }) => {
      const [a, b] = await Promise.all([open(), open()]);
      await (await declared(a, "t")).push(1);
      await a.close();
      expect(await peekAll(b, "t")).toEqual([1]);
    });
  }
}

function callsOn(store: Store): Record<string, () => unknown> {
  const { streams, events, registry } = store;
  const slot = { automation: "a", slotId: 0 };
  const self = { workerId: "w", incarnation: "i" };
  return {
    now: () => store.now(),
    wipe: () => store.wipe(),
    declare: () =>
      streams.declare({ stream: "t", bounds: { maxLength: 1, ttlMs: 1, maxPayloadBytes: 1 }, as: "owner" }),
    push: () => streams.push({ stream: "t", entries: [entry(1)], op: { producer: "p", seq: 1 } }),
    pop: () => streams.pop({ stream: "t", n: 1 }),
    peek: () => streams.peek({ stream: "t", n: 1 }),
    length: () => streams.length({ stream: "t" }),
    stats: () => streams.stats({ stream: "t" }),
    list: () => streams.list(),
    quarantine: () => streams.quarantine({ stream: "t", entries: [{ raw: "x", reason: "y" }] }),
    quarantined: () => streams.quarantined({ stream: "t", n: 1 }),
    sweep: () => streams.sweep({ stream: "t" }),
    "streams.watch": () => streams.watch({ stream: "t" }, () => {}).ready,
    publish: () => events.publish({ topic: "t", source: "s", payload: "1" }),
    publishMany: () => events.publishMany({ events: [{ topic: "t", source: "s", payload: "1" }] }),
    subscribe: () => events.subscribe({ pattern: "t" }, () => {}).ready,
    register: () => registry.register({ worker: worker("w"), manifests: [], ttlMs: 1 }),
    beat: () => registry.beat({ ...self, ttlMs: 1, leaseMs: 1, leases: [] }),
    deregister: () => registry.deregister(self),
    pruneWorkers: () => registry.pruneWorkers({ offlineMs: 1 }),
    claimSlots: () => registry.claimSlots({ ...self, leaseMs: 1, slots: [slot] }),
    releaseSlots: () => registry.releaseSlots({ leases: [{ ...slot, token: "1" }] }),
    view: () => registry.view(),
    revision: () => registry.revision(),
    manifests: () => registry.manifests(),
    putDesired: () => registry.putDesired({ name: "a", desired: DESIRED, expected: 0 }),
    lead: () => registry.lead({ candidate: "w", leaseMs: 1 }),
    resign: () => registry.resign({ candidate: "w" }),
    putAssignments: () => registry.putAssignments({ assignments: {}, token: "1" }),
    getState: () => registry.getState(slot),
    setState: () => registry.setState({ ...slot, token: "1", value: "1" }),
    "registry.watch": () => registry.watch(() => {}).ready,
  };
}

const DESIRED = {
  slots: 1,
  config: null,
  paused: false,
  generation: 1,
  deployed: {},
  changedBy: { slots: "test", config: "test" },
};
