import { expect } from "vitest";
import type { ScheduleRecord, ScheduleSpec } from "../../protocol/task.ts";
import { HandClock, openThree, siteCase, type StoreHarness } from "./harness.ts";
import { declaredQueue } from "./queue-driver.ts";
import type { Store } from "../store.ts";

function spec(id: string, more: Partial<ScheduleSpec> = {}): ScheduleSpec {
  return {
    id,
    timing: { cron: "0 3 * * *", timezone: "Europe/Vienna" },
    payload: '{"tags":[],"m":{}}',
    overlap: "skip",
    missed: "once",
    missedCap: 10,
    jitterMs: 0,
    origin: "runtime",
    task: { priority: 0, key: "k", maxAttempts: 5, timeoutMs: 0, ttlMs: 0 },
    ...more,
  };
}

const put = (store: Store, given: ScheduleSpec) => store.queues.putSchedule({ queue: "q", spec: given });
const all = async (store: Store) => (await store.queues.schedules({ queue: "q" })).schedules;
const one = async (store: Store, id = "s") =>
  (await all(store)).find((record) => record.spec.id === id) as ScheduleRecord;
const ticked = (store: Store, tick: number, revision: number, id = "s") =>
  store.queues.ticked({ queue: "q", id, tick, revision });

export function queueSchedules(harness: StoreHarness): void {
  siteCase(harness, "a schedule is stored as it was put, and removed", async ({ open }) => {
    const clock = new HandClock();
    const store = await open(clock.options);
    await declaredQueue(store);
    const specs = [
      spec("cron"),
      spec("every", {
        timing: { everyMs: 60_000, anchor: 5 },
        missed: "all",
        overlap: "allow",
        jitterMs: 99,
      }),
      spec("once", { timing: { at: clock.ms + 1e9 }, origin: "definition", missed: "skip" }),
      spec("odd : é}", { task: { priority: -5, maxAttempts: 1, timeoutMs: 7, ttlMs: 8 }, payload: '"1.0"' }),
    ];
    for (const given of specs) {
      const { revision, ...record } = await put(store, given);
      expect(record).toEqual({ spec: given, paused: false, since: clock.ms, lastTick: null });
      expect(revision).toBeGreaterThan(0);
    }
    const { now, schedules } = await store.queues.schedules({ queue: "q" });
    expect(now).toBe(clock.ms);
    const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
    expect(schedules.map((record) => record.spec).toSorted(byId)).toEqual(specs.toSorted(byId));
    expect(await store.queues.removeSchedule({ queue: "q", id: "cron" })).toBe("removed");
    expect(await store.queues.removeSchedule({ queue: "q", id: "cron" })).toBe("unknown");
    expect(await store.queues.pauseSchedule({ queue: "q", id: "cron", paused: true })).toBe("unknown");
    expect(await all(store)).toHaveLength(3);
  });

  siteCase(
    harness,
    "an unchanged spec changes nothing; a changed one grows the revision",
    async ({ open }) => {
      const clock = new HandClock();
      const store = await open(clock.options);
      await declaredQueue(store);
      const first = await put(store, spec("s"));
      await ticked(store, clock.ms + 100, first.revision);
      clock.advance(5000);
      const known = await one(store);
      expect(known).toEqual({ ...first, lastTick: first.since + 100 });
      expect(await put(store, spec("s"))).toEqual(known);
      // The same in another order of its fields.
      const { task, timing, ...rest } = spec("s");
      const turned = Object.fromEntries(Object.entries(task).toReversed()) as typeof task;
      expect(await put(store, { task: turned, ...rest, timing })).toEqual(known);
      const payload = "[2]";
      const changed = await put(store, spec("s", { payload }));
      expect(changed).toEqual({ ...known, spec: spec("s", { payload }), revision: changed.revision });
      expect(changed.revision).toBeGreaterThan(known.revision);
      expect(await one(store)).toEqual(changed);
    },
  );

  siteCase(harness, "another timing counts its ticks anew", async ({ open }) => {
    const clock = new HandClock();
    const store = await open(clock.options);
    await declaredQueue(store);
    const first = await put(store, spec("s"));
    await ticked(store, clock.ms + 500, first.revision);
    await store.queues.pauseSchedule({ queue: "q", id: "s", paused: true });
    let revision = (await one(store)).revision;
    for (const timing of [
      { cron: "0 4 * * *", timezone: "Europe/Vienna" },
      { cron: "0 4 * * *", timezone: "UTC" },
      { everyMs: 1000, anchor: 0 },
      { everyMs: 1000, anchor: 1 },
      { at: clock.ms },
    ]) {
      clock.advance(1000);
      const record = await put(store, spec("s", { timing }));
      expect(record).toMatchObject({ paused: true, since: clock.ms, lastTick: null, spec: { timing } });
      expect(record.revision).toBeGreaterThan(revision);
      revision = record.revision;
      await ticked(store, clock.ms + 5, revision);
      expect((await one(store)).lastTick).toBe(clock.ms + 5);
    }
  });

  siteCase(
    harness,
    "ticks never go back, and count only for the schedule they were decided on",
    async ({ open }) => {
      const clock = new HandClock();
      const store = await open(clock.options);
      await declaredQueue(store);
      const { revision } = await put(store, spec("s"));
      await put(store, spec("other"));
      for (const [tick, last] of [
        [1000, 1000],
        [3000, 3000],
        [2000, 3000],
        [3000, 3000],
        [3001, 3001],
      ] as const) {
        await ticked(store, tick, revision);
        expect((await one(store)).lastTick).toBe(last);
      }
      expect((await one(store)).revision).toBe(revision);
      const changed = await put(store, spec("s", { jitterMs: 5 }));
      await ticked(store, 9000, revision);
      expect((await one(store)).lastTick).toBe(3001);
      await ticked(store, 9000, changed.revision);
      expect((await one(store)).lastTick).toBe(9000);
      // Removed and made again it is another schedule.
      await store.queues.removeSchedule({ queue: "q", id: "s" });
      await ticked(store, 9500, changed.revision);
      expect(await one(store)).toBeUndefined();
      const again = await put(store, spec("s"));
      await ticked(store, 9999, revision);
      await ticked(store, 9999, changed.revision);
      expect(await one(store)).toEqual(again);
      expect(again.lastTick).toBeNull();
      expect((await one(store, "other")).lastTick).toBeNull();
    },
  );

  siteCase(
    harness,
    "one that was changed is not removed for what it was, and is removed for what it is",
    async (site) => {
      const [a, b] = await openThree(site);
      await declaredQueue(a);
      const remove = (revision: number) => a.queues.removeSchedule({ queue: "q", id: "s", revision });
      const first = await put(a, spec("s", { timing: { at: 1000 } }));
      const moved = await put(b, spec("s", { timing: { at: 2000 } }));
      expect(await remove(first.revision)).toBe("unknown");
      expect(await one(b)).toEqual(moved);
      // What is decided of it is no change.
      await ticked(b, 2000, moved.revision);
      expect(await remove(moved.revision)).toBe("removed");
      expect(await one(b)).toBeUndefined();
      expect(await remove(moved.revision)).toBe("unknown");
      const again = await put(b, spec("s", { timing: { at: 1000 } }));
      for (const { revision } of [first, moved]) expect(await remove(revision)).toBe("unknown");
      expect(await one(b)).toEqual(again);
    },
  );

  siteCase(harness, "pausing is a change, a second time none", async (site) => {
    const clock = new HandClock();
    const [a, b, c] = await openThree(site, clock.options);
    await declaredQueue(a);
    const { revision, since } = await put(a, spec("s"));
    const pause = (store: Store, paused: boolean) =>
      store.queues.pauseSchedule({ queue: "q", id: "s", paused });
    clock.advance(100);
    expect(await pause(b, true)).toBe("done");
    const paused = await one(c);
    expect(paused).toMatchObject({ paused: true, since, lastTick: null });
    expect(paused.revision).toBeGreaterThan(revision);
    expect(await pause(c, true)).toBe("done");
    expect(await one(a)).toEqual(paused);
    await ticked(a, clock.ms, revision);
    expect((await one(a)).lastTick).toBeNull();
    expect(await put(b, spec("s"))).toEqual(paused);
    clock.advance(100);
    expect(await pause(a, false)).toBe("done");
    const resumed = await one(b);
    // What passed while it was paused is nobody's miss.
    expect(resumed).toMatchObject({ paused: false, since: clock.ms });
    expect(resumed.revision).toBeGreaterThan(paused.revision);
  });

  siteCase(harness, "schedules belong to one queue of one namespace", async (site) => {
    const [store, beside] = [await site.open(), await site.openBeside("-b")];
    await declaredQueue(store);
    await declaredQueue(store, {}, "other");
    await declaredQueue(beside);
    await put(store, spec("s"));
    expect((await store.queues.schedules({ queue: "other" })).schedules).toEqual([]);
    expect(await all(beside)).toEqual([]);
    expect(await beside.queues.removeSchedule({ queue: "q", id: "s" })).toBe("unknown");
    expect(await all(store)).toHaveLength(1);
  });
}
