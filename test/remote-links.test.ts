// Short settings; part of `npm test`. Broken links between a store and the master that serves it: cuts, half-open links, lost answers, a
// master that goes and comes back, receivers that do not take what they asked for.
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { isFleetError } from "../src/errors.ts";
import { eventBus } from "../src/primitives/events.ts";
import { failureOf, range, until } from "../src/store/conformance/harness.ts";
import { declared, entry, payloads, peekAll, Producer } from "../src/store/conformance/producer.ts";
import { SILENT } from "../src/internal/log.ts";
import { openStore } from "../src/store/open.ts";
import type { Store } from "../src/store/store.ts";
import { startRelay, type StoreRelay } from "../src/worker/store-relay.ts";
import { type FaultProxy, startProxy } from "./support/proxy.ts";
import { freePort } from "./support/redis.ts";
import { freshNamespace, openShort } from "./support/stores.ts";
import { openServed, type ServedStore, serveOn, TOKEN } from "./support/served.ts";

const DEADLINE_SECONDS = 1;
/** What a deadline may be late by on a busy machine. */
const GRACE_MS = 1500;

let direct: Store;
let master: ServedStore;
let proxy: FaultProxy;
let store: Store;
/** How often the link was found lost. */
let lost = 0;

beforeEach(async () => {
  direct = await openStore("sqlite::memory:");
  master = await serveOn(direct);
  proxy = await startProxy(master.port);
  lost = 0;
  store = await openServed(`http://127.0.0.1:${proxy.port}`, {
    deadlineSeconds: DEADLINE_SECONDS,
    log: (_, message) => void (lost += message.startsWith("lost the link") ? 1 : 0),
  });
});
afterEach(async () => {
  proxy.heal();
  await store.close();
  await proxy.close();
  await master.close();
  await direct.close();
});

const answering = () =>
  until("calls work again", async () => (await failureOf(() => store.now())) === undefined, 10_000);

/** Ends the link and lets no new one come up. */
async function cutOff(): Promise<void> {
  proxy.refuse();
  proxy.cut();
  expect(proxy.counts.cut).toBe(1);
  await until("the loss to be noticed", () => lost === 1);
}

function expectUnavailable(error: unknown, outcome?: "unknown"): void {
  expect(error).toSatisfy((e) => isFleetError(e, "FLEET_STORE_UNAVAILABLE"), String(error));
  expect(error).toMatchObject({ retryable: true });
  expect((error as { outcome?: string }).outcome).toBe(outcome);
}

