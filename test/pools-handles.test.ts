// Short (`npm test`): pools from the side of those who put and claim, on both stores.
import { describe, expect, expectTypeOf, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { definePool, type PoolContract } from "../src/contracts/pool.ts";
import { FleetError, isFleetError, type ErrorCode } from "../src/errors.ts";
import type { Log } from "../src/internal/log.ts";
import { Pools } from "../src/primitives/pools.ts";
import type { Lease } from "../src/primitives/pool.ts";
import { until } from "../src/store/conformance/harness.ts";
import type { PoolStore } from "../src/store/pool-store.ts";
import type { Store } from "../src/store/store.ts";
import { openPlace, PLACES } from "./support/places.ts";
import { temporaryFolder } from "./support/stores.ts";

vi.setConfig({ testTimeout: 30_000 });

const Session = z.object({ cookie: z.string(), since: z.coerce.date().optional() });
const Tags = z.object({
  site: z.string(),
  tier: z.enum(["free", "pro"]).default("free"),
  langs: z.array(z.string()).optional(),
});
const SESSIONS = definePool("sessions", { payload: Session, tags: Tags, strategy: "fifo" });
const ANY = definePool("any", { payload: z.unknown() });
const cookie = "c";

describe.each(PLACES)("on $name", ({ at }) => {
  /** Pools of one process, counted; and those of another one. */
  async function setUp(replace?: (inner: PoolStore) => Partial<PoolStore>) {
    const folder = temporaryFolder();
    onTestFinished(() => folder.remove());
    const place = at(folder.path);
    const [store, other] = [await openPlace(place), await openPlace(place)];
    const calls: string[] = [];
    const replaced: Partial<PoolStore> = replace?.(store.pools) ?? {};
    const poolStore = new Proxy(store.pools, {
      get: (target, key: keyof PoolStore) => {
        const method = (replaced[key] ?? target[key]) as (...args: unknown[]) => unknown;
        return (...args: unknown[]) => {
          calls.push(key);
          return method.apply(target, args);
        };
      },
    });
    const said: string[] = [];
    const say = (message: string) => void said.push(message);
    const log: Log = { debug: () => undefined, info: say, warn: say, error: say };
    const withCalls: Store = { ...store, fleetId: store.fleetId, pools: poolStore };
    const pools = new Pools(withCalls, { log, by: "me" });
    const others = new Pools(other, { log, by: "them" });
    onTestFinished(async () => {
      await Promise.all([pools.close(), others.close()]);
      await Promise.all([store.close(), other.close()]);
    });
    return { store: other, pools, others, calls, said };
  }

  const refusal = async (work: Promise<unknown>, code: ErrorCode) => {
    const error: unknown = await work.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(isFleetError(error, code), `${code}, got ${String(error)}`).toBe(true);
    return error as FleetError;
  };

  const one = async <T>(claiming: Promise<T | null>): Promise<T> => {
    const claimed = await claiming;
    if (claimed === null) throw new Error("nothing was free");
    return claimed;
  };

  describe("an item that is put", () => {
    it("carries the payload's input form and the tags with their defaults", async () => {
      const { pools, store } = await setUp();
      const pool = pools.handle(SESSIONS);
      const id = await pool.put({ payload: { cookie, since: "2027-01-01" }, tags: { site: "a" } });
      expect(await store.pools.get({ pool: "sessions", id })).toMatchObject({
        state: "free",
        payload: JSON.stringify({ cookie, since: "2027-01-01" }),
        tagsJson: JSON.stringify({ site: "a", tier: "free" }),
        expiresAt: null,
      });
      const lease = await one(pool.where({ site: "a", tier: "free" }).claim());
      expectTypeOf(lease.payload).toEqualTypeOf<{ cookie: string; since?: Date | undefined }>();
      expect(lease.payload).toEqual({ cookie, since: new Date("2027-01-01") });
      expect(lease.tags).toEqual({ site: "a", tier: "free" });
      expect(lease).toMatchObject({ id, uses: 1 });
    });

    it("bears an id of its own when it has one; put again, it changes nothing", async () => {
      const { pools } = await setUp();
      const pool = pools.handle(SESSIONS);
      const put = (text: string) => pool.put({ id: "s1", payload: { cookie: text }, tags: { site: "a" } });
      expect([await put("first"), await put("second")]).toEqual(["s1", "s1"]);
      expect(await pool.get("s1")).toMatchObject({ payload: { cookie: "first" } });
      expect(await pool.count()).toBe(1);
    });

    it("is refused where it does not fit, with the field's name, and nothing is there", async () => {
      const { pools, calls } = await setUp();
      const pool = pools.handle(SESSIONS);
      const tags = { site: "a" };
      const wrong = await refusal(
        pool.put({ payload: { cookie: 1 } as never, tags }),
        "FLEET_PAYLOAD_INVALID",
      );
      expect(wrong).toBeInstanceOf(TypeError);
      expect(wrong.message).toMatch(/^pool "sessions": payload: cookie: /);
      const untagged = await refusal(pool.put({ payload: { cookie } }), "FLEET_PAYLOAD_INVALID");
      expect(untagged.message).toMatch(/^pool "sessions": tags: site: /);
      await refusal(pool.put({ payload: { cookie: "x".repeat(262_144) }, tags }), "FLEET_PAYLOAD_TOO_LARGE");
      const option = await refusal(
        pool.put({ payload: { cookie }, tags, ttl: 5 } as never),
        "FLEET_OPTION_INVALID",
      );
      expect(option.message).toContain('unknown option "ttl"; known: payload, tags, ttlSeconds, id');
      const second = await refusal(
        pool.putMany([
          { payload: { cookie }, tags },
          { payload: {} as never, tags },
        ]),
        "FLEET_PAYLOAD_INVALID",
      );
      expect(second.message).toContain("item 1: payload: cookie");
      const tagless = pools.handle(ANY).put({ payload: 1, tags: { site: "a" } as never });
      expect((await refusal(tagless, "FLEET_OPTION_INVALID")).message).toContain("no tags");
      expect(calls).toEqual([]);
    });

    it("is gone when its time to live is over", async () => {
      const { pools } = await setUp();
      const pool = pools.handle(ANY);
      const id = await pool.put({ payload: 1, ttlSeconds: 0.2 });
      expect((await pool.get(id))?.expiresAt).toBeTypeOf("number");
      await expect.poll(() => pool.claim({ holdSeconds: 0.001 }), { timeout: 5000 }).toBeNull();
    });

    it("can be taken out by anybody: removed, or retired with a reason", async () => {
      const { pools, others } = await setUp();
      const pool = pools.handle(ANY);
      const ids = await pool.putMany([{ payload: 1 }, { payload: 2 }]);
      expect(ids).toHaveLength(2);
      const [first, second] = ids as [string, string];
      const held = await one(pool.claim());
      expect(held.id).toBe(first);
      expect(await others.handle(ANY).retire(first, "it is dead")).toBe("retired");
      await refusal(held.release(), "FLEET_LEASE_LOST");
      expect(await pool.get(first)).toMatchObject({
        state: "retired",
        retired: { reason: "asked", note: "it is dead" },
      });
      expect(await pool.remove(second)).toBe("removed");
      expect([await pool.remove(second), await pool.retire("none")]).toEqual(["unknown", "unknown"]);
      expect(await pool.claim()).toBeNull();
      expect([await pool.count(), await pool.count("retired")]).toEqual([0, 1]);
    });
  });

  describe("where", () => {
    async function filled() {
      const all = await setUp();
      const pool = all.pools.handle(SESSIONS);
      const items = [
        { id: "a1", tags: { site: "a" } },
        { id: "a2", tags: { site: "a", tier: "pro" as const } },
        { id: "b1", tags: { site: "b", langs: ["de", "en"] } },
        { id: "c1", tags: { site: "c" } },
      ];
      await pool.putMany(items.map((item) => ({ ...item, payload: { cookie } })));
      const ids = async (where: Parameters<typeof pool.where>[0]) =>
        (await pool.where(where).peek({ n: 10 })).map(({ id }) => id).toSorted();
      return { ...all, pool, ids };
    }

    it("matches one value or several; what is not named means any, also where it has a default", async () => {
      const { pool, ids } = await filled();
      expect(await ids({ site: "a" })).toEqual(["a1", "a2"]);
      expect(await ids({ site: ["a", "b"] })).toEqual(["a1", "a2", "b1"]);
      expect(await ids({ site: ["a", "b"], tier: "free" })).toEqual(["a1", "b1"]);
      expect(await ids({ langs: "en" })).toEqual(["b1"]);
      expect(await ids({})).toEqual(["a1", "a2", "b1", "c1"]);
      expect(await pool.where({ tier: "pro" }).count()).toBe(1);
      expect(await pool.where({ site: "none" }).claim()).toBeNull();
    });

    it("refuses tags that do not exist, and a list of nothing", async () => {
      const { pool } = await filled();
      expect(() => pool.where({ sites: "a" } as never)).toThrow('unknown tag "sites"; did you mean "site"?');
      expect(() => pool.where({ site: [] })).toThrow('pool "sessions": where: tag "site" is an array of 0');
    });

    it("reads without using up", async () => {
      const { pool } = await filled();
      await one(pool.where({ site: "c" }).claim());
      const [held] = await pool.where({ site: "c" }).peek({ state: "held" });
      expect(held).toMatchObject({ id: "c1", holder: { by: "me" }, tags: { site: "c", tier: "free" } });
      expect(await pool.where({ site: "c" }).peek()).toEqual([]);
      expect(await pool.count()).toBe(4);
    });
  });

  describe("a lease", () => {
    async function held(contract: PoolContract = ANY, options = {}) {
      const all = await setUp();
      const pool = all.pools.handle(contract);
      const id = await pool.put({ payload: 1 });
      const lease = await one(pool.claim(options));
      return { ...all, pool, id, lease };
    }

    it("is exclusive until it is released; the next has a greater token", async () => {
      const { pool, others, lease } = await held();
      const other = others.handle(ANY);
      expect(await other.claim()).toBeNull();
      await lease.release();
      const next = await one(other.claim());
      expect(next.id).toBe(lease.id);
      expect(BigInt(next.token)).toBeGreaterThan(BigInt(lease.token));
      await refusal(lease.extend(5), "FLEET_LEASE_LOST");
      expect((await refusal(lease.release(), "FLEET_LEASE_LOST")).message).toContain("it was released");
      expect(lease.signal.aborted).toBe(false);
      expect((await pool.get(next.id))?.holder?.by).toBe("them");
    });

    it("is given back at the end of its block, also by a throw", async () => {
      const { pools } = await setUp();
      const pool = pools.handle(ANY);
      await pool.put({ payload: 1 });
      const work = async () => {
        await using lease = await one(pool.claim());
        expect(await pool.count("held")).toBe(1);
        throw new Error(`no use: ${lease.id}`);
      };
      await expect(work()).rejects.toThrow("no use");
      expect(await pool.count("free")).toBe(1);
    });

    it.each<[string, (lease: Lease) => Promise<void>, object]>([
      ["retired", (lease) => lease.retire("banned"), { state: "retired", retired: { note: "banned" } }],
      ["cooling", (lease) => lease.cool(60), { state: "cooling" }],
      ["free", (lease) => lease.release(), { state: "free" }],
    ])("that was ended by a call is not touched by its block's end: %s", async (_, end, state) => {
      const { pool, id, lease, calls } = await held();
      await end(lease);
      calls.length = 0;
      await lease[Symbol.asyncDispose]();
      expect(calls).toEqual([]);
      expect(await pool.get(id)).toMatchObject(state);
    });

    it("ends by its time: its signal tells before the item is anybody's, and late calls are refused", async () => {
      const { others, lease, calls } = await held(ANY, { holdSeconds: 0.6 });
      const other = others.handle(ANY);
      expect(await other.claim()).toBeNull();
      await new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
      expect(lease.signal.reason).toMatchObject({ code: "FLEET_LEASE_LOST" });
      // Still held in the store: the signal came first.
      expect(await other.count("held")).toBe(1);
      calls.length = 0;
      for (const late of [
        () => lease.extend(1),
        () => lease.report("ok"),
        () => lease.update({ payload: 2 }),
        () => lease.cool(1),
        () => lease.retire(),
        () => lease.release(),
      ])
        await refusal(late(), "FLEET_LEASE_LOST");
      await lease[Symbol.asyncDispose]();
      expect(calls).toEqual([]);
      await one(other.claim({ waitSeconds: 5 }));
    });

    it("holds for longer when it is extended", async () => {
      const { others, lease } = await held(ANY, { holdSeconds: 0.5 });
      await lease.extend(60);
      // Never for less.
      await lease.extend(0.1);
      await expect(others.handle(ANY).claim({ waitSeconds: 1 })).resolves.toBeNull();
      expect(lease.signal.aborted).toBe(false);
      await lease.release();
    });

    it("renews itself when asked to, until it is given back", async () => {
      const { others, lease, calls } = await held(ANY, { holdSeconds: 0.6, autoExtend: true });
      await expect(others.handle(ANY).claim({ waitSeconds: 1.5 })).resolves.toBeNull();
      expect(calls.filter((call) => call === "change").length).toBeGreaterThanOrEqual(3);
      await lease.release();
      await one(others.handle(ANY).claim({ waitSeconds: 5 }));
    });

    it("tells by its signal that somebody took the item away, at its next call", async () => {
      const { others, id, lease } = await held();
      await others.handle(ANY).remove(id);
      expect(lease.signal.aborted).toBe(false);
      await refusal(lease.report("ok"), "FLEET_LEASE_LOST");
      expect(lease.signal.aborted).toBe(true);
    });

    it("counts reports, and retires with its release what has failed too often", async () => {
      const contract = definePool("any", { payload: z.unknown(), retireAtScore: -2 });
      const { pool, id, lease } = await held(contract);
      expect([await lease.report("ok"), await lease.report("bad")]).toEqual([1, 0]);
      await lease.report("bad");
      expect(await lease.report("bad")).toBe(-2);
      await lease.release();
      expect(await pool.get(id)).toMatchObject({ state: "retired", retired: { reason: "score" } });
      await expect(lease.report("fine" as "ok")).rejects.toThrow('must be "ok" or "bad"');
    });

    it("retires what was used often enough, and lets rest what was used", async () => {
      const contract = definePool("any", { payload: z.unknown(), maxUses: 2, cooldownSeconds: 0.3 });
      const { pool, id, lease } = await held(contract);
      await lease.release();
      expect(await pool.claim()).toBeNull();
      const second = await one(pool.claim({ waitSeconds: 5 }));
      expect(second.uses).toBe(2);
      await second.release();
      expect(await pool.get(id)).toMatchObject({ state: "retired", retired: { reason: "max-uses" } });
    });

    it("changes what its item holds, checked as with put", async () => {
      const { pools } = await setUp();
      const pool = pools.handle(SESSIONS);
      await pool.put({ payload: { cookie: "old" }, tags: { site: "a", tier: "pro" } });
      const lease = await one(pool.claim());
      await refusal(lease.update({ payload: { cookie: 5 } as never }), "FLEET_PAYLOAD_INVALID");
      await lease.update({ payload: { cookie: "new" }, tags: { site: "b" } });
      await lease.release();
      expect(await pool.where({ site: "a" }).claim()).toBeNull();
      const next = await one(pool.where({ site: "b", tier: "free" }).claim());
      expect(next.payload.cookie).toBe("new");
    });
  });

  describe("a claim", () => {
    it("of several takes all or nothing", async () => {
      const { pools } = await setUp();
      const pool = pools.handle(ANY);
      await pool.putMany([{ payload: 1 }, { payload: 2 }, { payload: 3 }]);
      expect(await pool.claimMany(4)).toBeNull();
      const leases = await one(pool.claimMany(3));
      expect(leases.map(({ payload }) => payload)).toEqual([1, 2, 3]);
      expect(await pool.claimMany(1)).toBeNull();
      await Promise.all(leases.map((lease) => lease.release()));
      expect(await pool.count("free")).toBe(3);
      await expect(pool.claimMany(0)).rejects.toThrow('pool "any": claimMany: n must be at least 1, got 0');
    });

    it("waits in line, and is served when something comes free: by a release, by a put", async () => {
      const { pools, others } = await setUp();
      const pool = pools.handle(ANY);
      await pool.put({ id: "x", payload: 1 });
      const lease = await one(pool.claim());
      const order: string[] = [];
      const wait = async (name: string, from: Pools) => {
        const got = await from.handle(ANY).claim({ waitSeconds: 20 });
        order.push(`${name}:${got?.id}`);
        return got;
      };
      const first = wait("first", others);
      await expect.poll(async () => (await pool.stats())?.waiting.length).toBe(1);
      const second = wait("second", pools);
      await expect
        .poll(async () => (await pool.stats())?.waiting.map(({ by }) => by))
        .toEqual(["them", "me"]);
      // Who has only come does not pass those who wait.
      await lease.release();
      await first;
      await pool.put({ id: "y", payload: 2 });
      await second;
      expect(order).toEqual(["first:x", "second:y"]);
      expect((await pool.stats())?.waiting).toEqual([]);
    });

    it("that has waited long enough leaves the line", async () => {
      const { pools, others } = await setUp();
      expect(await pools.handle(ANY).claim({ waitSeconds: 0.3 })).toBeNull();
      await expect.poll(async () => (await others.handle(ANY).stats())?.waiting).toEqual([]);
      await others.handle(ANY).put({ payload: 1 });
      await one(others.handle(ANY).claim());
    });

    it("ends early when its user is to end, and with the fleet", async () => {
      const { pools, others } = await setUp();
      const stop = new AbortController();
      const waiting = pools.handle(ANY, { signal: stop.signal }).claim({ waitSeconds: 60 });
      await expect.poll(async () => (await others.handle(ANY).stats())?.waiting.length).toBe(1);
      stop.abort("drain");
      expect(await waiting).toBeNull();
      const later = pools.handle(ANY).claim({ waitSeconds: 60 });
      await expect.poll(async () => (await others.handle(ANY).stats())?.waiting.length).toBe(1);
      await pools.close();
      expect(await later).toBeNull();
      expect(() => pools.handle(ANY)).toThrow(expect.objectContaining({ code: "FLEET_CLOSED" }));
    });

    it("passes over what no longer fits: it is retired with a note", async () => {
      const { pools, said } = await setUp();
      const old = pools.handle(
        definePool("sessions", { payload: z.unknown(), tags: Tags, strategy: "fifo" }),
      );
      const ids = await old.putMany([
        { payload: { token: 1 }, tags: { site: "a" } },
        { payload: { cookie: "good" }, tags: { site: "a" } },
      ]);
      const pool = pools.handle(SESSIONS);
      const lease = await one(pool.where({ site: "a" }).claim());
      expect(lease.payload).toEqual({ cookie: "good" });
      expect(await pool.get(ids[0] as string)).toMatchObject({
        state: "retired",
        retired: { reason: "asked", note: expect.stringContaining("does not fit") as string },
      });
      expect(said).toEqual([expect.stringContaining('pool "sessions": an item was retired: ')]);
    });

    it("whose answer was lost finds what it was given", async () => {
      let lost = 0;
      const { pools } = await setUp((inner) => ({
        claim: async (args) => {
          const answer = await inner.claim(args);
          if (lost++ > 0) return answer;
          throw new FleetError("FLEET_STORE_UNAVAILABLE", "gone", { retryable: true, outcome: "unknown" });
        },
      }));
      const pool = pools.handle(ANY);
      await pool.put({ payload: 1 });
      const lease = await one(pool.claim({ waitSeconds: 5 }));
      expect(lost).toBe(2);
      expect((await pool.stats())?.totals.claimed).toBe(1);
      await lease.release();
    });

    it("that failed with its answer lost gives back what it was given", async () => {
      const { pools, others } = await setUp((inner) => ({
        claim: async (args) => {
          await inner.claim(args);
          throw new FleetError("FLEET_STORE_UNAVAILABLE", "gone", { retryable: true, outcome: "unknown" });
        },
      }));
      await others.handle(ANY).put({ payload: 1 });
      await refusal(pools.handle(ANY).claim({ holdSeconds: 60 }), "FLEET_STORE_UNAVAILABLE");
      expect((await others.handle(ANY).stats())?.totals.claimed).toBe(1);
      await one(others.handle(ANY).claim({ waitSeconds: 5 }));
    });
  });

  describe("an end whose answer was lost", () => {
    /** A claimed item of one process whose first end has no answer; `done`: it was carried out, though. */
    async function held(options: { done?: boolean; hold?: number; autoExtend?: boolean } = {}) {
      const { done = true, hold = 60, autoExtend = false } = options;
      const asked: string[] = [];
      let lost = false;
      const site = await setUp((inner) => ({
        change: async (args) => {
          asked.push(args.change.do);
          if (lost || args.change.do === "extend") return inner.change(args);
          lost = true;
          if (done) await inner.change(args);
          throw new FleetError("FLEET_STORE_UNAVAILABLE", "gone", { retryable: true, outcome: "unknown" });
        },
      }));
      const pool = site.pools.handle(ANY);
      const id = await pool.put({ payload: 1 });
      const lease = await one(pool.claim({ holdSeconds: hold, autoExtend }));
      return { ...site, pool, id, lease, asked };
    }
    const unanswered = (work: Promise<unknown>) => refusal(work, "FLEET_STORE_UNAVAILABLE");

    it("is done: the same again says so", async () => {
      const { lease, pool } = await held();
      const { signal } = lease;
      await unanswered(lease.release());
      await lease.release();
      // Once that is known, it stays so.
      await lease.release();
      expect(signal.aborted).toBe(false);
      expect((await refusal(lease.extend(1), "FLEET_LEASE_LOST")).message).toContain("it was released");
      expect((await pool.stats())?.totals).toMatchObject({ claimed: 1, released: 1 });
      // What is free again may have been claimed by somebody else meanwhile: nothing is taken from them.
      const { lease: mine, others } = await held();
      await unanswered(mine.release());
      const theirs = await one(others.handle(ANY).claim());
      await mine.release();
      await theirs.extend(1);
    });

    it("was not: the same again does it", async () => {
      const { lease, pool, id } = await held({ done: false });
      await unanswered(lease.retire("worn out"));
      expect((await pool.get(id))?.state).toBe("held");
      await lease.retire("worn out");
      expect((await pool.get(id))?.state).toBe("retired");
    });

    it("is no other end than was asked for", async () => {
      const released = await held();
      await unanswered(released.lease.release());
      // Somebody else may have got it: it is not out of use, nor does it rest.
      await refusal(released.lease.retire(), "FLEET_LEASE_LOST");
      await refusal(released.lease.cool(5), "FLEET_LEASE_LOST");
      expect((await released.pool.get(released.id))?.state).toBe("free");
      await released.lease.release();

      const retired = await held();
      await unanswered(retired.lease.retire("worn out"));
      await retired.lease.retire("still");
      await retired.lease.release();
      await refusal(retired.lease.cool(5), "FLEET_LEASE_LOST");
      expect(await retired.pool.get(retired.id)).toMatchObject({
        state: "retired",
        retired: { note: "worn out" },
      });

      const rests = await held();
      await unanswered(rests.lease.cool(60));
      await rests.lease.cool(60);
      await rests.lease.cool(5);
      await refusal(rests.lease.cool(61), "FLEET_LEASE_LOST");
      expect((await rests.pool.get(rests.id))?.state).toBe("cooling");
    });

    it("whichever it was of several: only what all of them are is done", async () => {
      let lost = 0;
      const { pools } = await setUp((inner) => ({
        change: async (args) => {
          if (lost++ > 1) return inner.change(args);
          if (args.change.do === "release") await inner.change(args);
          throw new FleetError("FLEET_STORE_UNAVAILABLE", "gone", { retryable: true, outcome: "unknown" });
        },
      }));
      await pools.handle(ANY).put({ payload: 1 });
      const lease = await one(pools.handle(ANY).claim());
      await unanswered(lease.release());
      await unanswered(lease.retire());
      await refusal(lease.retire(), "FLEET_LEASE_LOST");
      await lease.release();
      expect(await pools.handle(ANY).count("free")).toBe(1);
    });

    it("is found by whoever renews the lease, and nothing counts as lost", async () => {
      const { lease, asked } = await held({ hold: 4, autoExtend: true });
      const { signal } = lease;
      await unanswered(lease.release());
      await until("a renewal", () => asked.includes("extend"));
      await lease.release();
      expect(signal.aborted).toBe(false);
    });

    it("tells nothing once the lease is over by its time, nor where the item was taken away before", async () => {
      const late = await held({ hold: 3 });
      await unanswered(late.lease.release());
      await until("its end", () => late.lease.signal.aborted);
      await refusal(late.lease.release(), "FLEET_LEASE_LOST");

      // Nobody has looked at it meanwhile: the answer comes too late to say what it was.
      let begun = 0;
      let asked = 0;
      const { pools } = await setUp((inner) => ({
        change: async (args) => {
          asked += 1;
          if (asked === 2) await until("its end", () => performance.now() > begun + 3000);
          const answer = await inner.change(args);
          if (asked === 2) return answer;
          throw new FleetError("FLEET_STORE_UNAVAILABLE", "gone", { retryable: true, outcome: "unknown" });
        },
      }));
      await pools.handle(ANY).put({ payload: 1 });
      const unseen = await one(pools.handle(ANY).claim({ holdSeconds: 3 }));
      begun = performance.now();
      await unanswered(unseen.release());
      await refusal(unseen.release(), "FLEET_LEASE_LOST");
      expect(asked).toBe(2);

      const taken = await held({ done: false });
      await taken.others.handle(ANY).retire(taken.id);
      await refusal(taken.lease.extend(1), "FLEET_LEASE_LOST");
      await refusal(taken.lease.release(), "FLEET_LEASE_LOST");
      expect(taken.lease.signal.aborted).toBe(true);
    });
  });

  it("gives back what is held when all is closed", async () => {
    const { pools, others } = await setUp();
    await pools.handle(ANY).putMany([{ payload: 1 }, { payload: 2 }]);
    await one(pools.handle(ANY).claimMany(2));
    await pools.close();
    expect(await others.handle(ANY).count("free")).toBe(2);
  });

  it("writes the settings of who puts, and does so again where the store has lost them", async () => {
    const { pools, others, store } = await setUp();
    const [small, large] = [3, 9].map((maxUses) => definePool("any", { payload: z.unknown(), maxUses }));
    await pools.handle(small as PoolContract).put({ payload: 1 });
    // A claimer has no say.
    await others.handle(large as PoolContract).claim();
    expect((await store.pools.stats({ pool: "any" }))?.settings.maxUses).toBe(3);
    await others.handle(large as PoolContract).put({ payload: 1 });
    expect((await store.pools.stats({ pool: "any" }))?.settings.maxUses).toBe(9);
    await store.wipe();
    await pools.handle(small as PoolContract).put({ payload: 1 });
    expect((await store.pools.stats({ pool: "any" }))?.settings.maxUses).toBe(3);
  });
});
