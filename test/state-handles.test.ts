// Short (`npm test`): locks, counters and rate limits from their users' side, on both stores.
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished, vi } from "vitest";
import { isFleetError, type ErrorCode } from "../src/errors.ts";
import { fleetOn, type Fleet } from "../src/automation/fleet.ts";
import { SILENT } from "../src/internal/log.ts";
import { failureOf, range, until } from "../src/store/conformance/harness.ts";
import { openStore } from "../src/store/open.ts";
import type { Store } from "../src/store/store.ts";
import { type Children, prepareChildren } from "./support/children.ts";
import type { LockHolderInput, LockHolderMessage } from "./support/children/lock-holder.ts";
import { limitRace } from "./support/limit-race.ts";
import { openPlace, PLACES } from "./support/places.ts";
import { startProxy } from "./support/proxy.ts";
import { freshNamespace, temporaryFolder } from "./support/stores.ts";

vi.setConfig({ testTimeout: 30_000 });

let children: Children;
beforeAll(async () => {
  children = await prepareChildren();
});
afterAll(() => children.dispose());

/** Asserts that a call fails with this code, and gives the message. */
async function refused(call: () => unknown, code: ErrorCode): Promise<string> {
  const error = await failureOf(call);
  expect(error).toSatisfy((thrown) => isFleetError(thrown, code), String(error));
  return (error as Error).message;
}

/** What must be there. */
function given<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error("nothing was given");
  return value;
}

