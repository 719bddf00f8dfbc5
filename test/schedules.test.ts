// Short (`npm test`): schedules fired by one or more processes, on both stores, with a clock that is moved by hand.
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, inject, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { defineQueue } from "../src/contracts/queue.ts";
import { Schedules } from "../src/control/schedules.ts";
import { SILENT } from "../src/internal/log.ts";
import { settingsOf } from "../src/primitives/queue-settings.ts";
import { scheduleSpec, type ScheduleOptions } from "../src/primitives/schedule-spec.ts";
import { openStore } from "../src/store/open.ts";
import type { Store } from "../src/store/store.ts";
import { freshNamespace } from "./support/stores.ts";

const QUEUE = defineQueue("reports", { payload: z.object({ n: z.number() }) });
const START = Date.parse("2026-11-29T12:00:05Z");
const SECOND = 1000;

const STORES = [
  { name: "SQLite in memory", url: () => "sqlite::memory:" },
  { name: "Redis", url: () => inject("redisUrl") },
];

describe.each(STORES)("on $name", ({ url }) => {
  /** A store whose time stands still until it is moved, with one schedule. */
  async function scheduled(options: Omit<ScheduleOptions, "payload">) {
    let now = START;
    const store = await openStore(url(), { namespace: freshNamespace(), frozenNow: () => now });
    onTestFinished(() => store.close());
    await store.queues.declare({ queue: "reports", settings: settingsOf(QUEUE), as: "owner" });
    const spec = await scheduleSpec(QUEUE, "tick", { ...options, payload: { n: 7 } }, "runtime");
    await store.queues.putSchedule({ queue: "reports", spec });
    return {
      store,
      to: (seconds: number) => {
        now = START + seconds * SECOND;
      },
      /** Nominal times of all tasks so far, in seconds since the start, in order. */
      ticks: async () =>
        (await allTasks(store))
          .map(({ tick }) => ((tick?.at ?? 0) - START) / SECOND)
          .toSorted((a, b) => a - b),
    };
  }

  function service(store: Store, leading: () => boolean = () => true): Schedules {
    const made = new Schedules({ store, leading, log: SILENT, refreshMs: 20 });
    onTestFinished(() => made.stop());
    made.start();
    return made;
  }

  test("one task per tick, with its nominal time, however many processes believe that they lead", async () => {
    const { store, to, ticks } = await scheduled({ everySeconds: 10 });
    for (let count = 0; count < 3; count++) service(store);
    for (const [seconds, expected] of [
      [4, []],
      [6, [5]],
      [15.5, [5, 15]],
      [16, [5, 15]],
      [26, [5, 15, 25]],
    ] as const) {
      to(seconds);
      await until(async () => expect(await ticks()).toEqual(expected));
      // Long enough for the others to have had a look as well.
      await delay(150);
      expect(await ticks()).toEqual(expected);
    }
    const [task] = await allTasks(store);
    expect(task).toMatchObject({ payload: '{"n":7}', tick: { schedule: "tick", at: START + 5 * SECOND } });
  });

  test.each([
    ["skip", []],
    ["once", [35]],
    ["all", [15, 25, 35]],
  ] as const)("nobody was there for 35 s: %s", async (missed, extra) => {
    const { store, to, ticks } = await scheduled({ everySeconds: 10, missed });
    const first = service(store);
    to(5);
    await until(async () => expect(await ticks()).toEqual([5]));
    await first.stop();
    to(44);
    service(store);
    await until(async () => expect(await ticks()).toEqual([5, ...extra]));
    // And on as if nothing had been.
    to(45);
    await until(async () => expect(await ticks()).toEqual([5, ...extra, 45]));
  });

  test("a leader that was cut off and does not know it fires nothing twice", async () => {
    const { store, to, ticks } = await scheduled({ everySeconds: 10, missed: "all" });
    // What it read before it was cut off is all that it knows: no tick has been decided for it.
    const stale = await store.queues.schedules({ queue: "reports" });
    let tried = 0;
    const queues: Store["queues"] = {
      ...store.queues,
      schedules: async () => ({ ...stale, now: await store.now() }),
      submit: (args) => ((tried += 1), store.queues.submit(args)),
    };
    service(store);
    for (const seconds of [5, 15, 25]) {
      to(seconds);
      await until(async () => expect((await ticks()).at(-1)).toBe(seconds));
    }
    service({ ...storeOf(store), queues });
    await until(() => Promise.resolve(expect(tried).toBeGreaterThanOrEqual(3)));
    expect(await ticks()).toEqual([5, 15, 25]);
  });

  test("who does not lead fires nothing, and one that begins to lead goes on where the other was", async () => {
    const { store, to, ticks } = await scheduled({ everySeconds: 10, missed: "skip" });
    let leader = "a";
    service(store, () => leader === "a");
    service(store, () => leader === "b");
    to(5);
    await until(async () => expect(await ticks()).toEqual([5]));
    leader = "b";
    to(15);
    await until(async () => expect(await ticks()).toEqual([5, 15]));
    leader = "nobody";
    to(25);
    await delay(300);
    expect(await ticks()).toEqual([5, 15]);
  });

  test("an unfinished task keeps the next tick from adding one, where overlap is skip", async () => {
    const { store, to, ticks } = await scheduled({ everySeconds: 10, overlap: "skip" });
    service(store);
    to(5);
    await until(async () => expect(await ticks()).toEqual([5]));
    to(15);
    await until(async () => expect(await lastTick(store)).toBe(15));
    expect(await ticks()).toEqual([5]);
    const turn = { queue: "reports", holder: "h", worker: "w", leaseMs: 60_000 };
    const { tasks } = await store.queues.turn({ ...turn, settle: [], claim: 10 });
    const settle = tasks.map(({ id, token }) => ({ id, token, outcome: "completed" as const, result: null }));
    expect((await store.queues.turn({ ...turn, settle, claim: 0 })).settled).toEqual(["settled"]);
    to(25);
    await until(async () => expect(await ticks()).toEqual([5, 25]));
  });

  test("a paused schedule lets its ticks pass, and makes up for none of them", async () => {
    const { store, to, ticks } = await scheduled({ everySeconds: 10, missed: "all" });
    await store.queues.pauseSchedule({ queue: "reports", id: "tick", paused: true });
    service(store);
    to(26);
    await until(async () => expect(await lastTick(store)).toBe(25));
    await store.queues.pauseSchedule({ queue: "reports", id: "tick", paused: false });
    to(35);
    await until(async () => expect(await ticks()).toEqual([35]));
  });

  test("what passes in a pause is not made up for, also where nobody led meanwhile", async () => {
    const { store, to, ticks } = await scheduled({ everySeconds: 10, missed: "all" });
    await store.queues.pauseSchedule({ queue: "reports", id: "tick", paused: true });
    to(101);
    await store.queues.pauseSchedule({ queue: "reports", id: "tick", paused: false });
    service(store);
    to(105);
    await until(async () => expect(await ticks()).toEqual([105]));
  });

  test("a full queue is not asked again and again, and no schedule keeps the others", async () => {
    const { store, to, ticks } = await scheduled({ everySeconds: 10 });
    const settings = { ...settingsOf(QUEUE), maxLength: 1 };
    await store.queues.declare({ queue: "full", settings, as: "owner" });
    const spec = await scheduleSpec(QUEUE, "tick", { everySeconds: 10, payload: { n: 1 } }, "runtime");
    await store.queues.putSchedule({ queue: "full", spec: { ...spec, missed: "all" } });
    // A time zone that this process does not know, as another version of Node may.
    const strange = { ...spec, id: "strange", timing: { cron: "* * * * *", timezone: "Nowhere/Land" } };
    await store.queues.putSchedule({ queue: "full", spec: strange });
    service(store);
    for (const seconds of [6, 16]) {
      to(seconds);
      await until(async () => expect((await ticks()).at(-1)).toBe(seconds - 1));
    }
    await delay(700);
    const refused = (await store.queues.stats({ queue: "full" }))?.totals.refused ?? 0;
    expect(refused).toBeGreaterThanOrEqual(1);
    expect(refused).toBeLessThanOrEqual(2);
  });

  test("a single time comes once and is gone", async () => {
    const { store, to, ticks } = await scheduled({ at: START + 90 * SECOND });
    service(store);
    to(60);
    await delay(200);
    expect(await ticks()).toEqual([]);
    to(200);
    await until(async () => expect(await ticks()).toEqual([90]));
    await until(async () =>
      expect((await store.queues.schedules({ queue: "reports" })).schedules).toEqual([]),
    );
  });

  test("a single time that is moved right before it comes fires at the new one alone, and stays until then", async () => {
    const { store, to, ticks } = await scheduled({ at: START + 90 * SECOND });
    // What the leader has read is past when the time comes.
    const stale = await store.queues.schedules({ queue: "reports" });
    const moved = { at: START + 3690 * SECOND, payload: { n: 8 } };
    const spec = await scheduleSpec(QUEUE, "tick", moved, "runtime");
    const record = await store.queues.putSchedule({ queue: "reports", spec });
    to(91);
    let reads = 0;
    let tried = 0;
    const queues: Store["queues"] = {
      ...store.queues,
      schedules: async (args) =>
        (reads += 1) === 1 ? { ...stale, now: await store.now() } : store.queues.schedules(args),
      submit: (args) => ((tried += 1), store.queues.submit(args)),
    };
    service({ ...storeOf(store), queues });
    await until(() => Promise.resolve(expect(reads).toBeGreaterThanOrEqual(2)));
    expect(tried).toBe(1);
    expect((await store.queues.schedules({ queue: "reports" })).schedules).toEqual([record]);
    expect(await ticks()).toEqual([]);
    to(3690);
    await until(async () => expect(await ticks()).toEqual([3690]));
    expect(await allTasks(store)).toMatchObject([{ payload: '{"n":8}' }]);
    await until(async () =>
      expect((await store.queues.schedules({ queue: "reports" })).schedules).toEqual([]),
    );
  });

  test("a task is spread over the jitter", async () => {
    const { store, to } = await scheduled({ everySeconds: 10, jitterSeconds: 8, missed: "all" });
    to(206);
    service(store);
    await until(async () => expect(await allTasks(store)).toHaveLength(21));
    const delays = (await allTasks(store)).map(({ dueAt, tick }) => dueAt - (tick?.at ?? 0));
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...delays)).toBeLessThanOrEqual(201 * SECOND);
    expect(new Set(delays).size).toBeGreaterThan(5);
  });
});

const until = (seen: () => Promise<void>) => vi.waitFor(seen, { timeout: 10_000, interval: 20 });

async function allTasks(store: Store) {
  const pages = await Promise.all(
    (["scheduled", "waiting", "active", "completed"] as const).map((state) =>
      store.queues.page({ queue: "reports", state, n: 100 }),
    ),
  );
  return pages.flatMap(({ tasks }) => tasks);
}

/** The last tick that was decided on, in seconds since the start. */
async function lastTick(store: Store): Promise<number | null> {
  const [schedule] = (await store.queues.schedules({ queue: "reports" })).schedules;
  const at = schedule?.lastTick ?? null;
  return at === null ? null : (at - START) / SECOND;
}

/** The parts of a store as a plain object: its own may be getters. */
function storeOf(store: Store): Store {
  const { traits, namespace, fleetId, streams, queues, pools, state, events, edges, registry } = store;
  return {
    traits,
    namespace,
    fleetId,
    streams,
    queues,
    pools,
    state,
    events,
    edges,
    registry,
    now: () => store.now(),
    damaged: () => store.damaged(),
    wipe: () => store.wipe(),
    close: () => store.close(),
  };
}
