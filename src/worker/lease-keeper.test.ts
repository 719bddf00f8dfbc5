import { describe, expect, it, onTestFinished } from "vitest";
import { definePool } from "../contracts/pool.ts";
import { z } from "zod";
import { FleetError } from "../errors.ts";
import { SILENT } from "../internal/log.ts";
import { machineMs } from "../internal/timers.ts";
import { poolSettings } from "../primitives/pool-settings.ts";
import type { LeaseToKeep, ToHost } from "../protocol/host.ts";
import { openStore } from "../store/open.ts";
import { ChildLeaseKeeper } from "./lease-keeper.ts";

const SETTINGS = poolSettings(definePool("p", { payload: z.unknown() }));
type News = Extract<ToHost, { type: "kept" }>["leases"][number];

/** A keeper on a store in memory that counts its calls, and fails those of a kind so often as said. */
async function keeper(beatMs = 50) {
  const store = await openStore("sqlite::memory:", { namespace: "keeper" });
  onTestFinished(() => store.close());
  const { pools } = store;
  const { locks } = store.state;
  await pools.declare({ pool: "p", settings: SETTINGS, as: "owner" });
  const calls: Record<string, number> = {};
  const failures: Record<string, number> = {};
  const counted =
    <A, T>(name: string, call: (args: A) => Promise<T>) =>
    async (args: A) => {
      calls[name] = (calls[name] ?? 0) + 1;
      const left = failures[name] ?? 0;
      if (left === 0) return call(args);
      failures[name] = left - 1;
      throw new FleetError("FLEET_STORE_UNAVAILABLE", "away", { retryable: true });
    };
  const kept = new ChildLeaseKeeper({
    pools: {
      keep: counted("pools.keep", (args: Parameters<typeof pools.keep>[0]) => pools.keep(args)),
      lose: counted("pools.lose", (args: Parameters<typeof pools.lose>[0]) => pools.lose(args)),
      change: counted("pools.change", (args: Parameters<typeof pools.change>[0]) => pools.change(args)),
    },
    locks: {
      keep: counted("locks.keep", (args: Parameters<typeof locks.keep>[0]) => locks.keep(args)),
      lose: counted("locks.lose", (args: Parameters<typeof locks.lose>[0]) => locks.lose(args)),
      release: counted("locks.release", (args: Parameters<typeof locks.release>[0]) => locks.release(args)),
    },
    beatMs,
    log: SILENT,
  });
  onTestFinished(async () => {
    kept.giveUp();
    await kept.stop();
  });

  const host = (holder: string) => {
    const told: News[] = [];
    const it = {
      holder,
      tell: (message: ToHost) => message.type === "kept" && void told.push(...message.leases),
    };
    let number = 0;
    const keep = (lease: Pick<LeaseToKeep, "kind" | "name" | "id" | "token" | "holdMs">) => {
      number += 1;
      kept.hear(it, { type: "uses", kind: lease.kind, name: lease.name });
      kept.hear(it, { type: "keep", lease: { ...lease, number, place: number - 1 } });
      return number;
    };
    return {
      told,
      last: (of: number) => told.findLast((news) => news.number === of),
      letGo: (of: number, over: boolean) => kept.hear(it, { type: "let-go", number: of, over }),
      uses: (kind: "pool" | "lock", name: string) => kept.hear(it, { type: "uses", kind, name }),
      item: async (id: string, holdMs: number, autoExtend = true) => {
        await pools.put({ pool: "p", items: [{ id, payload: "1", tags: {}, tagsJson: "{}", ttlMs: 0 }] });
        const answer = await pools.claim({
          pool: "p",
          where: {},
          n: 1,
          holdMs,
          autoExtend,
          request: id,
          holder,
          by: holder,
        });
        if (answer.outcome !== "claimed") throw new Error(answer.outcome);
        const token = answer.items[0]?.token ?? "";
        return { number: autoExtend ? keep({ kind: "pool", name: "p", id, token, holdMs }) : 0, token };
      },
      lock: async (key: string, holdMs: number) => {
        const answer = await locks.acquire({ name: "l", key, request: key, holder, by: holder, holdMs });
        if (answer.outcome !== "granted") throw new Error(answer.outcome);
        return keep({ kind: "lock", name: "l", id: key, token: answer.token, holdMs });
      },
    };
  };
  const state = async (id: string) => (await pools.get({ pool: "p", id }))?.state;
  const heldLocks = async () => (await locks.show({ name: "l" })).map(({ key }) => key);
  return { store, kept, calls, failures, host, state, heldLocks };
}