describe("calls", () => {
  for (const how of ["reset", "silence"] as const) {
    it(`one whose answer is lost (${how}) has outcome "unknown" and is not sent again`, async () => {
      await (await declared(direct, "t")).push(...range(0, 10));
      await store.now();
      // Frames to the server are masked, so it is the next one, whatever is in it.
      proxy.loseReplyTo("", how);
      const started = performance.now();
      expectUnavailable(await failureOf(() => store.streams.pop({ stream: "t", n: 3 })), "unknown");
      expect(performance.now() - started).toBeLessThan(DEADLINE_SECONDS * 1000 + GRACE_MS);
      expect(proxy.counts.lostReplies).toBe(1);
      await answering();
      expect(await direct.streams.stats({ stream: "t" })).toMatchObject({ popped: 3, length: 7 });
      expect(payloads(await store.streams.pop({ stream: "t", n: 10 }))).toEqual(range(3, 10));
    });
  }

  it("a numbered one can be repeated", async () => {
    await declared(direct, "t");
    const producer = new Producer(store, "t");
    await store.now();
    proxy.loseReplyTo("", "reset");
    const entries = [entry("marker")];
    expectUnavailable(await failureOf(() => producer.pushEntries(entries)), "unknown");
    await answering();
    expect(await producer.repeat(entries)).toEqual({ outcome: "duplicate" });
    expect(await peekAll(direct, "t")).toEqual(["marker"]);
  });

  it("with no link one waits for it, until its deadline, and is not sent then", async () => {
    await declared(direct, "t");
    await cutOff();
    const producer = new Producer(store, "t");
    const started = performance.now();
    expectUnavailable(await failureOf(() => producer.push("late")));
    const took = performance.now() - started;
    expect(took).toBeGreaterThan(DEADLINE_SECONDS * 900);
    expect(took).toBeLessThan(DEADLINE_SECONDS * 1000 + GRACE_MS);
    expect(proxy.counts.refused).toBeGreaterThan(0);
    const waiting = producer.push("in time");
    proxy.heal();
    expect(await waiting).toMatchObject({ outcome: "pushed" });
    expect(await peekAll(direct, "t")).toEqual(["in time"]);
  });

  it("a half-open link is noticed, and a new one made", async () => {
    await declared(direct, "t");
    proxy.blackHole("both");
    const producer = new Producer(store, "t");
    expectUnavailable(await failureOf(() => producer.push("x")), "unknown");
    expect(proxy.counts.swallowed).toBeGreaterThan(0);
    const before = proxy.counts.accepted;
    proxy.heal();
    await answering();
    expect(proxy.counts.accepted).toBeGreaterThan(before);
    expect(await direct.streams.length({ stream: "t" })).toBe(0);
  });

  it("an idle half-open link is noticed too", async () => {
    const before = proxy.counts.accepted;
    proxy.blackHole("to-client");
    await until("a new attempt", () => proxy.counts.accepted > before, 10_000);
    expect(proxy.counts.swallowed).toBeGreaterThan(0);
    proxy.heal();
    await answering();
  });

  it("a slow link is no dead one: what comes late fails alone", async () => {
    proxy.delay(DEADLINE_SECONDS * 1000 + 300);
    const before = proxy.counts.accepted;
    expectUnavailable(await failureOf(() => store.now()), "unknown");
    expect(proxy.counts.delayed).toBeGreaterThan(0);
    proxy.heal();
    await answering();
    // Pongs of before the delay may be all that came in time; but no storm of new links follows.
    expect(proxy.counts.accepted - before).toBeLessThanOrEqual(2);
  });

  it("so many at once and no more", async () => {
    proxy.blackHole("to-server");
    const calls = range(0, 20_500).map(() => failureOf(() => store.streams.list()));
    const urgent = failureOf(() => store.registry.revision());
    const errors = await Promise.all(calls);
    const busy = errors.filter((error) => isFleetError(error, "FLEET_STORE_BUSY"));
    expect(busy.length).toBe(20_500 - 19_000);
    for (const error of errors) expect(error).toMatchObject({ retryable: true });
    // What keeps leases has room of its own.
    expectUnavailable(await urgent, "unknown");
  });

  it("a master that goes and comes back loses nothing, and has all links again", async () => {
    const port = await freePort();
    const first = await serveOn(direct, { port });
    const linked = await openServed(first.url);
    try {
      const producer = await declared(linked, "t");
      await producer.push(0);
      let hints = 0;
      await linked.streams.watch({ stream: "t" }, () => (hints += 1)).ready;
      await first.close();
      expect(first.server.links).toBe(0);
      const waiting = producer.push(1);
      const second = await serveOn(direct, { port });
      try {
        expect(await waiting).toMatchObject({ outcome: "pushed", length: 2 });
        await until("a hint, as some may have been lost", () => hints > 0);
        expect(second.server.links).toBe(1);
      } finally {
        await linked.close();
        await second.close();
      }
    } finally {
      await linked.close();
    }
  });
});

describe("a store behind that is away", () => {
  it("is said so in its own words, and what was asked for is heard once it is back", async () => {
    const between = await startProxy(Number(new URL(inject("redisUrl")).port));
    const behind = await openShort(between.url, { namespace: freshNamespace(), deadlineSeconds: 0.5 });
    const other = await serveOn(behind);
    const link = await openServed(other.url, { deadlineSeconds: 3 });
    try {
      between.refuse();
      between.cut();
      expect(between.counts.cut).toBeGreaterThan(0);
      const error = await failureOf(() => link.streams.list());
      expectUnavailable(error);
      expect(String(error)).toContain("redis://127.0.0.1");
      let heard = 0;
      const watch = link.registry.watch(() => (heard += 1));
      expectUnavailable(await failureOf(() => watch.ready));
      between.heal();
      await until("calls work again", async () => (await failureOf(() => link.now())) === undefined, 10_000);
      await until(
        "a hint",
        async () => {
          await link.registry.lead({ candidate: `c${heard}`, leaseMs: 1 });
          return heard > 0;
        },
        10_000,
      );
      expect(other.server.links).toBe(1);
    } finally {
      await link.close();
      await other.close();
      await behind.close();
      await between.close();
    }
  });
});

