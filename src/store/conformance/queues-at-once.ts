import { expect } from "vitest";
import type { NewTask, OnDuplicate } from "../../protocol/task.ts";
import type { QueueSettings } from "../queue-store.ts";
import { HandClock, openThree, range, type Site, siteCase, type StoreHarness } from "./harness.ts";
import { completed, declaredQueue, failed, LEASE_MS, Queue, task, tasks } from "./queue-driver.ts";

/** One queue as seen by three connections, which take turns: the nth call goes by the nth. */
async function three(site: Site, settings: Partial<QueueSettings> = {}, clock = new HandClock()) {
  const stores = await openThree(site, clock.options);
  const q = await declaredQueue(stores[0], settings);
  const all = stores.map((store) => new Queue(store));
  return { q, clock, by: (n: number) => all[n % 3] as Queue };
}

export function queueAtOnce(harness: StoreHarness): void {
  siteCase(harness, "of many submissions at once of one id, key or tick one is submitted", async (site) => {
    const { q, by } = await three(site);
    const bearing = (onDuplicate: OnDuplicate, key: string) => (i: number) =>
      task(`${key}${i}`, { dedupe: { key, onDuplicate, windowMs: 5000 } });
    const kinds: [string, string, (i: number) => NewTask][] = [
      ["repeated", "same", () => task("same")],
      ["ignored", "i", bearing("ignore", "i")],
      ["ignored", "t", bearing("throttle", "t")],
      ["replaced", "r", bearing("replace", "r")],
      ["replaced", "d", bearing("debounce", "d")],
      ["fired", "s", (i) => task(`s${i}`, { tick: { schedule: "s", at: 1000 } })],
    ];
    for (const [outcome, letter, make] of kinds) {
      const answers = await Promise.all(range(0, 12).map((i) => by(i).submitted(make(i))));
      const all = answers.flat();
      const submitted = all.filter((answer) => answer.outcome === "submitted");
      expect({ letter, submitted: submitted.length }).toEqual({ letter, submitted: 1 });
      const others = all.filter((answer) => answer.outcome !== "submitted");
      expect(others.every((answer) => answer.outcome === outcome)).toBe(true);
      if (outcome !== "fired") expect(others.every(({ id }) => id === submitted[0]?.id)).toBe(true);
    }
    expect(await q.counts()).toEqual({ waiting: 5, scheduled: 1 });
    const superseding = await Promise.all(
      range(0, 12).map((i) => by(i).submit(bearing("supersede", "x")(i))),
    );
    expect(superseding.flat()).toEqual(range(0, 12).map(() => "submitted"));
    expect(await q.counts()).toEqual({ waiting: 6, scheduled: 1, cancelled: 11 });
  });

  siteCase(harness, "submissions at once never make a queue longer than it may be", async (site) => {
    const { q, by } = await three(site, { maxLength: 50 });
    const answers = await Promise.all(
      range(0, 40).map((i) =>
        by(i).store.queues.submit({
          queue: "q",
          lists: [tasks([`a${i}`, `b${i}`, `c${i}`]), [task(`d${i}`)]],
        }),
      ),
    );
    const lists = answers.flatMap((answer) => (answer.outcome === "done" ? answer.lists : []));
    const accepted = lists.flatMap((list) => (list.outcome === "accepted" ? list.tasks : []));
    expect(accepted).toHaveLength(50);
    expect((await q.ids("waiting")).toSorted()).toEqual(accepted.map(({ id }) => id).toSorted());
    expect((await q.stats()).totals).toMatchObject({ submitted: 50, refused: 110 });
  });

  siteCase(harness, "one claim ends once, whoever says so at once", async (site) => {
    const { q, clock, by } = await three(site, { crashLimit: 100 });
    const ids = range(0, 30).map((i) => `t${i}`);
    await q.submit(...tasks(ids));
    const claims = await q.claim("h", 30);
    clock.advance(LEASE_MS);
    await Promise.all([
      ...range(0, 3).map((i) => by(i).settle(...claims.map((claim) => failed(claim, { retryInMs: 60_000 })))),
      ...range(0, 3).map((i) => by(i).lose(["h"], ids)),
      ...range(0, 3).map((i) => by(i).sweep()),
    ]);
    const { totals, counts } = await q.stats();
    expect(totals.retried + totals.crashed).toBe(30);
    expect(counts).toMatchObject({ active: 0, scheduled: totals.retried, waiting: totals.crashed });
    const ended = await Promise.all(ids.map((id) => q.get(id)));
    expect(ended.every(({ attempts, crashes }) => attempts + crashes === 1)).toBe(true);
  });

  siteCase(harness, "sweeps at once take back, end and forget each task once", async (site) => {
    const { q, clock, by } = await three(site, { keepCount: 10 });
    await q.submit(...tasks(range(0, 60).map((i) => `done${i}`)));
    await q.settle(...(await q.claim("h", 60)).map((claim) => completed(claim)));
    await q.submit(...tasks(range(0, 40).map((i) => `held${i}`)));
    await q.claim("h", 40);
    await q.submit(
      ...tasks(
        range(0, 30).map((i) => `old${i}`),
        { ttlMs: 100 },
      ),
    );
    clock.advance(LEASE_MS);
    const swept = await Promise.all(range(0, 6).map((i) => by(i).sweep()));
    const sum = (of: (one: (typeof swept)[0]) => number) => swept.reduce((n, one) => n + of(one), 0);
    expect([sum((one) => one.reclaimed), sum((one) => one.expired), sum((one) => one.forgotten)]).toEqual([
      40, 30, 50,
    ]);
    expect(await q.counts()).toEqual({ waiting: 40, failed: 30, completed: 10 });
  });

  siteCase(harness, "a task that is cancelled while it is claimed is one or the other", async (site) => {
    const { q, by } = await three(site);
    const ids = range(0, 60).map((i) => `t${i}`);
    await q.submit(...tasks(ids));
    const [answers, claims] = await Promise.all([
      Promise.all(ids.map(async (id, i) => (await by(i).cancel(id))[0])),
      Promise.all(range(0, 30).map((i) => by(i + 1).claim(`h${i}`, 2))),
    ]);
    const claimed = new Set(claims.flat().map(({ id }) => id));
    for (const [i, id] of ids.entries()) {
      const { state, cancelling } = await q.get(id);
      const expected = claimed.has(id) ? ["active", true, "cancelling"] : ["cancelled", false, "cancelled"];
      expect([state, cancelling, answers[i]]).toEqual(expected);
    }
  });
}
