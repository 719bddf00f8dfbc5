// Short settings; part of `npm test`. Broken links between a store and its Redis: lost replies, late replies, half-open
// connections, and a server that stands still (field cases 23 and 24).
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { isFleetError } from "../src/errors.ts";
import { failureOf, range, until } from "../src/store/conformance/harness.ts";
import {
  declared,
  entry,
  payloads,
  peekAll,
  Producer,
  unaccounted,
} from "../src/store/conformance/producer.ts";
import { openStore } from "../src/store/open.ts";
import type { Store } from "../src/store/store.ts";
import { type FaultProxy, startProxy } from "./support/proxy.ts";
import { startRedis } from "./support/redis.ts";
import { freshNamespace, openShort } from "./support/stores.ts";

const DEADLINE_SECONDS = 1;
/** What a deadline may be late by on a busy machine. */
const GRACE_MS = 1000;

/** Fails unless the error says that the store could not be reached and that the call may be tried again. */
function expectUnavailable(error: unknown): void {
  expect(error).toSatisfy((e) => isFleetError(e, "FLEET_STORE_UNAVAILABLE"), String(error));
  expect(error).toMatchObject({ retryable: true });
}

describe("a link that breaks", () => {
  let proxy: FaultProxy;
  let direct: Store;
  let store: Store;

  beforeEach(async () => {
    const namespace = freshNamespace();
    proxy = await startProxy(Number(new URL(inject("redisUrl")).port));
    direct = await openStore(inject("redisUrl"), { namespace });
    store = await openShort(proxy.url, { namespace, deadlineSeconds: DEADLINE_SECONDS });
  });
  afterEach(async () => {
    proxy.heal();
    await store.close();
    await proxy.close();
    await direct.wipe();
    await direct.close();
  });

  /** Waits until calls work again. */
  const answering = () =>
    until("calls work again", async () => (await failureOf(() => store.streams.list())) === undefined);

  for (const how of ["reset", "silence"] as const) {
    it(`a push whose reply is lost (${how}) counts once, however often it is repeated`, async () => {
      await declared(direct, "t");
      const producer = new Producer(store, "t");
      await producer.push("before");
      proxy.loseReplyTo("marker", how);
      const entries = [entry("marker")];
      const started = performance.now();
      const error = await failureOf(() => producer.pushEntries(entries));
      expect(performance.now() - started).toBeLessThan(DEADLINE_SECONDS * 1000 + GRACE_MS);
      // Its operation id makes it harmless to send it again, so the store may have done so and know the outcome.
      expect(error).toSatisfy(
        (e) => e === undefined || (isFleetError(e, "FLEET_STORE_UNAVAILABLE") && e.outcome === "unknown"),
      );
      expect(proxy.counts.lostReplies).toBe(1);
      await answering();
      expect(await producer.repeat(entries)).toEqual({ outcome: "duplicate" });
      expect(await producer.push("after")).toMatchObject({ outcome: "pushed", length: 3 });
      expect(await peekAll(direct, "t")).toEqual(["before", "marker", "after"]);
      expect(await unaccounted(direct, "t")).toBe(0);
    });

    it(`a pop whose reply is lost (${how}) is not sent again; its entries are counted as popped`, async () => {
      await (await declared(direct, "lossy-pop")).push("warm-up", ...range(0, 10));
      // Afterwards the server surely knows the script, so that the next request is the one that pops.
      await store.streams.pop({ stream: "lossy-pop", n: 1 });
      proxy.loseReplyTo("lossy-pop", how);
      const error = await failureOf(() => store.streams.pop({ stream: "lossy-pop", n: 3 }));
      expectUnavailable(error);
      expect(error).toMatchObject({ outcome: "unknown" });
      expect(proxy.counts.lostReplies).toBe(1);
      await answering();
      expect(await direct.streams.stats({ stream: "lossy-pop" })).toMatchObject({ popped: 4, length: 7 });
      const rest = await store.streams.pop({ stream: "lossy-pop", n: 10 });
      expect(payloads(rest)).toEqual(range(3, 10));
    });

    it(`a publish whose reply is lost (${how}) is not sent again`, async () => {
      const seqs: number[] = [];
      const watch = direct.events.subscribe({ pattern: "t" }, ({ seq }) => seqs.push(seq));
      await watch.ready;
      await store.events.publish({ topic: "t", source: "s", payload: '"warm-up"' });
      proxy.loseReplyTo("lossy-payload", how);
      const error = await failureOf(() =>
        store.events.publish({ topic: "t", source: "s", payload: '"lossy-payload"' }),
      );
      expectUnavailable(error);
      expect(proxy.counts.lostReplies).toBe(1);
      await answering();
      expect((await direct.events.publish({ topic: "t", source: "s", payload: "3" })).seq).toBe(3);
      await until("all three events", () => seqs.length === 3);
      expect(seqs).toEqual([1, 2, 3]);
      await watch.close();
    });
  }

  it("a request that never arrives fails in time and can be made again", async () => {
    const producer = await declared(store, "t");
    proxy.blackHole("to-server");
    const entries = [entry("x")];
    const started = performance.now();
    expectUnavailable(await failureOf(() => producer.pushEntries(entries)));
    expect(performance.now() - started).toBeLessThan(DEADLINE_SECONDS * 1000 + GRACE_MS);
    expect(proxy.counts.swallowed).toBeGreaterThan(0);
    expect(await direct.streams.length({ stream: "t" })).toBe(0);
    proxy.heal();
    await answering();
    expect(await producer.repeat(entries)).toMatchObject({ outcome: "pushed", length: 1 });
  });

  it("replies that come late never answer another call", async () => {
    for (const stream of ["one", "two", "three"]) await declared(store, stream);
    await new Producer(direct, "one").push(1);
    await new Producer(direct, "two").push(1, 2);
    await new Producer(direct, "three").push(1, 2, 3);
    proxy.delay(DEADLINE_SECONDS * 1000 + 200);
    const late = await Promise.all(
      ["one", "two"].map((stream) => failureOf(() => store.streams.length({ stream }))),
    );
    late.forEach(expectUnavailable);
    expect(proxy.counts.delayed).toBeGreaterThan(0);
    proxy.heal();
    const wanted: Record<string, number> = { one: 1, two: 2, three: 3 };
    const end = performance.now() + DEADLINE_SECONDS * 1000 + 1000;
    let answers = 0;
    while (performance.now() < end) {
      for (const [stream, length] of Object.entries(wanted)) {
        const got = await store.streams.length({ stream }).catch(() => undefined);
        if (got === undefined) continue;
        answers += 1;
        expect({ stream, length: got }).toEqual({ stream, length });
      }
    }
    expect(answers).toBeGreaterThan(10);
  });

  it("a cut in the midst of many pushes loses and doubles nothing that was repeated", async () => {
    await declared(store, "t");
    const producers = range(0, 20).map(() => new Producer(store, "t"));
    const pushing = producers.map(async (producer, who) => {
      for (const i of range(0, 25)) {
        const entries = [entry(who * 100 + i)];
        producer.seq += 1;
        while ((await failureOf(() => producer.repeat(entries))) !== undefined);
      }
    });
    // Twenty pushes are under way at any time, so each cut takes some.
    const cutting = (async () => {
      for (const part of range(1, 5)) {
        const far = async () => (await direct.streams.length({ stream: "t" })) >= 90 * part;
        await until("progress over an open connection", async () => (await far()) && proxy.connections() > 0);
        proxy.cut();
      }
    })();
    await Promise.all([...pushing, cutting]);
    expect(proxy.counts.cut).toBeGreaterThanOrEqual(4);
    const all = (await peekAll(direct, "t")) as number[];
    expect(all.toSorted((a, b) => a - b)).toEqual(
      producers.flatMap((_, who) => range(who * 100, who * 100 + 25)),
    );
    for (const [who] of producers.entries()) {
      const mine = all.filter((value) => Math.floor(value / 100) === who);
      expect(mine).toEqual(range(who * 100, who * 100 + 25));
    }
  });

  it("23: a consumer that waits by hint goes on after a half-open cut", async () => {
    const producer = await declared(direct, "t");
    const got: unknown[] = [];
    let failures = 0;
    let hints = 0;
    let wake = () => {};
    const work = { busy: true };
    const watch = store.streams.watch({ stream: "t" }, () => {
      hints += 1;
      wake();
    });
    await watch.ready;
    // Waits for a hint, at most for 2 s, then pops: the pop itself never waits.
    const consumer = (async () => {
      while (work.busy) {
        const raws = await store.streams.pop({ stream: "t", n: 5 }).catch((error: unknown) => {
          expectUnavailable(error);
          failures += 1;
          return undefined;
        });
        if (raws !== undefined) got.push(...payloads(raws));
        if (raws === undefined || raws.length > 0) continue;
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, 2000);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
    })();
    await producer.push("before");
    await until("the entry before the cut", () => got.includes("before"));
    proxy.blackHole("both");
    await producer.push("during");
    await until("two calls that failed", () => failures >= 2, 10_000);
    expect(proxy.counts.swallowed).toBeGreaterThan(0);
    expect(got).toEqual(["before"]);
    proxy.heal();
    const healed = performance.now();
    await producer.push("after");
    await until("the entry after the cut", () => got.includes("after"), 2000 + GRACE_MS + 1000);
    expect(performance.now() - healed).toBeLessThan(2000 + GRACE_MS + 1000);
    // Nothing was lost either: a pop that never reached the server took nothing.
    expect(got).toEqual(["before", "during", "after"]);
    // And the hints themselves are back, though their old connection never said that it was dead.
    const before = hints;
    await until(
      "a hint after the heal",
      async () => {
        await producer.push("more");
        await until("popped", async () => (await direct.streams.length({ stream: "t" })) === 0, 5000);
        return hints > before;
      },
      20_000,
    );
    work.busy = false;
    wake();
    await watch.close();
    await consumer;
  }, 45_000);
});