describe("through a worker's relay", () => {
  let relay: StoreRelay;
  let child: Store;
  beforeEach(async () => {
    relay = await startRelay(store, SILENT);
    child = await openStore(relay.url, { token: relay.token, deadlineSeconds: DEADLINE_SECONDS + 1 });
  });
  afterEach(async () => {
    await child.close();
    await relay.close();
  });

  it("what did not leave the machine is known not to have been done", async () => {
    await cutOff();
    const error = await failureOf(() => child.streams.pop({ stream: "t", n: 1 }));
    expectUnavailable(error);
    expect(String(error)).toContain(`no link to http://127.0.0.1:${proxy.port}`);
    proxy.heal();
    await until("calls work again", async () => (await failureOf(() => child.now())) === undefined, 10_000);
  });

  it("watches hear on, and are told that they may have missed something", async () => {
    const keys: (string | undefined)[] = [];
    let hints = 0;
    const watches = [
      child.state.locks.watch({ name: "l" }, (key) => keys.push(key)),
      child.registry.watch(() => (hints += 1)),
    ];
    await Promise.all(watches.map(({ ready }) => ready));
    await cutOff();
    proxy.heal();
    await until("both to be told", () => hints === 1 && keys.length === 1);
    expect(keys).toEqual([undefined]);
    await direct.registry.putDesired({ name: "a", desired: DESIRED, expected: 0 });
    await until("a hint", () => hints > 1);
  });

  it("takes its own token only, and the one link to the master is all there is", async () => {
    expect(await failureOf(() => openStore(relay.url, { token: TOKEN }))).toMatchObject({
      code: "FLEET_TOKEN_REFUSED",
    });
    expect(child.fleetId).toBe(direct.fleetId);
    expect(master.server.links).toBe(1);
  });
});

describe("watches", () => {
  it("hear again after a cut, and are told once that they may have missed something", async () => {
    await declared(direct, "t");
    const heard = { streams: 0, registry: 0, pools: 0, queues: 0, locks: [] as (string | undefined)[] };
    const watches = [
      store.streams.watch({ stream: "t" }, () => (heard.streams += 1)),
      store.registry.watch(() => (heard.registry += 1)),
      store.pools.watch({ pool: "p" }, () => (heard.pools += 1)),
      store.queues.watch({ queue: "q" }, { onReady: () => (heard.queues += 1) }),
      store.state.locks.watch({ name: "l" }, (key) => heard.locks.push(key)),
    ];
    await Promise.all(watches.map(({ ready }) => ready));
    proxy.cut();
    expect(proxy.counts.cut).toBe(1);
    const once = { streams: 1, registry: 1, pools: 1, queues: 1, locks: [undefined] };
    await until("each to be told", () => JSON.stringify(heard) === JSON.stringify(once));
    await new Producer(direct, "t").push("after");
    await until("a hint", () => heard.streams === 2);
    await Promise.all(watches.map((watch) => watch.close()));
    await direct.streams.pop({ stream: "t", n: 1 });
    await new Producer(direct, "t").push("unheard");
    await store.now();
    expect(heard.streams).toBe(2);
  });

  it("a subscription counts exactly what it missed", async () => {
    const seen: { payload: unknown; missed: number; seq: number }[] = [];
    const bus = eventBus({ store: store.events, source: "test" });
    const subscription = bus.subscribe("t");
    await subscription.ready;
    const reading = (async () => {
      for await (const { payload, missed, seq } of subscription) seen.push({ payload, missed, seq });
    })();
    const publish = (payload: number) =>
      direct.events.publish({ topic: "t", source: "s", payload: String(payload) });
    await publish(1);
    await until("the first", () => seen.length === 1);
    await cutOff();
    for (const payload of range(2, 9)) await publish(payload);
    proxy.heal();
    await until(
      "an event again",
      async () => {
        await publish(99);
        return seen.length > 1;
      },
      10_000,
    );
    await subscription.close();
    await reading;
    expect(seen[0]).toEqual({ payload: 1, missed: 0, seq: 1 });
    // Seven that were sent during the cut, and those by which its end was looked for.
    expect(seen[1]?.missed).toBeGreaterThanOrEqual(7);
    for (const [i, { seq, missed }] of seen.entries()) expect(missed).toBe(seq - (seen[i - 1]?.seq ?? 0) - 1);
  });

  it("asked for while there is no link, one is ready as soon as there is", async () => {
    await cutOff();
    let heard = 0;
    const watch = store.registry.watch(() => (heard += 1));
    proxy.heal();
    await watch.ready;
    await direct.registry.putDesired({ name: "a", desired: DESIRED, expected: 0 });
    await until("a hint", () => heard > 0);
    expect(lost).toBe(1);
  });

  it("one that is not ready within the deadline fails so, and hears all the same once it can", async () => {
    await cutOff();
    let heard = 0;
    const watch = store.registry.watch(() => (heard += 1));
    expectUnavailable(await failureOf(() => watch.ready));
    proxy.heal();
    await until("a hint for what may have been missed", () => heard > 0);
    expect(lost).toBe(1);
  });
});

const DESIRED = {
  slots: 1,
  config: null,
  paused: false,
  generation: 1,
  deployed: {},
  changedBy: { slots: "test", config: "test" },
};