describe.each(PLACES)("on $name", (place) => {
  async function setUp(): Promise<{
    a: Fleet;
    b: Fleet;
    store: Store;
    at: { url: string; namespace: string };
  }> {
    const folder = temporaryFolder();
    onTestFinished(() => folder.remove());
    const at = place.at(folder.path);
    const [one, two, store] = [await openPlace(at), await openPlace(at), await openPlace(at)];
    const [a, b] = [fleetOn(one, { log: SILENT, source: "a" }), fleetOn(two, { log: SILENT, source: "b" })];
    onTestFinished(async () => {
      await Promise.all([a.close(), b.close(), store.close()]);
    });
    return { a, b, store, at };
  }

  it("a lock has one holder at a time, over all processes", async () => {
    const { a, b } = await setUp();
    {
      await using lease = given(await a.lock("l"));
      expect(lease).toMatchObject({ name: "l", key: "" });
      expect(await b.lock("l")).toBeNull();
      expect(await a.lock("l")).toBeNull();
      await using other = given(await b.lock("l", { key: "k" }));
      expect(BigInt(other.token)).toBeGreaterThan(BigInt(lease.token));
      expect(lease.signal.aborted).toBe(false);
    }
    const again = given(await b.lock("l"));
    await again.release();
    // Twice is no error: a block that releases and ends does so.
    await again.release();
    expect(again.signal.aborted).toBe(false);
    expect(await refused(() => again.extend(1), "FLEET_LEASE_LOST")).toMatch(/released/);
  });

  it("whoever waits gets it in the order of asking, as soon as it is released", async () => {
    const { a, b, store } = await setUp();
    const first = given(await a.lock("l"));
    const order: string[] = [];
    const wait = (fleet: Fleet, who: string) =>
      fleet.lock("l", { waitSeconds: 20 }).then(async (lease) => {
        order.push(who);
        await given(lease).release();
      });
    const waits: Promise<void>[] = [];
    for (const [i, fleet] of [b, a, b, a].entries()) {
      waits.push(wait(fleet, `w${i}`));
      await until(`${i + 1} wait`, async () => {
        const [shown] = await store.state.locks.show({ name: "l" });
        return shown?.waiting.length === i + 1;
      });
    }
    const started = performance.now();
    await first.release();
    await Promise.all(waits);
    expect(order).toEqual(["w0", "w1", "w2", "w3"]);
    // By hints: the look behind lost ones comes once a second and waiter.
    expect(performance.now() - started).toBeLessThan(1800);
    expect(await a.lock("l", { waitSeconds: 0 })).not.toBeNull();
  });

  it("whoever has waited for long enough gets null and leaves the line", async () => {
    const { a, b, store } = await setUp();
    const lease = given(await a.lock("l"));
    expect(await b.lock("l", { waitSeconds: 0.2 })).toBeNull();
    await until(
      "nobody waits",
      async () => (await store.state.locks.show({ name: "l" }))[0]?.waiting.length === 0,
    );
    const waiting = b.lock("l", { waitSeconds: Number.POSITIVE_INFINITY });
    await until(
      "one waits",
      async () => (await store.state.locks.show({ name: "l" }))[0]?.waiting.length === 1,
    );
    await b.close();
    expect(await waiting).toBeNull();
    await until(
      "nobody waits",
      async () => (await store.state.locks.show({ name: "l" }))[0]?.waiting.length === 0,
    );
    await lease.release();
  });

  it("a lease that ends is told before anybody else can have it; its late holder changes nothing", async () => {
    const { a, b } = await setUp();
    const lease = given(await a.lock("l", { holdSeconds: 0.5 }));
    let other: unknown = "nobody yet";
    lease.signal.addEventListener("abort", () => (other = null));
    const next = given(await b.lock("l", { waitSeconds: 20 }));
    expect(other).toBeNull();
    expect(lease.signal.reason).toSatisfy((reason) => isFleetError(reason, "FLEET_LEASE_LOST"));
    await refused(() => lease.extend(5), "FLEET_LEASE_LOST");
    await refused(() => lease.release(), "FLEET_LEASE_LOST");
    await lease[Symbol.asyncDispose]();
    expect(await a.lock("l")).toBeNull();
    await next.release();
  });

  it("a lease lasts as long as it is extended, by hand or by itself", async () => {
    const { a, b, store } = await setUp();
    const byHand = given(await a.lock("l", { key: "hand", holdSeconds: 0.6 }));
    const byItself = given(await a.lock("l", { key: "self", holdSeconds: 0.6, autoExtend: true }));
    await byHand.extend(30);
    await delay(1500);
    expect(await b.lock("l", { key: "hand" })).toBeNull();
    expect(await b.lock("l", { key: "self" })).toBeNull();
    expect([byHand.signal.aborted, byItself.signal.aborted]).toEqual([false, false]);
    // What somebody took away is lost with the next renewal.
    const [shown] = (await store.state.locks.show({ name: "l" })).filter(({ key }) => key === "self");
    await store.state.locks.release({ name: "l", key: "self", token: given(shown?.holder).token });
    await until("its loss is told", () => byItself.signal.aborted);
    await byHand.release();
    expect(await b.lock("l", { key: "hand" })).not.toBeNull();
  });

  it("a frozen holder has lost its lock when it goes on (field case 18)", async () => {
    const { b, at } = await setUp();
    const input: LockHolderInput = { ...at, name: "l", holdSeconds: 1 };
    const holder = children.start<LockHolderMessage>("lock-holder", input);
    const { token } = await holder.next((message): message is { token: string } => "token" in message);
    holder.kill("SIGSTOP");
    const meanwhile = given(await b.lock("l", { waitSeconds: 20 }));
    await delay(1000);
    await meanwhile.release();
    holder.send("extend");
    holder.kill("SIGCONT");
    const told = await holder.next(
      (message): message is Extract<LockHolderMessage, { code: string }> => "code" in message,
    );
    expect(told).toEqual({ code: "FLEET_LEASE_LOST", aborted: true, late: "FLEET_LEASE_LOST" });
    const next = given(await b.lock("l", { waitSeconds: 20 }));
    expect(BigInt(meanwhile.token)).toBeGreaterThan(BigInt(token));
    expect(BigInt(next.token)).toBeGreaterThan(BigInt(meanwhile.token));
    await holder.ended;
  });

  it("a fleet that closes gives its locks back", async () => {
    const { a, b } = await setUp();
    await a.lock("l", { holdSeconds: 3600 });
    await a.close();
    expect(await b.lock("l")).not.toBeNull();
    await refused(() => a.lock("l"), "FLEET_CLOSED");
    await refused(() => a.counter("c"), "FLEET_CLOSED");
    await refused(() => a.rateLimit("r", { limit: 1, perSeconds: 1 }), "FLEET_CLOSED");
  });

  it("a counter counts exactly, whoever counts", async () => {
    const { a, b } = await setUp();
    const [mine, theirs] = [a.counter("c"), b.counter("c")];
    expect(await mine.get()).toBe(0);
    const values = await Promise.all(range(0, 200).map((i) => (i % 2 === 0 ? mine : theirs).add()));
    expect(values.toSorted((x, y) => x - y)).toEqual(range(1, 201));
    expect(await theirs.add(-5)).toBe(195);
    expect(await mine.set(10)).toBe(195);
    expect(await theirs.compareAndSet(11, 12)).toBe(false);
    expect(await theirs.compareAndSet(10, 12)).toBe(true);
    expect(await a.counter("c", { key: "other" }).get()).toBe(0);
    await mine.set(Number.MAX_SAFE_INTEGER);
    expect(await refused(() => theirs.add(1), "FLEET_COUNTER_OVERFLOW")).toMatch(
      /"c" stands at 9007199254740991/,
    );
    expect(await mine.get()).toBe(Number.MAX_SAFE_INTEGER);
  });

  it("a rate limit grants what its windows allow; whoever waits gets its turn", async () => {
    const { a, b } = await setUp();
    const windows = [
      { limit: 20, perSeconds: 1, burst: 2 },
      { limit: 100, perSeconds: 3600, burst: 5 },
    ];
    const [mine, theirs] = [
      a.rateLimit("r", { windows }),
      b.rateLimit("r", { windows: windows.toReversed() }),
    ];
    const began = performance.now();
    expect(await mine.take()).toMatchObject({ granted: true });
    expect(await theirs.take({ cost: 2, waitSeconds: 5 })).toMatchObject({ granted: true });
    const inLine = await Promise.all([mine.take({ waitSeconds: 5 }), theirs.take({ waitSeconds: 5 })]);
    const times = inLine.flatMap((taken) => (taken.granted ? [taken.at] : []));
    expect(times).toHaveLength(2);
    // Five are all of the hour for now.
    const empty = await theirs.take({ waitSeconds: 2 });
    expect(empty).toMatchObject({ granted: false });
    // One comes back every 36 s, and the first was taken a moment after `began`.
    const sinceSeconds = (performance.now() - began) / 1000;
    expect(empty.granted ? 0 : empty.retryInSeconds).toBeGreaterThan(35 - sinceSeconds);
    // Whoever does not wait is refused at once, by the tighter of the windows: half of 600 s for the next one.
    const slow = {
      windows: [
        { limit: 2, perSeconds: 600, burst: 2 },
        { limit: 100, perSeconds: 3600, burst: 5 },
      ],
    };
    expect(await a.rateLimit("slow", slow).take({ cost: 2 })).toMatchObject({ granted: true });
    const refusal = await b.rateLimit("slow", slow).take();
    expect(refusal.granted ? 0 : refusal.retryInSeconds).toBeGreaterThan(200);
    expect(refusal.granted ? 0 : refusal.retryInSeconds).toBeLessThanOrEqual(300);
    // Other keys are other limits.
    expect(await a.rateLimit("r", { windows, key: "k" }).take()).toMatchObject({ granted: true });
  });

  it("whoever stops waiting for a permit gives its place back", async () => {
    const { a, b, store } = await setUp();
    const options = { limit: 1, perSeconds: 60 };
    await b.rateLimit("r", options).take();
    const waiting = a.rateLimit("r", options).take({ waitSeconds: 120 });
    await until("a permit is reserved", async () => {
      const [shown] = await store.state.limits.show({ name: "r", n: 1 });
      return given(shown).freeAt - (await store.now()) > 61_000;
    });
    await a.close();
    expect(await waiting).toMatchObject({ granted: false });
    const next = await b.rateLimit("r", options).take();
    expect(next.granted ? 0 : next.retryInSeconds).toBeLessThanOrEqual(60);
  });

  it("four processes together keep to a rate, and use it", async () => {
    const { most, used, each } = await limitRace(children, place, { limit: 50, seconds: 5, processes: 4 });
    expect(most).toBeLessThanOrEqual(50);
    expect(used).toBeGreaterThanOrEqual(0.95);
    // Fair: each has its part.
    expect(Math.min(...each)).toBeGreaterThan(20);
  });
});

