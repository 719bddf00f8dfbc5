import { expect } from "vitest";
import { HandClock, openThree, range, siteCase, type StoreHarness } from "./harness.ts";
import {
  completed,
  crashed,
  declaredQueue,
  ended,
  failed,
  isGrowing,
  LEASE_MS,
  Queue,
  task,
  tasks,
} from "./queue-driver.ts";

export function queueTokens(harness: StoreHarness): void {
  siteCase(
    harness,
    "a settlement that is repeated is answered again and changes nothing",
    async ({ open }) => {
      const clock = new HandClock();
      const q = await declaredQueue(await open(clock.options));
      await q.submit(...tasks(["done", "again", "cut", "dead"]));
      const claims = await q.claim("h", 4);
      const [a, b, c, d] = claims as [
        (typeof claims)[0],
        (typeof claims)[0],
        (typeof claims)[0],
        (typeof claims)[0],
      ];
      const settlements = [
        completed(a, "1"),
        failed(b, { retryInMs: 100 }),
        ended(c, "interrupted"),
        crashed(d),
      ];
      const all = ["settled", "settled", "settled", "settled"];
      expect(await q.settle(...settlements)).toEqual(all);
      const once = await Promise.all(claims.map(({ id }) => q.get(id)));
      const stats = await q.stats();
      clock.advance(7);
      expect(await q.settle(...settlements, ...settlements)).toEqual([...all, ...all]);
      // Not even another end of the same claim.
      expect(await q.settle(failed(a), completed(b), completed(c), completed(d))).toEqual(all);
      expect(await Promise.all(claims.map(({ id }) => q.get(id)))).toEqual(once);
      expect(await q.stats()).toEqual(stats);
      // Nor when the task is claimed anew.
      clock.advance(100);
      const next = await q.claim("h2", 9);
      expect(next.map(({ id }) => id)).toEqual(["again", "cut", "dead"]);
      expect(await q.settle(...settlements)).toEqual(all);
      expect(await q.counts()).toEqual({ active: 3, completed: 1 });
      expect(await q.settle(...next.map((claim) => completed(claim, "2")))).toEqual(all.slice(1));
    },
  );

  siteCase(harness, "a repeated turn settles once and claims further tasks", async ({ open }) => {
    const q = await declaredQueue(await open());
    await q.submit(...tasks(["a", "b", "c"]));
    const a = await q.claimOne("h");
    const first = await q.turn("h", 1, [failed(a, { retryInMs: 60_000 })]);
    const again = await q.turn("h", 1, [failed(a, { retryInMs: 60_000 })]);
    expect([first.settled, again.settled]).toEqual([["settled"], ["settled"]]);
    expect([first.tasks[0]?.id, again.tasks[0]?.id]).toEqual(["b", "c"]);
    expect(await q.get("a")).toMatchObject({ attempts: 1, state: "scheduled" });
    expect((await q.stats()).totals).toMatchObject({ retried: 1 });
  });

  for (const [how, lose] of [
    ["its lease expired", (q: Queue) => q.sweep()],
    ["its lease expired and somebody claimed", (q: Queue) => q.claim("other", 5)],
    ["its holder was lost", (q: Queue) => q.lose(["h"])],
    ["its process crashed", (q: Queue) => q.lose(["h"], ["a"])],
  ] as const)
    siteCase(harness, `a claim is worth nothing once ${how}`, async ({ open }) => {
      const clock = new HandClock();
      const q = await declaredQueue(await open(clock.options));
      await q.submit(task("a"));
      const late = await q.claimOne("h");
      if (how.startsWith("its lease")) clock.advance(LEASE_MS);
      await lose(q);
      const before = [await q.get("a"), await q.stats()];
      const ends = [completed(late, "1"), failed(late), crashed(late)];
      const more = (["cancelled", "interrupted", "returned"] as const).map((outcome) => ended(late, outcome));
      expect(await q.settle(...ends, ...more)).toEqual(Array(6).fill("lease-lost"));
      expect([await q.get("a"), await q.stats()]).toEqual(before);
      const next = (await q.keep("other"))[0]?.[0] ?? (await q.claimOne("other"));
      expect(BigInt(next.token)).toBeGreaterThan(BigInt(late.token));
      expect(await q.settle(completed(late, "1"), completed(next, "2"), completed(late, "1"))).toEqual([
        "lease-lost",
        "settled",
        "lease-lost",
      ]);
      expect(await q.get("a")).toMatchObject({ state: "completed", result: "2" });
    });

  siteCase(harness, "a claim from before a retry by hand is worth nothing", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options), { crashLimit: 1 });
    await q.submit(task("a"));
    const late = await q.claimOne("h");
    clock.advance(LEASE_MS);
    await q.sweep();
    expect(await q.get("a")).toMatchObject({ state: "failed", reason: "poison" });
    expect(await q.settle(completed(late))).toEqual(["lease-lost"]);
    expect(await q.retry("a")).toEqual(["waiting"]);
    expect(await q.settle(completed(late))).toEqual(["lease-lost"]);
    expect(await q.state("a")).toBe("waiting");
    const next = await q.claimOne("h");
    expect(await q.settle(completed(late))).toEqual(["lease-lost"]);
    expect(await q.settle(completed(next))).toEqual(["settled"]);
  });

  siteCase(harness, "a lease that is over still counts until the task is taken back", async ({ open }) => {
    const clock = new HandClock();
    const q = await declaredQueue(await open(clock.options));
    await q.submit(...tasks(["a", "b"]));
    const [a, b] = await q.claim("h", 2);
    if (a === undefined || b === undefined) throw new Error("two tasks were submitted");
    clock.advance(LEASE_MS * 2);
    expect(await q.keep("h")).toEqual([
      [
        { id: "a", token: a.token, cancelling: false },
        { id: "b", token: b.token, cancelling: false },
      ],
    ]);
    clock.advance(LEASE_MS - 1);
    expect(await q.claim("other", 1)).toEqual([]);
    clock.advance(1);
    // Settlements come first in a turn.
    const turn = await q.turn("other", 5, [completed(a)]);
    expect(turn.settled).toEqual(["settled"]);
    expect(turn.tasks.map(({ id }) => id)).toEqual(["b"]);
    expect(await q.settle(completed(b))).toEqual(["lease-lost"]);
  });

  siteCase(harness, "made-up tokens and ids settle nothing", async ({ open }) => {
    const q = await declaredQueue(await open());
    await q.submit(...tasks(["a", "b"]));
    const claim = await q.claimOne("h");
    const wrong = [
      "0",
      "",
      "x",
      `${claim.token}0`,
      `${BigInt(claim.token) + 1n}`,
      `${BigInt(claim.token) - 1n}`,
    ];
    for (const token of wrong)
      expect(await q.settle(completed({ id: "a", token }), completed({ id: "b", token }))).toEqual([
        "lease-lost",
        "lease-lost",
      ]);
    expect(await q.settle(completed({ id: "b", token: claim.token }))).toEqual(["lease-lost"]);
    expect(await q.settle(completed({ id: "nobody", token: claim.token }))).toEqual(["lease-lost"]);
    expect(await q.counts()).toEqual({ waiting: 1, active: 1 });
  });

  siteCase(harness, "tokens grow with every claim, over connections and steps of the clock", async (site) => {
    const clock = new HandClock();
    const stores = await openThree(site, clock.options);
    const first = await declaredQueue(stores[0]);
    const queues = [first, new Queue(stores[1]), new Queue(stores[2])];
    await first.submit(...range(0, 30).map((i) => task(`t${i}`)));
    const tokens: string[] = [];
    for (const i of range(0, 30)) {
      const q = queues[i % 3] as Queue;
      for (const claim of await q.claim(`h${i}`, 4)) {
        tokens.push(claim.token);
        await first.settle(failed(claim));
      }
      if (i % 5 === 4) clock.advance(i % 2 === 0 ? 3 : -60_000);
    }
    expect(tokens.length).toBe(120);
    expect(isGrowing(tokens)).toBe(true);
    expect(BigInt(tokens[0] as string)).toBeGreaterThanOrEqual(BigInt(new HandClock().ms) * 1000n);
  });

  siteCase(
    harness,
    "tokens stay ahead over the loss of all data, and nothing else is left",
    async ({ open }) => {
      const store = await open();
      const q = await declaredQueue(store);
      const dedupe = { key: "d", onDuplicate: "throttle" as const, windowMs: 1e9 };
      const more = { dedupe, tick: { schedule: "s", at: 1000 }, key: "k" };
      await q.submit(task("a", more), task("b"));
      const [old] = await q.claim("h", 2);
      if (!old) throw new Error("two were there");
      await store.wipe();
      expect(await store.queues.list()).toEqual([]);
      expect(await store.queues.stats({ queue: "q" })).toBeUndefined();
      expect(await q.keep("h")).toEqual([[]]);
      expect(await q.settle(completed(old))).toEqual(["lease-lost"]);
      await declaredQueue(store);
      expect(await q.submit(task("a", more))).toEqual(["submitted"]);
      const next = await q.claimOne("h");
      expect(isGrowing([old.token, next.token])).toBe(true);
      expect(await q.settle(completed(old))).toEqual(["lease-lost"]);
      expect((await q.stats()).totals).toMatchObject({ submitted: 1, completed: 0 });
    },
  );
}