describe("leases that are to be kept", () => {
  it("are renewed with each beat, in one call for all of a name, and their holders are told until when", async () => {
    const { calls, host, state, heldLocks } = await keeper();
    const [one, two] = [host("one"), host("two")];
    const items = [await one.item("a", 1000), await two.item("b", 1000), await one.item("c", 1000)];
    const locks = [await one.lock("k", 1000), await two.lock("m", 1000)];
    const began = machineMs();
    await expect.poll(() => machineMs() - began, { timeout: 5000 }).toBeGreaterThan(2500);
    expect(await Promise.all(["a", "b", "c"].map(state))).toEqual(["held", "held", "held"]);
    expect(await heldLocks()).toEqual(["k", "m"]);
    for (const [of, number] of [
      [one, items[0]?.number],
      [two, items[1]?.number],
      [one, items[2]?.number],
      [one, locks[0]],
      [two, locks[1]],
    ] as const)
      expect((of.last(number ?? 0)?.until ?? 0) - machineMs()).toBeGreaterThan(0);
    // As many as there were beats, however many leases there are.
    const beats = (machineMs() - began) / 50;
    expect(calls["pools.keep"]).toBeLessThanOrEqual(beats + 2);
    expect(calls["locks.keep"]).toBeLessThanOrEqual(beats + 2);
  });

  it("are renewed in time where their hold is shorter than a beat", async () => {
    const { host, state } = await keeper(60_000);
    const one = host("one");
    // The one with the long hold has set the pace until then.
    await one.item("a", 3_600_000);
    const { number } = await one.item("b", 900);
    const began = machineMs();
    await expect.poll(() => machineMs() - began, { timeout: 5000 }).toBeGreaterThan(2500);
    expect(one.last(number)?.until ?? 0).toBeGreaterThan(machineMs());
    expect(await state("b")).toBe("held");
  });

  it("are renewed in spite of calls that fail", async () => {
    const { failures, host, state, heldLocks } = await keeper();
    failures["pools.keep"] = 3;
    failures["locks.keep"] = 3;
    const one = host("one");
    const { number } = await one.item("a", 1500);
    const lock = await one.lock("k", 1500);
    const began = machineMs();
    await expect.poll(() => machineMs() - began, { timeout: 5000 }).toBeGreaterThan(3000);
    expect([failures["pools.keep"], failures["locks.keep"]]).toEqual([0, 0]);
    expect(await state("a")).toBe("held");
    expect(await heldLocks()).toEqual(["k"]);
    expect([one.last(number)?.until, one.last(lock)?.until]).not.toContain(null);
  });

  it("are told to be lost when somebody took them away, once", async () => {
    const { store, host } = await keeper();
    const one = host("one");
    const { number } = await one.item("a", 60_000);
    const lock = await one.lock("k", 60_000);
    await store.pools.retire({ pool: "p", id: "a", note: "" });
    const [shown] = await store.state.locks.show({ name: "l" });
    await store.state.locks.release({ name: "l", key: "k", token: shown?.holder?.token ?? "" });
    await expect.poll(() => [one.last(number)?.until, one.last(lock)?.until]).toEqual([null, null]);
    const before = one.told.length;
    // Kept beside it, so that there are more beats.
    const other = await one.item("b", 60_000);
    await expect
      .poll(() => one.told.filter((news) => news.number === other.number).length)
      .toBeGreaterThan(2);
    expect(one.told.slice(before).filter((news) => news.number !== other.number)).toEqual([]);
  });

  it("are renewed no more once they were let go, and released where the store does not know that", async () => {
    const { calls, failures, host, state, heldLocks } = await keeper();
    const one = host("one");
    const [a, b] = [await one.item("a", 60_000), await one.item("b", 60_000)];
    const lock = await one.lock("k", 60_000);
    failures["pools.change"] = 2;
    one.letGo(a.number, false);
    one.letGo(lock, false);
    one.letGo(b.number, true);
    await expect.poll(() => state("a"), { timeout: 5000 }).toBe("free");
    await expect.poll(heldLocks).toEqual([]);
    // As it was said to be over, nobody asked the store.
    expect(await state("b")).toBe("held");
    expect(calls["pools.change"]).toBe(3);
    const before = calls["pools.keep"];
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(calls["pools.keep"]).toBe(before);
  });
});

describe("a host that has ended", () => {
  it("has what it held released at once, whether it was kept or not; others keep theirs", async () => {
    const { kept, failures, host, state, heldLocks } = await keeper();
    const [one, two] = [host("one"), host("two")];
    one.uses("pool", "p");
    await one.item("kept", 60_000);
    await one.item("plain", 60_000, false);
    await one.lock("k", 60_000);
    await two.item("other", 60_000);
    await two.lock("m", 60_000);
    failures["pools.lose"] = 2;
    kept.gone("one", false);
    await expect
      .poll(() => Promise.all(["kept", "plain", "other"].map(state)), { timeout: 5000 })
      .toEqual(["free", "free", "held"]);
    await expect.poll(heldLocks).toEqual(["m"]);
  });

  it("that was killed is told once more, for what it had sent before and came late", async () => {
    const { kept, calls, host, state } = await keeper();
    const one = host("one");
    await one.item("a", 60_000);
    kept.gone("one", false);
    await expect.poll(() => state("a")).toBe("free");
    expect(calls["pools.lose"]).toBe(1);
    // As a call that was on its way.
    await host("one").item("a", 60_000, false);
    expect(await state("a")).toBe("held");
    await expect.poll(() => state("a"), { timeout: 5000 }).toBe("free");
  });

  it("is told before the keeper stops, or as long as it may take", async () => {
    const { kept, calls, failures, host, state } = await keeper();
    const one = host("one");
    await one.item("a", 60_000);
    failures["pools.lose"] = 1;
    kept.gone("one", false);
    await kept.stop();
    expect(await state("a")).toBe("free");

    const { kept: other, failures: away, host: another } = await keeper();
    await another("two").item("b", 60_000);
    away["pools.lose"] = Number.POSITIVE_INFINITY;
    other.gone("two", false);
    let stopped = false;
    const stopping = other.stop().then(() => (stopped = true));
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(stopped).toBe(false);
    other.giveUp();
    await stopping;
    expect(calls["pools.lose"]).toBe(3);
  });

  it("that held nothing costs no call", async () => {
    const { kept, calls } = await keeper();
    kept.gone("nobody", false);
    await kept.stop();
    expect(calls).toEqual({});
  });
});
