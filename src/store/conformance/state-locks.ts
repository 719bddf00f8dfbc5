import { expect } from "vitest";
import { HandClock, openThree, range, siteCase, type StoreHarness } from "./harness.ts";
import { isGrowing } from "./queue-driver.ts";
import { HOLD_MS, LockDriver } from "./state-driver.ts";

export function lockCases(harness: StoreHarness): void {
  siteCase(harness, "a lock has one holder; others are told who and until when", async ({ open }) => {
    const clock = new HandClock();
    const lock = new LockDriver(await open(clock.options));
    const granted = await lock.acquire("a");
    expect(granted).toMatchObject({ outcome: "granted", until: clock.ms + HOLD_MS, now: clock.ms });
    expect(await lock.acquire("b")).toEqual({
      outcome: "held",
      by: "by a",
      until: clock.ms + HOLD_MS,
      position: null,
      now: clock.ms,
    });
    const token = granted.outcome === "granted" ? granted.token : "";
    expect(await lock.release(token)).toBe("released");
    expect(await lock.acquire("b")).toMatchObject({ outcome: "granted" });
  });

  siteCase(harness, "of many who ask at once one is granted, and tokens grow", async (site) => {
    const stores = await openThree(site);
    const tokens: string[] = [];
    for (const round of range(0, 15)) {
      const answers = await Promise.all(
        range(0, 9).map((i) => new LockDriver(stores[i % 3] as (typeof stores)[0]).acquire(`${round}-${i}`)),
      );
      const grants = answers.flatMap((answer) => (answer.outcome === "granted" ? [answer.token] : []));
      expect(grants).toHaveLength(1);
      tokens.push(grants[0] as string);
      await new LockDriver(stores[round % 3] as (typeof stores)[0]).release(grants[0] as string);
    }
    expect(isGrowing(tokens)).toBe(true);
  });

  siteCase(
    harness,
    "tokens grow over a clock that goes back and over a loss of all data",
    async ({ open }) => {
      const clock = new HandClock();
      const store = await open(clock.options);
      const lock = new LockDriver(store);
      const first = await lock.get();
      await lock.release(first);
      clock.advance(-60_000);
      const second = await lock.get();
      clock.advance(120_000);
      await store.wipe();
      expect(isGrowing([first, second, await lock.get()])).toBe(true);
    },
  );

  siteCase(harness, "a lease ends at its time, and a late holder changes nothing", async ({ open }) => {
    const clock = new HandClock();
    const lock = new LockDriver(await open(clock.options));
    const late = await lock.get("a");
    clock.advance(HOLD_MS - 1);
    expect(await lock.acquire("b")).toMatchObject({ outcome: "held" });
    clock.advance(1);
    // Ended is ended, also where nobody has taken it yet.
    expect(await lock.extend(late)).toBe("lease-lost");
    expect(await lock.release(late)).toBe("lease-lost");
    const token = await lock.get("b");
    expect(isGrowing([late, token])).toBe(true);
    expect(await lock.extend(late)).toBe("lease-lost");
    expect(await lock.release(late)).toBe("lease-lost");
    await lock.leave("a");
    expect(await lock.acquire("c")).toMatchObject({ outcome: "held", by: "by b" });
    expect(await lock.release(token)).toBe("released");
    expect(await lock.release(token)).toBe("lease-lost");
  });

  siteCase(harness, "a lock that was taken and released meanwhile is lost all the same", async ({ open }) => {
    const clock = new HandClock();
    const lock = new LockDriver(await open(clock.options));
    const frozen = await lock.get("a", { holdMs: 1000 });
    clock.advance(1500);
    const second = await lock.get("b");
    await lock.release(second);
    expect(await lock.extend(frozen)).toBe("lease-lost");
    const third = await lock.get("c");
    expect(isGrowing([frozen, second, third])).toBe(true);
  });

  siteCase(harness, "extend counts from now and never makes a lease shorter", async ({ open }) => {
    const clock = new HandClock();
    const lock = new LockDriver(await open(clock.options));
    const token = await lock.get("a");
    const start = clock.ms;
    clock.advance(4000);
    expect(await lock.extend(token, 1000)).toBe(start + HOLD_MS);
    expect(await lock.extend(token, 20_000)).toBe(clock.ms + 20_000);
    clock.advance(19_999);
    expect(await lock.acquire("b")).toMatchObject({ outcome: "held" });
    clock.advance(1);
    expect(await lock.acquire("b")).toMatchObject({ outcome: "granted" });
    expect(await lock.extend("7")).toBe("lease-lost");
    expect(await lock.extend("")).toBe("lease-lost");
  });

  siteCase(harness, "a repeat of a request gets the grant that it had", async ({ open }) => {
    const clock = new HandClock();
    const lock = new LockDriver(await open(clock.options));
    const first = await lock.acquire("a");
    clock.advance(10);
    expect(await lock.acquire("a")).toEqual({ ...first, now: clock.ms });
    expect(await lock.wait("a")).toEqual({ ...first, now: clock.ms });
    // Not given out any more: it is a new grant.
    clock.advance(HOLD_MS);
    const again = await lock.acquire("a");
    expect(again.outcome === "granted" && first.outcome === "granted" && again.token !== first.token).toBe(
      true,
    );
  });

  siteCase(harness, "keys and names are locks of their own, whatever stands in them", async ({ open }) => {
    const store = await open();
    const keys = ["", "a", "A", "a b", "{x}:y", "ä€😀", "line\nbreak", "=\"'|;", "1 2 3"];
    const holder = "h {1} 2\n3";
    const locks = keys.map((key) => new LockDriver(store, key));
    for (const [i, lock] of locks.entries())
      expect(await lock.acquire(`r ${i}|`, { holder, by: `x/0 on "w" ${i}` })).toMatchObject({
        outcome: "granted",
      });
    for (const [i, lock] of locks.entries())
      expect(await lock.wait("other")).toMatchObject({ outcome: "held", by: `x/0 on "w" ${i}`, position: 0 });
    expect(await new LockDriver(store, "a", "l2").acquire("r")).toMatchObject({ outcome: "granted" });
    const shown = await store.state.locks.show({ name: "l" });
    expect(new Set(shown.map(({ key }) => key))).toEqual(new Set(keys));
    expect(shown.every(({ waiting }) => waiting[0]?.by === "by other")).toBe(true);
    expect(await store.state.locks.lose({ name: "l", holders: [holder] })).toEqual({ released: keys.length });
  });

  siteCase(harness, "many leases are kept at once, and the lost ones are told", async ({ open }) => {
    const clock = new HandClock();
    const store = await open(clock.options);
    const keep = (...leases: { key: string; token: string; holdMs: number }[]) =>
      store.state.locks.keep({ name: "l", leases });
    const tokens = await Promise.all(range(0, 4).map((i) => new LockDriver(store, `k${i}`).get()));
    const leases = tokens.map((token, i) => ({ key: `k${i}`, token, holdMs: HOLD_MS * 2 }));
    await new LockDriver(store, "k1").release(tokens[1] as string);
    expect(await keep(...leases)).toEqual([true, false, true, true]);
    clock.advance(HOLD_MS + 1);
    expect(await new LockDriver(store, "k0").acquire("b")).toMatchObject({ outcome: "held" });
    clock.advance(HOLD_MS);
    expect(await keep(...leases, { key: "never", token: "1", holdMs: 1 })).toEqual(
      range(0, 5).map(() => false),
    );
    expect(await keep()).toEqual([]);
  });

  siteCase(harness, "what a dead holder has ends at once, and nothing else", async ({ open }) => {
    const store = await open();
    const [a, b, c] = ["a", "b", "c"].map((key) => new LockDriver(store, key)) as [
      LockDriver,
      LockDriver,
      LockDriver,
    ];
    const token = await a.get("1", { holder: "dead" });
    await b.get("2", { holder: "dead too" });
    const alive = await c.get("3", { holder: "alive" });
    await c.wait("4", { holder: "dead" });
    await c.wait("5", { holder: "alive" });
    expect(await store.state.locks.lose({ name: "l", holders: ["dead", "dead too", "nobody"] })).toEqual({
      released: 2,
    });
    expect(await a.release(token)).toBe("lease-lost");
    expect(await a.acquire("6")).toMatchObject({ outcome: "granted" });
    expect(await c.place("5")).toBe(0);
    expect(await c.release(alive)).toBe("released");
    expect(await store.state.locks.lose({ name: "unused", holders: ["dead"] })).toEqual({ released: 0 });
  });

  siteCase(harness, "what is held and who waits can be seen", async ({ open }) => {
    const clock = new HandClock();
    const store = await open(clock.options);
    const { locks } = store.state;
    expect(await locks.list()).toEqual([]);
    const since = clock.ms;
    const token = await new LockDriver(store, "b").get("r1");
    await new LockDriver(store, "", "another").get("r2", { holdMs: 5 });
    clock.advance(5);
    await new LockDriver(store, "b").wait("r3");
    await new LockDriver(store, "a").get("r4", { holdMs: 1 });
    expect(await locks.list()).toEqual(["l"]);
    const b = {
      key: "b",
      holder: { by: "by r1", since, until: since + HOLD_MS, token },
      waiting: [{ by: "by r3", since: since + 5 }],
    };
    expect(await locks.show({ name: "l" })).toMatchObject([{ key: "a", waiting: [] }, b]);
    clock.advance(1);
    expect(await locks.show({ name: "l" })).toEqual([b]);
    expect(await locks.show({ name: "another" })).toEqual([]);
    clock.advance(HOLD_MS);
    expect(await locks.list()).toEqual([]);
  });

  siteCase(harness, "a wipe takes locks along, and they work on", async ({ open, openBeside }) => {
    const [store, beside] = [await open(), await openBeside("x")];
    const lock = new LockDriver(store);
    const token = await lock.get("a");
    await lock.wait("b");
    expect(await new LockDriver(beside).acquire("a")).toMatchObject({ outcome: "granted" });
    await store.wipe();
    expect(await store.state.locks.list()).toEqual([]);
    expect(await lock.release(token)).toBe("lease-lost");
    expect(await lock.acquire("c")).toMatchObject({ outcome: "granted" });
    expect(await store.state.locks.list()).toEqual(["l"]);
    expect(await beside.state.locks.list()).toEqual(["l"]);
  });
}