describe("24: a server that is away", () => {
  for (const how of ["stands still", "is killed"] as const) {
    it(`pushes fail in time and eat no memory while it ${how}`, { timeout: 60_000 }, async () => {
      const server = await startRedis();
      const store = await openStore(server.url, { deadlineSeconds: 1 });
      try {
        await declared(store, "t");
        await new Producer(store, "t").push("before");
        const rssBefore = process.memoryUsage().rss;
        let rssMost = rssBefore;
        await server.kill(how === "stands still" ? "SIGSTOP" : "SIGKILL");
        const outcomes: Promise<{ error: unknown; ms: number }>[] = [];
        const began = performance.now();
        while (performance.now() - began < 4000) {
          const due = Math.floor(performance.now() - began);
          while (outcomes.length < due) {
            const started = performance.now();
            const value = outcomes.length;
            const push = failureOf(() => new Producer(store, "t").push(value));
            outcomes.push(push.then((error) => ({ error, ms: performance.now() - started })));
          }
          rssMost = Math.max(rssMost, process.memoryUsage().rss);
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        const results = await Promise.all(outcomes);
        expect(results.length).toBeGreaterThan(3500);
        for (const { error } of results)
          expect(error).toSatisfy(
            (e) => isFleetError(e, "FLEET_STORE_UNAVAILABLE") || isFleetError(e, "FLEET_STORE_BUSY"),
            String(error),
          );
        expect(Math.max(...results.map(({ ms }) => ms))).toBeLessThan(1000 + GRACE_MS);
        expect((rssMost - rssBefore) / 1024 / 1024).toBeLessThan(50);

        if (how === "stands still") await server.kill("SIGCONT");
        else await server.start();
        const back = performance.now();
        const producer = new Producer(store, "t");
        const entries = [entry("after")];
        producer.seq += 1;
        await until("the first push after the return", async () => {
          const result = await producer.repeat(entries).catch(() => undefined);
          if (result?.outcome === "undeclared") await declared(store, "t");
          return result?.outcome === "pushed" || result?.outcome === "duplicate";
        });
        expect(performance.now() - back).toBeLessThan(5000);
        // What had been sent may have arrived, but nothing arrived twice.
        const all = await peekAll(store, "t");
        expect(new Set(all).size).toBe(all.length);
        expect(all).toContain("after");
      } finally {
        await store.close();
        await server.stop();
      }
    });
  }
});
