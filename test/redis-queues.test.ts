// Short settings; part of `npm test`. What queues on Redis do beyond the port: tasks are handed to idle holders as they are submitted.
import { afterEach, expect, inject, it } from "vitest";
import { HandClock, until } from "../src/store/conformance/harness.ts";
import { declaredQueue, LEASE_MS, type Queue, task } from "../src/store/conformance/queue-driver.ts";
import { openStore } from "../src/store/open.ts";
import type { ClaimedTask } from "../src/protocol/task.ts";
import type { Store } from "../src/store/store.ts";
import { freshNamespace } from "./support/stores.ts";

const opened: Store[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
});

async function open(namespace: string, clock?: HandClock): Promise<Store> {
  const store = await openStore(inject("redisUrl"), { namespace, ...clock?.options });
  opened.push(store);
  return store;
}

function idle(q: Queue, holder: string, claim: number) {
  const args = { queue: q.queue, holder, worker: `w-${holder}`, leaseMs: LEASE_MS, settle: [], claim };
  return q.store.queues.turn({ ...args, idle: true });
}

async function taker(store: Store, holder: string) {
  const handed: ClaimedTask[] = [];
  const watch = store.queues.watch(
    { queue: "q", taker: holder },
    { onTasks: (tasks) => handed.push(...tasks) },
  );
  await watch.ready;
  return { handed, close: () => watch.close() };
}

it("an idle holder is handed what is submitted, already claimed, and no more than it wants", async () => {
  const namespace = freshNamespace();
  const [here, there] = [await open(namespace), await open(namespace)];
  const q = await declaredQueue(here, { keyConcurrency: 1 });
  const { handed } = await taker(there, "h1");
  expect(await idle(q, "h1", 3)).toMatchObject({ tasks: [], ready: 0 });
  const payload = '{"text":"Grüße 🚀, 12:34 -:"}';
  const tick = { schedule: "nightly: é", at: 1000 };
  await q.submit(
    task("a", { payload, key: "ä:", tick }),
    task("b", { key: "ä:" }),
    task("c", { payload: "1" }),
  );
  await until("two handed", () => handed.length === 2);
  expect(handed).toMatchObject([
    { id: "a", payload, key: "ä:", tick, attempts: 0, maxAttempts: 5 },
    { id: "c", payload: "1", key: null, tick: null },
  ]);
  expect(await q.get("a")).toMatchObject({ state: "active", worker: "w-h1" });
  expect(await q.keep("h1")).toEqual([handed.map(({ id, token }) => ({ id, token, cancelling: false }))]);
  // It wanted three.
  await q.submit(task("d"), task("e"));
  await until("a third handed", () => handed.length === 3);
  expect(await q.counts()).toEqual({ active: 3, waiting: 2 });
  await q.submit(task("f"));
  expect(await q.counts()).toEqual({ active: 3, waiting: 3 });
  expect(handed.map(({ id }) => id)).toEqual(["a", "c", "d"]);
});

it("nothing is handed to who does not listen, is gone, or said something else since", async () => {
  const clock = new HandClock();
  const store = await open(freshNamespace(), clock);
  const q = await declaredQueue(store);
  const waiting = async (what: string) => expect([what, await q.counts()]).toEqual([what, { waiting: 1 }]);
  let n = 0;
  const submit = async (what: string) => {
    n += 1;
    await q.submit(task(`t${n}`));
    await waiting(what);
    await q.cancel(`t${n}`);
    await q.sweep();
    clock.advance(3_600_000);
    await q.sweep();
  };
  await idle(q, "h1", 1);
  await submit("does not listen");
  const { handed, close } = await taker(store, "h1");
  await idle(q, "h1", 1);
  await q.lose(["h1"]);
  await submit("lost");
  await idle(q, "h1", 1);
  await q.turn("h1", 0);
  await submit("wants nothing any more");
  await idle(q, "h1", 1);
  clock.advance(LEASE_MS);
  await submit("not heard of for a lease");
  await idle(q, "h1", 1);
  clock.advance(LEASE_MS - 1);
  await q.keep("h1");
  clock.advance(LEASE_MS - 1);
  await q.submit(task("kept"));
  await until("handed", () => handed.length === 1);
  expect(handed).toMatchObject([{ id: "kept" }]);
  await close();
});

it("what is handed out keeps to the limits, and to order", async () => {
  const clock = new HandClock();
  const store = await open(freshNamespace(), clock);
  const q = await declaredQueue(store, { concurrency: 2 });
  const takers = [await taker(store, "h1"), await taker(store, "h2")];
  await q.submit(task("due", { delayMs: 100, priority: 5 }));
  await idle(q, "h1", 5);
  clock.advance(100);
  // Nobody has looked since it became due: it goes first.
  await q.submit(task("a"), task("b"));
  await until("two handed", () => takers.flatMap(({ handed }) => handed).length === 2);
  expect(takers[0]?.handed.map(({ id }) => id)).toEqual(["due", "a"]);
  await idle(q, "h2", 5);
  await q.submit(task("c"));
  expect(await q.counts()).toEqual({ active: 2, waiting: 2 });
  expect(takers[1]?.handed).toEqual([]);
});
