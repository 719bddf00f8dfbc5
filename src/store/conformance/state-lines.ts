import { expect } from "vitest";
import { HandClock, range, siteCase, type StoreHarness, until } from "./harness.ts";
import { HOLD_MS, LockDriver, PATIENCE_MS } from "./state-driver.ts";

/** Hints within this time count as prompt; the look that whoever waits falls back to is slower. */
const PROMPT_MS = 2000;

export function lockLines(harness: StoreHarness): void {
  siteCase(
    harness,
    "who waits is served in the order of asking, and a newcomer cannot pass",
    async ({ open }) => {
      const [store, other] = await Promise.all([open(), open()]);
      const [lock, elsewhere] = [new LockDriver(store), new LockDriver(other)];
      let token = await lock.get("a");
      expect(await lock.place("b")).toBe(0);
      expect(await elsewhere.place("c")).toBe(1);
      expect(await lock.place("d")).toBe(2);
      // Asking again keeps the place.
      expect(await elsewhere.place("c")).toBe(1);
      for (const next of ["b", "c", "d"]) {
        await lock.release(token);
        expect(await elsewhere.acquire("newcomer")).toMatchObject({
          outcome: "held",
          by: `by ${next}`,
          until: null,
        });
        const answer = await lock.wait(next);
        token = answer.outcome === "granted" ? answer.token : "";
        expect(token).not.toBe("");
      }
      expect(await lock.place("c")).toBe(0);
      await lock.release(token);
    },
  );

  siteCase(
    harness,
    "only the first in line is granted, also after the lease has run out",
    async ({ open }) => {
      const clock = new HandClock();
      const lock = new LockDriver(await open(clock.options));
      await lock.get("a", { holdMs: 2000 });
      await lock.wait("b");
      await lock.wait("c");
      clock.advance(2000);
      expect(await lock.place("c")).toBe(1);
      expect(await lock.acquire("newcomer")).toMatchObject({ outcome: "held", position: null });
      expect(await lock.place("b")).toBe("granted");
      expect(await lock.place("c")).toBe(0);
    },
  );

  siteCase(
    harness,
    "a dead waiter is forgotten when its patience is over, and not before",
    async ({ open }) => {
      const clock = new HandClock();
      const lock = new LockDriver(await open(clock.options));
      await lock.release(await lock.get("a"));
      const token = await lock.get("a2");
      await lock.wait("dead");
      clock.advance(PATIENCE_MS - 1);
      expect(await lock.place("b")).toBe(1);
      await lock.release(token);
      expect(await lock.place("b")).toBe(1);
      expect(await lock.acquire("c")).toMatchObject({ outcome: "held", by: "by dead" });
      clock.advance(1);
      expect(await lock.acquire("c")).toMatchObject({ outcome: "held", by: "by b" });
      expect(await lock.place("b")).toBe("granted");
      // Whoever asks in time stays, however long.
      for (const _ of range(0, 3)) {
        expect(await lock.place("late")).toBe(0);
        clock.advance(PATIENCE_MS - 1);
      }
    },
  );

  siteCase(harness, "a line that nobody stands in any more holds up nobody", async ({ open }) => {
    const clock = new HandClock();
    const store = await open(clock.options);
    const lock = new LockDriver(store);
    await lock.get("a", { holdMs: 100 });
    await Promise.all(range(0, 5).map((i) => lock.wait(`dead${i}`)));
    clock.advance(PATIENCE_MS);
    expect(await store.state.locks.show({ name: "l" })).toEqual([]);
    expect(await new LockDriver(store, "other").acquire("x")).toMatchObject({ outcome: "granted" });
    expect(await lock.acquire("b")).toMatchObject({ outcome: "granted" });
    expect(await lock.place("dead3")).toBe(0);
  });

  siteCase(harness, "who leaves gives up its place, and a grant that it got meanwhile", async ({ open }) => {
    const lock = new LockDriver(await open());
    const token = await lock.get("a");
    for (const request of ["b", "c", "d"]) await lock.wait(request);
    await lock.leave("c");
    await lock.leave("nobody");
    expect(await lock.place("d")).toBe(1);
    await lock.release(token);
    await lock.leave("b");
    expect(await lock.acquire("newcomer")).toMatchObject({ outcome: "held", by: "by d" });
    // Its answer may have been lost: leaving ends what it was granted.
    expect(await lock.wait("d")).toMatchObject({ outcome: "granted" });
    await lock.leave("d");
    expect(await lock.acquire("newcomer")).toMatchObject({ outcome: "granted" });
  });

  siteCase(
    harness,
    "each way in which a lock comes free for the next is told, with its key",
    async ({ open }) => {
      const clock = new HandClock();
      const [waiting, acting] = await Promise.all([open(clock.options), open(clock.options)]);
      const heard: (string | undefined)[] = [];
      const watch = waiting.state.locks.watch({ name: "l" }, (key) => heard.push(key));
      const others: (string | undefined)[] = [];
      const other = waiting.state.locks.watch({ name: "l.other" }, (key) => others.push(key));
      await Promise.all([watch.ready, other.ready]);
      const lock = new LockDriver(acting, "k 1");
      const hintedBy = async (what: string, act: () => Promise<unknown>) => {
        const before = heard.length;
        await act();
        await until(`hint: ${what}`, () => heard.length > before, PROMPT_MS);
        expect(new Set(heard)).toEqual(new Set(["k 1"]));
      };
      const token = await lock.get("a");
      await lock.wait("b");
      await hintedBy("released", () => lock.release(token));
      await lock.wait("c");
      await lock.wait("d");
      await hintedBy("the first of a free lock left", () => lock.leave("b"));
      await lock.wait("c");
      await hintedBy("a grant was given up", () => lock.leave("c"));
      await lock.wait("d", { holder: "dead" });
      await lock.wait("e");
      await hintedBy("a holder lost", () => acting.state.locks.lose({ name: "l", holders: ["dead"] }));
      await lock.wait("f");
      await lock.leave("e");
      expect(await lock.place("f")).toBe("granted");
      clock.advance(HOLD_MS);
      await lock.get("g", { holdMs: PATIENCE_MS });
      await lock.wait("dead");
      clock.advance(PATIENCE_MS - 1);
      await lock.wait("h");
      clock.advance(1);
      await hintedBy("the first was forgotten", () => lock.acquire("x"));
      expect(others).toEqual([]);
      await watch.close();
      const last = heard.length;
      expect(await lock.place("h")).toBe("granted");
      await lock.wait("i");
      await lock.leave("h");
      expect(await lock.place("i")).toBe("granted");
      expect(heard).toHaveLength(last);
      await other.close();
    },
  );

  siteCase(harness, "those who wait by hints alone are all served, one at a time", async ({ open }) => {
    const stores = await Promise.all([open(), open()]);
    let inside = 0;
    const served: number[] = [];
    const drivers = stores.map((store) => new LockDriver(store));
    const first = await (drivers[0] as LockDriver).get("first");
    const done = range(0, 12).map(async (i) => {
      const lock = drivers[i % 2] as LockDriver;
      let wake: () => void = () => undefined;
      let hinted = false;
      const watch = (stores[i % 2] as (typeof stores)[0]).state.locks.watch({ name: "l" }, () => {
        hinted = true;
        wake();
      });
      await watch.ready;
      for (;;) {
        hinted = false;
        const answer = await lock.wait(`w${i}`);
        if (answer.outcome === "granted") {
          expect((inside += 1)).toBe(1);
          served.push(i);
          await new Promise((resolve) => setTimeout(resolve, 2));
          inside -= 1;
          expect(await lock.release(answer.token)).toBe("released");
          break;
        }
        if (!hinted) await new Promise<void>((resolve) => (wake = resolve));
      }
      await watch.close();
    });
    await until("all stand in line", async () => {
      const [shown] = await stores[0].state.locks.show({ name: "l" });
      return shown?.waiting.length === 12;
    });
    await (drivers[0] as LockDriver).release(first);
    await Promise.all(done);
    expect(served.toSorted((a, b) => a - b)).toEqual(range(0, 12));
  });
}