it("10 000 additions over a link that loses replies at random count exactly", async () => {
  const namespace = freshNamespace();
  const proxy = await startProxy(Number(new URL(inject("redisUrl")).port));
  const [direct, store] = [
    await openStore(inject("redisUrl"), { namespace }),
    await openStore(proxy.url, { namespace, deadlineSeconds: 20 }),
  ];
  const fleet = fleetOn(store, { log: SILENT });
  onTestFinished(async () => {
    await fleet.close();
    await direct.close();
    await proxy.close();
  });
  const counter = fleet.counter("c");
  const done = { additions: 0 };
  const adding = Promise.all(
    range(0, 16).map(async () => {
      for (let i = 0; i < 625; i++) {
        await counter.add();
        done.additions += 1;
      }
    }),
  );
  while (done.additions < 9000) {
    // Any call may be the one, and several are under way with it.
    proxy.loseReplyTo("EVALSHA", "reset");
    const next = done.additions + 50 + Math.random() * 500;
    await Promise.race([adding, until("additions go on", () => done.additions >= next, 20_000)]);
  }
  await adding;
  expect(done.additions).toBe(10_000);
  expect(proxy.counts.lostReplies).toBeGreaterThan(10);
  expect(await direct.state.counters.get({ name: "c", key: "" })).toBe(10_000);
});

