import { expect } from "vitest";
import { HandClock, openThree, range, siteCase, type StoreHarness, until } from "./harness.ts";
import { declaredPool, HOLD_MS, item, items, newRequest, Pool } from "./pool-driver.ts";
import type { Store } from "../store.ts";

/** Hints within this time count as prompt; the poll that whoever waits falls back to is slower. */
const PROMPT_MS = 2000;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Counts the hints of one pool. */
async function listen(store: Store, pool = "p") {
  const heard = { hints: 0 };
  const watch = store.pools.watch({ pool }, () => (heard.hints += 1));
  await watch.ready;
  const quiet = async () => {
    // What came before may still be on its way.
    for (let before = -1; before !== heard.hints;) {
      before = heard.hints;
      await pause(15);
    }
  };
  return {
    heard,
    quiet,
    close: () => watch.close(),
    /** That `act` is followed by a hint. */
    hintedBy: async (what: string, act: () => Promise<unknown>) => {
      await quiet();
      const before = heard.hints;
      await act();
      await until(`hint: ${what}`, () => heard.hints > before, PROMPT_MS);
    },
  };
}

export function poolWatch(harness: StoreHarness): void {
  siteCase(harness, "whoever waits for an item is told of each way one comes free", async ({ open }) => {
    const clock = new HandClock();
    const [waiting, acting] = await Promise.all([open(clock.options), open(clock.options)]);
    const pool = await declaredPool(acting);
    const own = new Pool(waiting);
    const { hintedBy, close } = await listen(waiting);
    await hintedBy("put elsewhere", () => pool.put(item("a")));
    await hintedBy("put here", () => own.put(item("b")));
    const [a, b] = await own.claim("h", { n: 2 });
    if (!a || !b) throw new Error("two were there");
    await hintedBy("released", () => pool.release(a));
    await pool.change(b, { do: "cool", ms: 100 });
    clock.advance(100);
    await hintedBy("a cool-down over", () => pool.sweep());
    const request = newRequest();
    await pool.claim("h", { n: 2, request });
    await hintedBy("left with a claim", () => pool.leave(request));
    await pool.claim("h", { n: 2 });
    await hintedBy("a holder lost", () => pool.lose("h"));
    await pool.claim("h", { n: 2 });
    clock.advance(HOLD_MS);
    await hintedBy("leases expired", () => pool.sweep());
    const c = await pool.claimOne("h");
    await hintedBy("tagged anew", async () => {
      await pool.change(c, { do: "update", tags: { t: ["x"] }, tagsJson: "{}" });
      await pool.release(c);
    });
    await close();
  });

  siteCase(harness, "whoever stands in line is told when the line moves", async ({ open }) => {
    const clock = new HandClock();
    const [waiting, acting] = await Promise.all([open(clock.options), open(clock.options)]);
    const pool = await declaredPool(acting);
    const { hintedBy, close } = await listen(waiting);
    const line = (n: number) => ({ n, request: newRequest(), waitFor: { patienceMs: 5000 } });
    const [big, first, second, third] = [line(5), line(1), line(1), line(1)];
    for (const one of [big, first, second, third]) await pool.ask("h", one);
    await pool.put(...items(["a", "b", "c"]));
    await hintedBy("the first left", () => pool.leave(big.request));
    await hintedBy("the first was served", () => pool.claim("h", first));
    const { n, request } = second;
    await hintedBy("the first was served at its last look", () => pool.claim("i", { n, request }));
    clock.advance(5000);
    await hintedBy("a waiter forgotten", async () => {
      await pool.ask("new", line(3));
      await pool.sweep();
      await pool.lose("new");
    });
    await close();
  });

  siteCase(harness, "takers that wait by hints alone are all served", async (site) => {
    const stores = await openThree(site);
    const pool = await declaredPool(stores[0], { maxUses: 0 });
    const served: string[] = [];
    const serve = async (i: number) => {
      const own = new Pool(stores[i % 3] ?? stores[0]);
      let wake = () => {};
      const watch = own.store.pools.watch({ pool: "p" }, () => {
        wake();
      });
      await watch.ready;
      const request = newRequest();
      for (;;) {
        const hinted = new Promise<void>((resolve) => (wake = resolve));
        const claims = await own.claim(`h${i}`, { request, n: 1 + (i % 3), waitFor: { patienceMs: 60_000 } });
        if (claims.length > 0) {
          served.push(`h${i}`);
          await own.release(...claims);
          break;
        }
        await hinted;
      }
      await watch.close();
    };
    const all = range(0, 12).map((i) => serve(i));
    await until("all in line", async () => (await pool.stats()).waiting.length === 12);
    await pool.put(...items(["a", "b", "c"]));
    await Promise.all(all);
    expect(served).toHaveLength(12);
    expect(await pool.count()).toEqual({ free: 3 });
  });

  siteCase(
    harness,
    "hints stay within their pool and namespace, and end with the watch",
    async ({ open, openBeside }) => {
      const [store, beside] = [await open(), await openBeside("-b")];
      const pool = await declaredPool(store);
      const heard = await listen(store);
      const others = [await listen(store, "other"), await listen(beside)];
      await declaredPool(beside);
      await heard.hintedBy("put", () => pool.put(item("a")));
      for (const { quiet } of others) await quiet();
      expect(others.map((other) => other.heard.hints)).toEqual([0, 0]);
      await heard.quiet();
      await heard.close();
      const before = heard.heard.hints;
      await pool.put(item("b"));
      await pause(30);
      expect(heard.heard.hints).toBe(before);
      for (const { close } of others) await close();
    },
  );
}
