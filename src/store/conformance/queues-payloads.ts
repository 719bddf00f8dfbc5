import { expect } from "vitest";
import { HandClock, siteCase, type StoreHarness } from "./harness.ts";
import { completed, declaredQueue, ended, failed, LEASE_MS, Queue, task } from "./queue-driver.ts";
import { TEXTS } from "./streams-order.ts";

export function queuePayloads(harness: StoreHarness): void {
  siteCase(harness, "texts come back byte for byte on every path", async ({ open }) => {
    const clock = new HandClock();
    const store = await open(clock.options);
    const q = await declaredQueue(store, { crashLimit: 100 });
    const ids = TEXTS.map((_, i) => `t${i}`);
    const same = ids.map((id, i) => [id, TEXTS[i]]);
    const seen = (all: readonly { id: string; payload: string }[]) =>
      all
        .map(({ id, payload }) => [id, payload])
        .toSorted((a, b) => ids.indexOf(a[0] ?? "") - ids.indexOf(b[0] ?? ""));
    const page = async (state: "scheduled" | "waiting" | "active" | "completed" | "failed" | "cancelled") =>
      seen((await store.queues.page({ queue: "q", state, n: 100 })).tasks);
    await q.submit(...TEXTS.map((payload, i) => task(`t${i}`, { payload, delayMs: 10, key: `k${i % 2}` })));
    expect(await page("scheduled")).toEqual(same);
    clock.advance(10);
    const first = await q.claim("h", 99);
    expect(seen(first)).toEqual(same);
    expect(await page("active")).toEqual(same);
    await q.settle(...first.map((claim, i) => failed(claim, { error: TEXTS[i] ?? "", retryInMs: 5 })));
    clock.advance(5);
    await q.sweep();
    expect(await page("waiting")).toEqual(same);
    for (const [i, id] of ids.entries()) expect((await q.get(id)).error).toBe(TEXTS[i]);
    await q.claim("h", 99);
    await q.lose(["h"], ids.slice(0, 5));
    await q.claim("h", 99);
    clock.advance(LEASE_MS);
    const taken = await q.claim("h", 99);
    expect(seen(taken)).toEqual(same);
    await q.settle(...taken.map((claim) => ended(claim, "returned")));
    await q.cancel(...ids);
    expect(await page("cancelled")).toEqual(same);
    await q.retry(...ids);
    await q.settle(...(await q.claim("h", 99)).map((claim) => failed(claim, { final: true })));
    expect(await page("failed")).toEqual(same);
    await q.retry(...ids);
    const last = await q.claim("h", 99);
    expect(seen(last)).toEqual(same);
    await q.settle(...last.map((claim) => completed(claim, TEXTS[ids.indexOf(claim.id)] ?? null)));
    expect(await page("completed")).toEqual(same);
    for (const [i, id] of ids.entries())
      expect(await q.get(id)).toMatchObject({ payload: TEXTS[i], result: TEXTS[i] });
    expect(await store.queues.ask({ queue: "q", id: "t0" })).toMatchObject({ payload: TEXTS[0] });
  });

  siteCase(harness, "a replaced payload, an empty result and none at all", async ({ open }) => {
    const q = await declaredQueue(await open());
    const dedupe = { key: "d", onDuplicate: "replace" as const, windowMs: 0 };
    for (const [i, payload] of TEXTS.entries()) {
      await q.submit(task(`t${i}`, { payload, dedupe }));
      expect((await q.get("t0")).payload).toBe(payload);
    }
    await q.submit(task("empty"), task("null"), task("none"));
    const [a, b, c, d] = await q.claim("h", 9);
    if (!a || !b || !c || !d) throw new Error("four were there");
    await q.settle(completed(a, TEXTS[0]), completed(b, ""), completed(c, "null"), completed(d, null));
    const results = await Promise.all(
      ["t0", "empty", "null", "none"].map(async (id) => (await q.get(id)).result),
    );
    expect(results).toEqual([TEXTS[0], "", "null", null]);
  });

  siteCase(harness, "ids, keys, holders and workers are texts too", async ({ open }) => {
    const store = await open();
    const q = await declaredQueue(store);
    const odd = [
      "1",
      "01",
      "a:b",
      "a}b{c",
      " ",
      "é 日本 🚀",
      "x".repeat(500),
      "%s",
      "__proto__",
      "constructor",
      "-1",
      "1e3",
    ];
    await q.submit(
      ...odd.map((id) => task(id, { key: id, dedupe: { key: id, onDuplicate: "ignore", windowMs: 0 } })),
    );
    expect(
      await q.submitted(task("new", { dedupe: { key: "__proto__", onDuplicate: "ignore", windowMs: 0 } })),
    ).toEqual([{ id: "__proto__", outcome: "ignored" }]);
    for (const id of odd) {
      const turn = await store.queues.turn({
        queue: "q",
        holder: id,
        worker: id,
        leaseMs: 60_000,
        settle: [],
        claim: 1,
      });
      expect(turn.tasks).toMatchObject([{ id, key: id }]);
      expect(await q.keep(id)).toEqual([[{ id, token: turn.tasks[0]?.token, cancelling: false }]]);
      expect(await q.get(id)).toMatchObject({ id, key: id, dedupeKey: id, worker: id });
    }
    expect(await q.lose(odd.slice(0, 6), odd.slice(0, 1))).toEqual({ crashed: 1, interrupted: 5 });
    expect(await q.lose(odd, odd)).toEqual({ crashed: 6, interrupted: 0 });
    expect(await q.cancel(...odd)).toEqual(odd.map(() => "cancelled"));
  });

  siteCase(harness, "queues whose names begin alike do not mix, nor do namespaces", async (site) => {
    const [store, beside] = [await site.open(), await site.openBeside("-b")];
    const names = ["a", "a.b", "a-b", "ab"];
    const queues = await Promise.all(names.map((name) => declaredQueue(store, { concurrency: 1 }, name)));
    for (const q of queues) await q.submit(task("same", { payload: JSON.stringify(q.queue) }), task("x"));
    const other = new Queue(beside, "a");
    expect(await beside.queues.list()).toEqual([]);
    expect(await other.state("same")).toBeUndefined();
    await declaredQueue(beside, { concurrency: 1 }, "a");
    await other.submit(task("there"));
    expect(await other.claimIds("h", 9)).toEqual(["there"]);
    for (const q of queues)
      expect(await q.claim("h", 9)).toMatchObject([{ payload: JSON.stringify(q.queue) }]);
    expect(await other.lose(["h"])).toEqual({ crashed: 0, interrupted: 1 });
    for (const q of queues) expect(await q.counts()).toEqual({ active: 1, waiting: 1 });
    expect(await store.queues.list()).toEqual(names.toSorted());
  });
}
