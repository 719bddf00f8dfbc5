import { expect } from "vitest";
import { HandClock, range, siteCase, type StoreHarness, until } from "./harness.ts";
import { completed, declaredQueue, ended, failed, LEASE_MS, Queue, task } from "./queue-driver.ts";
import type { Store } from "../store.ts";

/** Hints within this time count as prompt; the poll that whoever waits falls back to is slower. */
const PROMPT_MS = 2000;

/** Counts the hints of one queue, and notes who is told to have finished. */
async function listen(store: Store, queue = "q") {
  const heard = { ready: 0, finished: [] as string[] };
  const watch = store.queues.watch(
    { queue },
    { onReady: () => (heard.ready += 1), onFinished: (id) => heard.finished.push(id) },
  );
  await watch.ready;
  return {
    heard,
    close: () => watch.close(),
    /** That `act` is followed by a hint. */
    hintedBy: async (what: string, act: () => Promise<unknown>) => {
      // What came before may still be on its way.
      for (let before = -1; before !== heard.ready;) {
        before = heard.ready;
        await new Promise((resolve) => setTimeout(resolve, 15));
      }
      const before = heard.ready;
      await act();
      await until(`hint: ${what}`, () => heard.ready > before, PROMPT_MS);
    },
  };
}

export function queueWatch(harness: StoreHarness): void {
  siteCase(harness, "whoever waits for tasks is told of each way they come", async ({ open }) => {
    const clock = new HandClock();
    const [waiting, acting] = await Promise.all([open(clock.options), open(clock.options)]);
    const q = await declaredQueue(acting);
    const own = new Queue(waiting);
    const { hintedBy, close } = await listen(waiting);
    const take = () => own.claimOne("h");
    await hintedBy("submitted elsewhere", () => q.submit(task("a")));
    const a = await take();
    await hintedBy("submitted here", () => own.submit(task("b")));
    await take();
    await hintedBy("given back", () => q.settle(ended(a, "interrupted")));
    await take();
    await hintedBy("a holder lost", () => q.lose(["h"]));
    for (const _ of range(0, 2)) await take();
    clock.advance(LEASE_MS);
    await hintedBy("leases expired", () => q.sweep());
    for (const _ of range(0, 2)) await q.settle(failed(await take(), { final: true }));
    await hintedBy("retried by hand", () => q.retry("a"));
    await q.settle(failed(await take(), { retryInMs: 100 }));
    clock.advance(100);
    await hintedBy("due", () => q.sweep());
    await take();
    await close();
  });

  siteCase(harness, "room under a limit is told, and a new limit", async ({ open }) => {
    const [waiting, acting] = await Promise.all([open(), open()]);
    const q = await declaredQueue(acting, { concurrency: 1 });
    const { hintedBy, close } = await listen(waiting);
    await q.submit(...range(0, 9).map((i) => task(`t${i}`, { key: "k" })));
    const first = await q.claimOne("h");
    await hintedBy("room under the concurrency", () => q.settle(completed(first)));
    const second = await q.claimOne("h");
    await hintedBy("the concurrency raised", () => declaredQueue(acting, { keyConcurrency: 1 }));
    expect(await q.claim("h", 9)).toEqual([]);
    await hintedBy("room under a key's limit", () => q.settle(completed(second)));
    await q.claimOne("h");
    await hintedBy("the key's limit raised", () => declaredQueue(acting, { keyConcurrency: 2 }));
    expect(await q.claimIds("h", 9)).toHaveLength(1);
    await hintedBy("a holder lost", () => q.lose(["h"]));
    await close();
  });

  siteCase(harness, "a consumer that waits by hints alone runs everything", async ({ open }) => {
    const [waiting, acting] = await Promise.all([open(), open()]);
    const q = await declaredQueue(acting, { concurrency: 5, keyConcurrency: 1 });
    const own = new Queue(waiting);
    const got = new Set<string>();
    let running: Promise<void> | undefined;
    let again = false;
    const drain = async () => {
      do {
        again = false;
        let settle: ReturnType<typeof completed>[] = [];
        do {
          const turn = await own.turn("h", 3, settle);
          for (const { id } of turn.tasks) got.add(id);
          settle = turn.tasks.map((claim) => completed(claim));
        } while (settle.length > 0);
      } while (again);
      running = undefined;
    };
    const watch = waiting.queues.watch(
      { queue: "q" },
      {
        onReady: () => {
          again = true;
          running ??= drain();
        },
      },
    );
    await watch.ready;
    for (const i of range(0, 200)) await q.submit(task(`t${i}`, i % 3 === 0 ? {} : { key: `k${i % 4}` }));
    await until("all 200 run", () => got.size === 200);
    await watch.close();
    await running;
    expect(await q.counts()).toEqual({ completed: 200 });
  });

  siteCase(harness, "the end of a task is told to whoever asked, on each connection", async (site) => {
    const clock = new HandClock();
    const stores = await Promise.all([site.open(clock.options), site.open(clock.options)]);
    const q = await declaredQueue(stores[0], { crashLimit: 1 });
    const ears = await Promise.all([listen(stores[0]), listen(stores[1])]);
    const heard = (what: string, id: string) =>
      until(`${what} told`, () => ears.every(({ heard }) => heard.finished.includes(id)), PROMPT_MS);
    const asked = { asked: true };
    await q.submit(task("quiet"), task("done", asked), task("dead"), task("later"), task("lost", asked));
    expect(await stores[1].queues.ask({ queue: "q", id: "dead" })).toMatchObject({
      id: "dead",
      state: "waiting",
    });
    const [quiet, done, dead, later] = await q.claim("h", 5);
    if (!quiet || !done || !dead || !later) throw new Error("five were there");
    await q.settle(completed(quiet), completed(done, "7"));
    await heard("completed", "done");
    await q.settle(failed(dead, { retryInMs: 50 }));
    expect(await stores[0].queues.ask({ queue: "q", id: "later" })).toMatchObject({ state: "active" });
    await q.settle(failed(later, { final: true }));
    await heard("failed", "later");
    await q.lose(["h"], ["lost"]);
    await heard("poison", "lost");
    expect(ears[0]?.heard.finished).not.toContain("dead");
    await q.cancel("dead");
    await heard("cancelled", "dead");
    await q.submit(task("old", { ...asked, ttlMs: 10 }), task("slow", { ...asked, priority: 5 }));
    await q.claimOne("h");
    clock.advance(LEASE_MS);
    await q.sweep();
    await heard("expired", "old");
    await heard("lease over", "slow");
    await q.submit(task("first", { ...asked, dedupe: { key: "d", onDuplicate: "ignore", windowMs: 0 } }));
    await q.submit(task("second", { dedupe: { key: "d", onDuplicate: "replace", windowMs: 0 } }));
    await q.submit(task("third", { dedupe: { key: "d", onDuplicate: "supersede", windowMs: 0 } }));
    await heard("replaced, then superseded", "first");
    for (const { heard, close } of ears) {
      expect(heard.finished).not.toContain("quiet");
      await close();
    }
    // Asked for too late: the record says all.
    expect(await stores[0].queues.ask({ queue: "q", id: "quiet" })).toMatchObject({ state: "completed" });
    expect(await stores[0].queues.ask({ queue: "q", id: "nobody" })).toBeUndefined();
  });

  siteCase(
    harness,
    "a watch may come before the declaration, and hears only its queue and namespace",
    async (site) => {
      const [store, beside] = [await site.open(), await site.openBeside("-b")];
      const [mine, other, far] = [await listen(store), await listen(store, "q.other"), await listen(beside)];
      const q = await declaredQueue(store);
      await mine.hintedBy("submitted", () => q.submit(task("a", { asked: true })));
      await q.settle(completed(await q.claimOne("h")));
      await until("told", () => mine.heard.finished.includes("a"), PROMPT_MS);
      const silence = [0, 0].map((ready) => ({ ready, finished: [] }));
      expect([other.heard, far.heard]).toEqual(silence);
      await mine.close();
      await mine.close();
      const { ready } = mine.heard;
      const late = await listen(store);
      await late.hintedBy("submitted again", () => q.submit(task("b")));
      expect(mine.heard.ready).toBe(ready);
      await Promise.all([late.close(), other.close(), far.close()]);
    },
  );

  siteCase(
    harness,
    "one look at many tasks names those that have ended or are not there",
    async ({ open }) => {
      const clock = new HandClock();
      const store = await open(clock.options);
      const all = ["done", "nobody's", "failed", "cancelled", "waits", "runs", "later"];
      const look = (ids: readonly string[]) => store.queues.ended({ queue: "q", ids });
      expect(await look(all)).toEqual(all);
      const q = await declaredQueue(store);
      for (const id of ["done", "failed", "cancelled", "runs", "waits"]) await q.submit(task(id));
      await q.submit(task("later", { delayMs: 1000 }));
      await q.cancel("cancelled");
      for (const id of ["done", "failed", "runs"]) {
        const claim = await q.claimOne("h");
        expect(claim.id).toBe(id);
        if (id === "done") await q.settle(completed(claim));
        if (id === "failed") await q.settle(failed(claim, { final: true }));
      }
      expect(await look(all)).toEqual(["done", "nobody's", "failed", "cancelled"]);
      expect(await look([])).toEqual([]);
    },
  );
}
