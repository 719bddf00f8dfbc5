import { expect } from "vitest";
import type { ItemTags } from "../../protocol/pool.ts";
import { HandClock, openThree, range, siteCase, type StoreHarness } from "./harness.ts";
import { type ClaimArgs, declaredPool, items, newRequest, Pool } from "./pool-driver.ts";

const PATIENCE_MS = 5000;
const X: ItemTags = { t: ["x"] };

/** Somebody who stands in line, by one request. */
class Waiter {
  readonly name: string;
  readonly request = newRequest();
  readonly #pool: Pool;
  readonly #more: Partial<ClaimArgs>;

  constructor(pool: Pool, name: string, more: Partial<ClaimArgs> = {}) {
    this.name = name;
    this.#pool = pool;
    this.#more = { where: X, request: this.request, waitFor: { patienceMs: PATIENCE_MS }, ...more };
  }

  /** Its position, or the ids that it got. */
  async ask(): Promise<number | null | string> {
    const answer = await this.#pool.ask(this.name, this.#more);
    if (answer.outcome === "claimed") return answer.items.map(({ id }) => id).join("");
    return answer.outcome === "none" ? answer.position : answer.outcome;
  }

  leave(): Promise<void> {
    return this.#pool.leave(this.request);
  }
}

export function poolLines(harness: StoreHarness): void {
  siteCase(harness, "who waits is served in the order of the first asking", async (site) => {
    const clock = new HandClock();
    const stores = await openThree(site, clock.options);
    const pool = await declaredPool(stores[0]);
    const born = clock.ms;
    const waiters = range(0, 5).map((i) => new Waiter(new Pool(stores[i % 3] ?? stores[0]), `w${i}`));
    for (const [i, waiter] of waiters.entries()) {
      expect(await waiter.ask()).toBe(i);
      clock.advance(1);
    }
    for (const [i, waiter] of waiters.toReversed().entries()) expect(await waiter.ask()).toBe(4 - i);
    expect((await pool.stats()).waiting).toEqual(
      range(0, 5).map((i) => ({ by: `by w${i}`, where: X, n: 1, since: born + i })),
    );
    await pool.put(...items(["a", "b", "c"], { tags: X }));
    expect(await pool.ask("newcomer", { where: X })).toMatchObject({ outcome: "none", position: null });
    expect(await waiters[4]?.ask()).toBe(4);
    expect(await waiters[1]?.ask()).toBe(1);
    expect(await waiters[0]?.ask()).toBe("a");
    expect(await waiters[2]?.ask()).toBe(1);
    expect(await waiters[1]?.ask()).toBe("b");
    expect(await waiters[2]?.ask()).toBe("c");
    expect(await waiters[0]?.ask()).toBe("a");
    expect([await waiters[3]?.ask(), await waiters[4]?.ask()]).toEqual([0, 1]);
    expect((await pool.stats()).waiting.map(({ by }) => by)).toEqual(["by w3", "by w4"]);
  });

  siteCase(harness, "a claim of five is not starved by a flow of ones", async ({ open }) => {
    const clock = new HandClock();
    const pool = await declaredPool(await open(clock.options));
    await pool.put(...items(["a", "b", "c", "d", "e"], { tags: X }));
    const ones = await pool.claim("ones", { n: 5, where: X });
    const five = new Waiter(pool, "five", { n: 5 });
    const after = new Waiter(pool, "after");
    expect([await five.ask(), await after.ask()]).toEqual([0, 1]);
    for (const one of ones) {
      await pool.release(one);
      clock.advance(100);
      if (one !== ones.at(-1)) expect(await five.ask()).toBe(0);
      // Whoever wants one in the meantime waits its turn.
      expect(await pool.claim("ones", { where: X })).toEqual([]);
      expect(await after.ask()).toBe(1);
    }
    expect(await five.ask()).toBe("abcde");
    expect(await after.ask()).toBe(0);
  });

  siteCase(harness, "a dead waiter delays the others for no longer than its patience", async ({ open }) => {
    const clock = new HandClock();
    const pool = await declaredPool(await open(clock.options));
    const [dead, alive] = [new Waiter(pool, "dead", { n: 2 }), new Waiter(pool, "alive")];
    await dead.ask();
    clock.advance(1000);
    expect(await alive.ask()).toBe(1);
    await pool.put(...items(["a", "b"], { tags: X }));
    clock.advance(PATIENCE_MS - 1001);
    expect(await alive.ask()).toBe(1);
    expect(await pool.claim("newcomer", { where: X })).toEqual([]);
    clock.advance(1);
    expect((await pool.stats()).waiting).toMatchObject([{ by: "by alive" }]);
    expect(await alive.ask()).toBe("a");
    expect(await pool.claimIds("newcomer", { where: X })).toEqual(["b"]);
    // Who comes back after that stands at the end.
    const other = new Waiter(pool, "other");
    expect([await other.ask(), await dead.ask()]).toEqual([0, 1]);
    clock.advance(PATIENCE_MS);
    expect((await pool.stats()).waiting).toEqual([]);
    await pool.sweep();
    expect((await pool.stats()).waiting).toEqual([]);
    await pool.put(...items(["c"], { tags: X }));
    expect(await pool.claimIds("newcomer", { where: X })).toEqual(["c"]);
  });

  siteCase(harness, "each asking renews a place for its patience", async ({ open }) => {
    const clock = new HandClock();
    const pool = await declaredPool(await open(clock.options));
    const [first, second] = [
      new Waiter(pool, "first"),
      new Waiter(pool, "second", { waitFor: { patienceMs: 60_000 } }),
    ];
    await first.ask();
    await second.ask();
    for (const _ of range(0, 4)) {
      clock.advance(PATIENCE_MS - 1);
      expect([await second.ask(), await first.ask()]).toEqual([1, 0]);
    }
    clock.advance(PATIENCE_MS);
    await pool.put(...items(["a"], { tags: X }));
    expect(await second.ask()).toBe("a");
  });

  siteCase(harness, "who leaves makes room for the next", async ({ open }) => {
    const pool = await declaredPool(await open());
    const waiters = range(0, 3).map((i) => new Waiter(pool, `w${i}`));
    for (const waiter of waiters) await waiter.ask();
    await pool.put(...items(["a", "b"], { tags: X }));
    await waiters[0]?.leave();
    expect(await waiters[2]?.ask()).toBe(1);
    expect(await waiters[1]?.ask()).toBe("a");
    // A last look gives up the place, whether or not it brings something.
    const last = { where: X, n: 2, request: waiters[2]?.request ?? "" };
    expect(await pool.ask("w2", last)).toMatchObject({ outcome: "none", position: null });
    expect((await pool.stats()).waiting).toEqual([]);
    expect(await pool.claimIds("newcomer", { where: X })).toEqual(["b"]);
    expect(await waiters[0]?.ask()).toBe(0);
  });

  siteCase(harness, "lines of different where do not wait for each other", async ({ open }) => {
    const pool = await declaredPool(await open());
    const tags = { t: ["x"], u: ["1"] };
    await pool.put(...items(["a", "b", "c", "d"], { tags }));
    const five = new Waiter(pool, "five", { n: 5 });
    expect(await five.ask()).toBe(0);
    for (const [where, id] of [
      [{}, "a"],
      [{ t: ["x", "y"] }, "b"],
      [{ t: ["x"], u: ["1"] }, "c"],
      [{ u: ["1"] }, "d"],
    ] as [ItemTags, string][])
      expect(await pool.claimIds("h", { where })).toEqual([id]);
    expect(await new Waiter(pool, "others", { where: {} }).ask()).toBe(0);
    expect(await new Waiter(pool, "same").ask()).toBe(1);
    expect((await pool.stats()).waiting.map(({ where }) => where)).toEqual([X, {}, X]);
  });

  siteCase(harness, "a taker at once with others gets a place of its own, each served once", async (site) => {
    const stores = await openThree(site);
    const pool = await declaredPool(stores[0]);
    const waiters = range(0, 30).map((i) => new Waiter(new Pool(stores[i % 3] ?? stores[0]), `w${i}`));
    const places = await Promise.all(waiters.map((waiter) => waiter.ask()));
    expect(places.toSorted((a, b) => Number(a) - Number(b))).toEqual(range(0, 30));
    const inLine = (await pool.stats()).waiting.map(({ by }) => by);
    expect(inLine).toEqual(
      waiters
        .toSorted((a, b) => Number(places[waiters.indexOf(a)]) - Number(places[waiters.indexOf(b)]))
        .map(({ name }) => `by ${name}`),
    );
    await pool.put(
      ...items(
        range(0, 20).map((i) => `i${i}`),
        { tags: X },
      ),
    );
    const served = new Map<string, string>();
    for (const _ of range(0, 20))
      for (const [i, answer] of (await Promise.all(waiters.map((waiter) => waiter.ask()))).entries())
        if (typeof answer === "string") served.set(waiters[i]?.name ?? "", answer);
    expect(served.size).toBe(20);
    expect(new Set(served.values()).size).toBe(20);
    expect([...served.keys()].toSorted()).toEqual(
      inLine
        .slice(0, 20)
        .map((by) => by.slice(3))
        .toSorted(),
    );
  });
}
