import { expect } from "vitest";
import { HandClock, range, siteCase, type StoreHarness } from "./harness.ts";
import { completed, crashed, declaredQueue, failed, LEASE_MS, task, tasks } from "./queue-driver.ts";

export function queueLength(harness: StoreHarness): void {
  siteCase(harness, "a list is written as a whole or refused with the numbers", async ({ open }) => {
    const store = await open();
    const q = await declaredQueue(store, { maxLength: 5 });
    const lists = [
      tasks(["a", "b", "c"]),
      tasks(["d", "e", "f"]),
      tasks(["g"]),
      tasks(["h", "i"]),
      tasks(["j"]),
    ];
    const accepted = (ids: string[]) => ({
      outcome: "accepted",
      tasks: ids.map((id) => ({ id, outcome: "submitted" })),
    });
    expect(await store.queues.submit({ queue: "q", lists })).toEqual({
      outcome: "done",
      lists: [
        accepted(["a", "b", "c"]),
        { outcome: "full", length: 3, maxLength: 5 },
        accepted(["g"]),
        { outcome: "full", length: 4, maxLength: 5 },
        accepted(["j"]),
      ],
    });
    expect((await q.ids("waiting")).toSorted()).toEqual(["a", "b", "c", "g", "j"]);
    expect((await q.stats()).totals).toMatchObject({ submitted: 5, refused: 5 });
    // What was refused has never been there.
    expect(await q.state("d")).toBeUndefined();
    expect(await q.cancel("h")).toEqual(["unknown"]);
    // A repeat adds nothing, so it is not refused.
    expect(await q.submit(...tasks(["a", "b", "c"]))).toEqual(["repeated", "repeated", "repeated"]);
    expect(await q.submit()).toEqual([]);
  });

  siteCase(
    harness,
    "active and finished tasks do not count against the length; delayed ones do",
    async ({ open }) => {
      const clock = new HandClock();
      const q = await declaredQueue(await open(clock.options), { maxLength: 3 });
      const room = async (id: string) =>
        (await q.store.queues.submit({ queue: "q", lists: [[task(id)]] })) as {
          lists: { outcome: string }[];
        };
      const outcome = async (id: string) => (await room(id)).lists[0]?.outcome;
      await q.submit(task("a"), task("b"), task("c", { delayMs: 1000 }));
      expect(await outcome("x")).toBe("full");
      const a = await q.claimOne("h");
      expect(await outcome("d")).toBe("accepted");
      expect(await outcome("x")).toBe("full");
      // What comes back does, whatever the length; and nothing further fits.
      await q.settle(failed(a, { retryInMs: 10 }));
      expect(await q.counts()).toEqual({ scheduled: 2, waiting: 2 });
      await q.cancel("b");
      expect(await outcome("x")).toBe("full");
      await q.settle(crashed(await q.claimOne("h")));
      await q.cancel("c");
      expect(await outcome("e")).toBe("accepted");
      expect(await q.retry("b", "c")).toEqual(["waiting", "waiting"]);
      expect((await q.stats()).counts.waiting + (await q.stats()).counts.scheduled).toBe(5);
      await q.submit();
      const store = q.store;
      await declaredQueue(store, { maxLength: 6 });
      expect([await outcome("f"), await outcome("g")]).toEqual(["accepted", "full"]);
      await declaredQueue(store, { maxLength: 0 });
      expect(await outcome("g")).toBe("accepted");
    },
  );

  siteCase(
    harness,
    "duplicates add nothing to the length, and what is superseded makes room",
    async ({ open }) => {
      const q = await declaredQueue(await open(), { maxLength: 2 });
      const twin = (id: string, onDuplicate: "ignore" | "replace" | "supersede", key = "d") =>
        task(id, { dedupe: { key, onDuplicate, windowMs: 0 } });
      await q.submit(twin("a", "ignore"), task("x"));
      expect(await q.submit(twin("b", "ignore"), twin("c", "replace"))).toEqual(["ignored", "replaced"]);
      expect(await q.submit(twin("e", "supersede"))).toEqual(["submitted"]);
      expect(await q.counts()).toEqual({ waiting: 2, cancelled: 1 });
      expect(await q.submit(twin("f", "supersede"), twin("g", "ignore"), twin("i", "supersede"))).toEqual([
        "submitted",
        "ignored",
        "submitted",
      ]);
      await q.cancel("x");
      // Within one list: the first takes the last room, the others are its duplicates.
      expect(
        await q.submit(twin("j", "ignore", "D"), twin("k", "ignore", "D"), twin("l", "replace", "D")),
      ).toEqual(["submitted", "ignored", "replaced"]);
      const full = await q.store.queues.submit({ queue: "q", lists: [[twin("m", "supersede"), task("y")]] });
      expect(full).toMatchObject({ lists: [{ outcome: "full", length: 2, maxLength: 2 }] });
      expect((await q.ids("waiting")).toSorted()).toEqual(["i", "j"]);
      // An active one makes no room: it did not count.
      expect(await q.claimIds("h", 1)).toEqual(["i"]);
      await q.submit(task("z"));
      const refused = await q.store.queues.submit({ queue: "q", lists: [[twin("n", "supersede")]] });
      expect(refused).toMatchObject({ lists: [{ outcome: "full" }] });
      expect((await q.get("i")).cancelling).toBe(false);
      const { refused: count, duplicates } = (await q.stats()).totals;
      expect({ count, duplicates }).toEqual({ count: 3, duplicates: 5 });
    },
  );

  siteCase(
    harness,
    "a claim that has expired counts once, also where a duplicate asks for it and the queue is full",
    async ({ open }) => {
      const clock = new HandClock();
      const q = await declaredQueue(await open(clock.options), { maxLength: 2, crashLimit: 2 });
      const twin = (id: string) => task(id, { dedupe: { key: "d", onDuplicate: "ignore", windowMs: 0 } });
      await q.submit(twin("t"));
      await q.claimOne("h");
      await q.submit(...tasks(["a", "b"]));
      clock.advance(LEASE_MS);
      const full = await q.store.queues.submit({ queue: "q", lists: [[twin("u"), task("c")]] });
      expect(full).toMatchObject({ lists: [{ outcome: "full" }] });
      await q.sweep();
      expect(await q.get("t")).toMatchObject({ state: "waiting", crashes: 1 });
      expect(await q.counts()).toEqual({ waiting: 3 });
      expect(await q.stats()).toMatchObject({ totals: { crashed: 1 }, reasons: {} });
      expect((await q.claimIds("i", 10)).toSorted()).toEqual(["a", "b", "t"]);
    },
  );

  siteCase(harness, "lists of many tasks, and many lists in one call", async ({ open }) => {
    const store = await open();
    const q = await declaredQueue(store);
    const lists = range(0, 500).map((i) => [task(`l${i}`), task(`m${i}`, { key: `k${i % 7}` })]);
    const answer = await store.queues.submit({ queue: "q", lists });
    if (answer.outcome !== "done") throw new Error("declared");
    expect(
      answer.lists.flatMap((one) => (one.outcome === "accepted" ? one.tasks.map(({ id }) => id) : [])),
    ).toEqual(lists.flat().map(({ id }) => id));
    await q.submit(...range(0, 3000).map((i) => task(`t${i}`)));
    const claims = await q.claim("h", 10_000);
    expect(claims).toHaveLength(4000);
    expect(new Set(claims.map(({ token }) => token)).size).toBe(4000);
    expect((await q.keep("h"))[0]).toHaveLength(4000);
    expect(await q.settle(...claims.slice(0, 3500).map((claim) => completed(claim)))).toHaveLength(3500);
    expect(await q.lose(["h"])).toEqual({ crashed: 0, interrupted: 500 });
    expect(await q.counts()).toEqual({ waiting: 500, completed: 3500 });
  });

  siteCase(harness, "what time has ended fills no queue, though nobody has looked yet", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options), { maxLength: 3 });
    await q.submit(...tasks(["a", "b"], { ttlMs: 1000 }), task("c", { ttlMs: 1000, delayMs: 1000 }));
    clock.advance(1000);
    expect(await q.submit(...tasks(["d", "e"]))).toEqual(["submitted", "submitted"]);
    const full = await q.store.queues.submit({ queue: "q", lists: [[task("f")]] });
    expect(full).toMatchObject({ lists: [{ outcome: "full", length: 3, maxLength: 3 }] });
    clock.advance(1000);
    expect(await q.submit(task("f"))).toEqual(["submitted"]);
    expect((await q.stats()).reasons).toEqual({ expired: 3 });
  });
}
