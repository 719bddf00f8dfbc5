import { expect } from "vitest";
import { HandClock, openThree, range, siteCase, type StoreHarness } from "./harness.ts";
import { completed, declaredQueue, ended, failed, type Queue, task, tasks } from "./queue-driver.ts";

/** Claims one at a time and settles each at once, so that limits do not matter; `n` times or until there is none. */
async function serve(q: Queue, n = Infinity): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < n) {
    const [claim] = await q.claim("h", 1);
    if (claim === undefined) break;
    ids.push(claim.id);
    await q.settle(completed(claim));
  }
  return ids;
}

/** `a0`, `a1`, …: tasks of key `a`. */
const ofKey = (key: string, n: number, from = 0) =>
  range(from, from + n).map((i) => task(`${key}${i}`, { key }));

export function queueOrder(harness: StoreHarness): void {
  siteCase(harness, "tasks leave in order of submission, one by one and in bulk", async ({ open }) => {
    const q = await declaredQueue(await open(new HandClock().options));
    // Ids in no alphabetical order, all of one millisecond.
    const ids = range(0, 60).map((i) => `t${(i * 37) % 60}`);
    await q.submit(...tasks(ids.slice(0, 20)));
    for (const id of ids.slice(20, 40)) await q.submit(task(id));
    const lists = [tasks(ids.slice(40, 50)), [], tasks(ids.slice(50))];
    const answer = await q.store.queues.submit({ queue: "q", lists });
    expect(answer).toMatchObject({ outcome: "done", lists: [{}, { outcome: "accepted", tasks: [] }, {}] });
    expect([...(await serve(q, 13)), ...(await q.claimIds("h", 40)), ...(await serve(q))]).toEqual(ids);
  });

  siteCase(harness, "order of submission survives a clock that steps back", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options));
    for (const [i, step] of [0, -3_600_000, 1, -5000, 7_200_000].entries()) {
      clock.advance(step);
      await q.submit(task(`t${i}`));
    }
    expect(await q.claimIds("h", 9)).toEqual(["t0", "t1", "t2", "t3", "t4"]);
  });

  siteCase(harness, "higher priority goes first, over all keys", async ({ open }) => {
    const q = await declaredQueue(await open());
    const priorities = [0, -1000, 1000, 5, 0, -1, 1000, 1, -1000];
    await q.submit(
      ...priorities.map((priority, i) => task(`t${i}`, { priority, ...(i % 2 ? { key: "k" } : {}) })),
    );
    const order = ["t2", "t6", "t3", "t7", "t0", "t4", "t5"];
    expect(await serve(q, 4)).toEqual(order.slice(0, 4));
    await q.submit(task("urgent", { priority: 1000, key: "new" }));
    expect(await q.claimIds("h", 1)).toEqual(["urgent"]);
    const rest = await q.claimIds("h", 9);
    expect(rest.slice(0, 3)).toEqual(order.slice(4));
    expect(rest.slice(3).toSorted()).toEqual(["t1", "t8"]);
  });

  siteCase(harness, "a task that comes back keeps the place of its submission", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options));
    await q.submit(...tasks(["a", "b", "c", "d", "e", "f"]), task("late", { delayMs: 100 }), task("z"));
    const [a, b, c, d, e] = await q.claim("h", 5);
    if (!a || !b || !c || !d || !e) throw new Error("five were there");
    await q.settle(ended(e, "returned"), failed(d), ended(c, "interrupted"));
    expect(await q.claimIds("h", 1)).toEqual(["c"]);
    await q.settle(failed(b, { retryInMs: 50 }));
    await q.lose(["h"], ["a"]);
    clock.advance(100);
    expect(await q.claimIds("h", 99)).toEqual(["a", "b", "c", "d", "e", "f", "late", "z"]);
  });

  siteCase(harness, "a task retried by hand keeps its place too", async ({ open }) => {
    const q = await declaredQueue(await open());
    await q.submit(...tasks(["a", "b", "c"]));
    const [a, b] = await q.claim("h", 2);
    if (!a || !b) throw new Error("two were there");
    await q.settle(failed(a, { final: true }), ended(b, "cancelled"));
    expect(await q.retry("b", "a")).toEqual(["waiting", "waiting"]);
    expect(await q.claimIds("h", 9)).toEqual(["a", "b", "c"]);
  });

  siteCase(
    harness,
    "keys take turns; all tasks without a key have one place among them",
    async ({ open }) => {
      const q = await declaredQueue(await open());
      await q.submit(...ofKey("a", 4), ...ofKey("b", 2), ...tasks(["x0", "x1", "x2"]), ...ofKey("c", 3));
      const order = ["a0", "b0", "x0", "c0", "a1", "b1", "x1", "c1", "a2", "x2", "c2", "a3"];
      expect(await serve(q, 5)).toEqual(order.slice(0, 5));
      expect(await q.claimIds("h", 3)).toEqual(order.slice(5, 8));
      expect(await q.claimIds("h", 99)).toEqual(order.slice(8));
    },
  );

  siteCase(harness, "a key that comes anew enters at the end of the row", async ({ open }) => {
    const q = await declaredQueue(await open());
    await q.submit(...ofKey("a", 9), ...ofKey("b", 9));
    expect(await serve(q, 3)).toEqual(["a0", "b0", "a1"]);
    await q.submit(...ofKey("c", 1), ...ofKey("a", 1, 50), ...ofKey("d", 2));
    expect(await serve(q, 4)).toEqual(["b1", "a2", "c0", "d0"]);
    // `c` was served its last task and left the row.
    await q.submit(...ofKey("c", 2, 1));
    expect(await serve(q, 7)).toEqual(["b2", "a3", "d1", "c1", "b3", "a4", "c2"]);
  });

  siteCase(harness, "within a key priority goes first, and a key keeps its turn by it", async ({ open }) => {
    const q = await declaredQueue(await open());
    await q.submit(...ofKey("a", 3), ...ofKey("b", 3));
    await q.submit(task("A", { key: "a", priority: 5 }), task("B", { key: "b", priority: 5 }));
    await q.submit(task("A2", { key: "a", priority: 5 }));
    expect(await serve(q, 3)).toEqual(["A", "B", "A2"]);
    // `b` was served before `a`.
    expect(await serve(q)).toEqual(["b0", "a0", "b1", "a1", "b2", "a2"]);
  });

  siteCase(
    harness,
    "a hot key blocks nobody: each of many keys is served in each round",
    async ({ open }) => {
      const q = await declaredQueue(await open());
      await q.submit(...ofKey("hot", 2000));
      await q.submit(...range(0, 50).flatMap((i) => ofKey(`k${i}-`, 3)));
      const keys = ["hot", ...range(0, 50).map((i) => `k${i}`)];
      for (const round of range(0, 3)) {
        const claims = await q.claim("h", 51);
        expect({ round, keys: claims.map(({ key }) => String(key?.replace("-", ""))).toSorted() }).toEqual({
          round,
          keys: keys.toSorted(),
        });
      }
      expect(await q.claimIds("h", 3)).toEqual(["hot3", "hot4", "hot5"]);
    },
  );

  siteCase(harness, "a key at its limit at the head of the row delays no other", async ({ open }) => {
    const q = await declaredQueue(await open(), { keyConcurrency: 2 });
    await q.submit(...ofKey("a", 500), ...ofKey("b", 3));
    await q.submit(task("A", { key: "a", priority: 1000 }), task("A2", { key: "a", priority: 999 }));
    const [first, second] = await q.claim("h", 2);
    expect([first?.id, second?.id]).toEqual(["A", "A2"]);
    await q.submit(task("A3", { key: "a", priority: 998 }), ...tasks(["x", "y"]));
    expect(await q.claimIds("h", 3)).toEqual(["b0", "x", "b1"]);
    expect(await q.claimIds("h", 9)).toEqual(["y"]);
    if (first) await q.settle(completed(first));
    expect(await q.claimIds("h", 9)).toEqual(["A3"]);
  });

  siteCase(harness, "with one claim per key at a time keys still take turns", async ({ open }) => {
    const q = await declaredQueue(await open(), { keyConcurrency: 1 });
    await q.submit(...ofKey("a", 3), ...ofKey("b", 3), ...ofKey("c", 3));
    const [a, b, c] = await q.claim("h", 9);
    if (!a || !b || !c) throw new Error("three keys were there");
    expect([a.id, b.id, c.id]).toEqual(["a0", "b0", "c0"]);
    // In order of their return to the row.
    await q.settle(completed(b));
    await q.settle(completed(c), completed(a));
    expect(await q.claimIds("h", 1)).toEqual(["b1"]);
    expect((await q.claimIds("h", 9)).toSorted()).toEqual(["a1", "c1"]);
  });

  siteCase(harness, "several takers share the row and each task goes to one", async (site) => {
    const stores = await openThree(site);
    const q = await declaredQueue(stores[0], { keyConcurrency: 3 });
    await q.submit(...range(0, 600).map((i) => task(`t${i}`, i % 5 === 0 ? {} : { key: `k${i % 5}` })));
    const taken = await Promise.all(
      range(0, 9).map(async (who) => {
        const { queues } = stores[who % 3] as (typeof stores)[0];
        const mine: string[] = [];
        let settle: ReturnType<typeof completed>[] = [];
        for (;;) {
          const turn = await queues.turn({
            queue: "q",
            holder: `h${who}`,
            worker: "w",
            leaseMs: 60_000,
            settle,
            claim: 4,
          });
          mine.push(...turn.tasks.map(({ id }) => id));
          if (turn.tasks.length === 0 && settle.length === 0 && turn.ready === 0) {
            if ((await q.stats()).counts.waiting === 0) return mine;
          }
          settle = turn.tasks.map((claim) => completed(claim));
        }
      }),
    );
    expect(taken.flat().toSorted()).toEqual(
      range(0, 600)
        .map((i) => `t${i}`)
        .toSorted(),
    );
    expect(await q.counts()).toEqual({ completed: 600 });
  });
}