it("wrong options are refused, and the message says what to do", async () => {
  const fleet = fleetOn(await openStore("sqlite::memory:"), { log: SILENT });
  onTestFinished(() => fleet.close());
  const rate = (options: unknown) => () => fleet.rateLimit("r", options as { limit: 1; perSeconds: 1 });
  const cases: [() => unknown, ErrorCode, RegExp][] = [
    [() => fleet.lock("No"), "FLEET_NAME_INVALID", /lock "No"/],
    [
      () => fleet.lock("l", { holdSecond: 3 } as object),
      "FLEET_OPTION_INVALID",
      /did you mean "holdSeconds"/,
    ],
    [
      () => fleet.lock("l", { holdSeconds: 0 }),
      "FLEET_OPTION_INVALID",
      /lock "l": holdSeconds must be above 0/,
    ],
    [() => fleet.lock("l", { waitSeconds: -1 }), "FLEET_OPTION_INVALID", /waitSeconds must be at least 0/],
    [() => fleet.lock("l", { key: 5 as never }), "FLEET_OPTION_INVALID", /key must be a text/],
    [() => fleet.lock("l", { key: "a\0" }), "FLEET_OPTION_INVALID", /none of them NUL/],
    [
      async () => (await fleet.lock("l"))?.extend(0),
      "FLEET_OPTION_INVALID",
      /extend: seconds must be above 0/,
    ],
    [() => fleet.counter("c").add(0.5), "FLEET_OPTION_INVALID", /counter "c": add must be a whole number/],
    [() => fleet.counter("c").compareAndSet(0, Number.NaN), "FLEET_OPTION_INVALID", /compareAndSet: value/],
    [() => fleet.counter("c", { keys: "x" } as object), "FLEET_OPTION_INVALID", /did you mean "key"/],
    [rate(undefined), "FLEET_OPTION_INVALID", /limit is missing, for example/],
    [rate({ limit: 5 }), "FLEET_OPTION_INVALID", /perSeconds is missing/],
    [
      rate({ limit: 5, perSeconds: 1, burst: 6 }),
      "FLEET_OPTION_INVALID",
      /burst must be at most limit, which is 5/,
    ],
    [rate({ limit: 5, perSeconds: 1, windows: [] }), "FLEET_OPTION_INVALID", /an array of 1 to 8 windows/],
    [
      rate({ limit: 5, windows: [{ limit: 1, perSeconds: 1 }] }),
      "FLEET_OPTION_INVALID",
      /either limit, perSeconds and burst, or windows/,
    ],
    [
      rate({
        windows: [
          { limit: 1, perSeconds: 1 },
          { limit: 1, perSecond: 5 },
        ],
      }),
      "FLEET_OPTION_INVALID",
      /windows\[1\]: unknown option "perSecond"; did you mean "perSeconds"/,
    ],
    [
      rate({
        windows: [
          { limit: 1, perSeconds: 1 },
          { limit: 2, perSeconds: 1 },
        ],
      }),
      "FLEET_OPTION_INVALID",
      /two windows of 1 s; keep the tighter/,
    ],
    [rate({ limit: 2_000_000, perSeconds: 1 }), "FLEET_OPTION_INVALID", /more than a million per second/],
    [
      () => fleet.rateLimit("r", { limit: 5, perSeconds: 1 }).take({ cost: 2 }),
      "FLEET_OPTION_INVALID",
      /a cost of 2 is more than may be taken at once of 5 in 1 s; raise burst, which is 1, to 2/,
    ],
  ];
  for (const [call, code, message] of cases) expect(await refused(call, code)).toMatch(message);
});
