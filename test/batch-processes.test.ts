// Short (`npm test`): tasks in real processes that are killed, hang, block, freeze and drain. Lease 3 s unless it says otherwise.
import { describe, expect, test, vi } from "vitest";
import { type BatchFleet, batchFleet } from "./support/batch-fleet.ts";
import { measured, ms, type Line } from "./support/heal-fleet.ts";
import { PLACES, placesFor, runningSlots, slotStatus } from "./support/places.ts";
import { descendants } from "./support/processes.ts";

const QUICK = { taskGraceMs: 300 };
const LONG_LEASE_MS = 60_000;

async function started(fleet: BatchFleet, slots: number): Promise<void> {
  await vi.waitFor(async () => expect((await runningSlots(fleet.store)).size).toBe(slots), {
    timeout: 60_000,
    interval: 50,
  });
}

async function submit(fleet: BatchFleet, what: string, options = {}, n = 0): Promise<string> {
  return (await fleet.queue.submit({ do: what, n }, options)).id;
}

describe.each(placesFor("Redis"))("tasks in processes on $name", (place) => {
  test("harm of one task costs no other one", async () => {
    const fleet = await batchFleet(place, 6);
    for (const id of ["one", "two", "three"]) fleet.worker(id, { timings: QUICK });
    await started(fleet, 6);

    // Two poisonous tasks among good ones: they end in the dead letter, all others are done.
    const poison = [await submit(fleet, "abort"), await submit(fleet, "exit")];
    const good = await fleet.queue.submitMany(Array.from({ length: 200 }, () => ({ do: "ok" })));
    const goodIds = good.map(({ id }) => id);
    for (const record of await fleet.ended(poison))
      expect(record).toMatchObject({ state: "failed", reason: "poison", attempts: 0, crashes: 3 });
    await fleet.ended(goodIds);
    // All of them; and each of the six crashes may double what its one neighbour had done and not yet told.
    const effects = fleet.effects(goodIds);
    expect(Math.min(...effects)).toBe(1);
    expect(effects.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(goodIds.length + 6);
    for (const id of poison)
      expect(fleet.lines("job", "begin").filter((line) => line["task"] === id)).toHaveLength(3);

    // One that kills its process once: it comes back, and is done, though it may fail no attempt.
    const died = await submit(fleet, "die once", { maxAttempts: 1 });
    const [record] = await fleet.ended([died]);
    expect(record).toMatchObject({ state: "completed", attempts: 1, crashes: 1, interruptions: 0 });

    // One that hangs: its signal aborts, then its process is ended; the attempt has failed.
    const hung = await submit(fleet, "hang", { maxAttempts: 1, timeoutSeconds: 1 });
    expect((await fleet.ended([hung]))[0]).toMatchObject({
      state: "failed",
      reason: "timeout",
      attempts: 1,
      crashes: 0,
    });
    expect(fleet.lines("job", "told").filter((line) => line["task"] === hung)).toMatchObject([
      { reason: "timeout" },
    ]);
    await vi.waitFor(
      async () =>
        expect(await fleet.lastHeal((await fleet.untilTask(hung, "begin")).slot)).toMatchObject({
          cause: "task-timeout",
        }),
      { timeout: 60_000, interval: 50 },
    );

    // From here on no process dies: what runs twice now was handed out twice.
    const delayed = await submit(fleet, "ok", { delaySeconds: 4 });
    // One that blocks its process for longer than its lease: nobody else gets it.
    const busy = await submit(fleet, "busy", { maxAttempts: 1 }, 3.5);
    const [kept] = await fleet.ended([busy]);
    expect(kept).toMatchObject({ state: "completed", attempts: 1, crashes: 0, interruptions: 0 });

    // One that was delayed for longer than a lease: run once, and in time.
    const [late] = await fleet.ended([delayed]);
    expect(late).toMatchObject({ state: "completed", attempts: 1, crashes: 0, interruptions: 0 });
    const by = (late?.startedAt ?? 0) - (late?.submittedAt ?? 0) - 4000;
    measured(`${place.name}: a delayed task starts late by`, ms(by));
    expect(by).toBeGreaterThanOrEqual(0);
    expect(fleet.effects([busy, delayed])).toEqual([1, 1]);
  }, 240_000);

  test("a task that breaks its process long after it has begun takes no other one with it", async () => {
    const fleet = await batchFleet(place, 4);
    fleet.worker("one", { timings: { ...QUICK, leaseMs: LONG_LEASE_MS } });
    await started(fleet, 4);

    // Given back at the death of its process, long before its lease is over: the death was told.
    const died = await submit(fleet, "die once");
    await fleet.ended([died]);
    const [first, again] = fleet.lines("job", "begin").filter((line) => line["task"] === died);
    const pause = (again as Line).at - (first as Line).at;
    measured(`${place.name}: a task whose process was killed runs again after`, ms(pause));
    expect(pause).toBeLessThan(LONG_LEASE_MS - 5000);
    await started(fleet, 4);

    const bad = await submit(fleet, "late abort", {}, 0.7);
    const good = await fleet.queue.submitMany(Array.from({ length: 80 }, () => ({ do: "wait", n: 0.1 })));
    const [poison] = await fleet.ended([bad]);
    expect(poison).toMatchObject({ state: "failed", reason: "poison", attempts: 0, crashes: 3 });
    const records = await fleet.ended(good.map(({ id }) => id));
    expect(new Set(records.map(({ state }) => state))).toEqual(new Set(["completed"]));
    // Twice it was not known which of up to four it had been; then it ran alone.
    const crashed = records.filter(({ crashes }) => crashes > 0);
    expect(crashed.length).toBeGreaterThanOrEqual(1);
    expect(crashed.length).toBeLessThanOrEqual(6);
    const runs = fleet.lines("job", "begin").filter((line) => line["task"] === bad);
    expect(runs.map((line) => line["crashes"])).toEqual([0, 1, 2]);
    const last = runs[2] as Line;
    const beside = fleet
      .lines("job", "begin")
      .filter((line) => line.pid === last.pid && line.at >= last.at && line["task"] !== bad);
    expect(beside).toEqual([]);
    // No slot bears what was not known; that of the last run bears one failure, beside the one above.
    const health = Object.values(await fleet.store.registry.slotHealth());
    const borne = health.flatMap(({ history }) => history).filter(({ collateral }) => !collateral);
    expect(borne.map(({ cause, signal }) => `${cause} ${signal}`).toSorted()).toEqual([
      "killed SIGABRT",
      "killed SIGKILL",
    ]);
  }, 240_000);

  test("nothing is lost with a child or a worker that is killed", async () => {
    const fleet = await batchFleet(place, 8);
    const one = fleet.worker("one", { timings: QUICK });
    await started(fleet, 8);
    fleet.worker("two", { timings: QUICK });
    await vi.waitFor(
      async () =>
        expect(new Set([...(await runningSlots(fleet.store)).values()].flat())).toEqual(
          new Set(["one", "two"]),
        ),
      { timeout: 60_000 },
    );
    const ids = (
      await fleet.queue.submitMany(Array.from({ length: 100 }, () => ({ do: "wait", n: 0.1 })))
    ).map(({ id }) => id);
    const began = await fleet.untilLine((line) => line.worker === "one" && line.what === "begin");
    // Whatever it ran had begun, and had no effect yet.
    process.kill(began.pid, "SIGKILL");
    await fleet.untilLine((line) => line.worker === "one" && line.what === "begin" && line.pid !== began.pid);
    for (const pid of [one.pid, ...descendants(one.pid)]) process.kill(pid, "SIGKILL");
    const records = await fleet.ended(ids);
    expect(records.filter(({ state }) => state !== "completed")).toEqual([]);
    const effects = fleet.effects(ids);
    expect(Math.min(...effects)).toBe(1);
    // At most one more for each slot of what was killed, twice.
    expect(effects.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(100 + 16);
    const crashed = records.filter(({ crashes }) => crashes > 0);
    const interrupted = records.filter(({ interruptions }) => interruptions > 0);
    // Of the child one slot was to blame, of the worker all.
    expect(crashed.length).toBeGreaterThanOrEqual(1);
    expect(crashed.length + interrupted.length).toBeLessThanOrEqual(16);
  }, 240_000);

  test("a drain lets tasks finish, and takes back what does not in time", async () => {
    const fleet = await batchFleet(place, 2);
    const one = fleet.worker("one", { timings: QUICK });
    await started(fleet, 2);
    const short = await submit(fleet, "sleep", {}, 2);
    await fleet.untilTask(short, "begin");
    await vi.waitFor(
      async () => {
        const tasks = await Promise.all([0, 1].map((slotId) => slotStatus(fleet.store, "job", slotId)));
        expect(tasks.map((slot) => slot?.task?.id)).toContain(short);
      },
      { timeout: 60_000, interval: 50 },
    );
    one.signal("SIGTERM");
    expect(await one.ended).toBe(0);
    expect(await fleet.record(short)).toMatchObject({ state: "completed", attempts: 1, interruptions: 0 });

    const two = fleet.worker("two", { timings: QUICK, args: ["--drain-seconds", "1"] });
    await started(fleet, 2);
    const long = await submit(fleet, "sleep", { maxAttempts: 1 }, 60);
    const deaf = await submit(fleet, "deaf once", { maxAttempts: 1 });
    await Promise.all([fleet.untilTask(long, "begin"), fleet.untilTask(deaf, "begin")]);
    two.signal("SIGTERM");
    expect(await two.ended).toBe(5);
    for (const id of [long, deaf])
      expect(await fleet.record(id)).toMatchObject({
        state: "waiting",
        attempts: 0,
        crashes: 0,
        interruptions: 1,
      });
    expect(fleet.lines("job", "told")).toMatchObject([{ task: long, reason: "drain" }]);
    await fleet.queue.cancel(long);
    fleet.worker("three", { timings: QUICK });
    expect((await fleet.ended([deaf]))[0]).toMatchObject({
      state: "completed",
      attempts: 1,
      interruptions: 1,
    });
    expect(fleet.effects([deaf])).toEqual([1]);
  }, 240_000);
});

// On a SQLite file a process that is stopped in the middle of a write holds up all others.
test("a worker that is frozen for longer than its lease overwrites nothing", async () => {
  const place = PLACES.find(({ name }) => name === "Redis");
  if (place === undefined) throw new Error("there is no Redis to test on");
  const fleet = await batchFleet(place, 1);
  const one = fleet.worker("one", { timings: QUICK });
  await started(fleet, 1);
  const id = await submit(fleet, "wait", { maxAttempts: 1 }, 1.5);
  const first = await fleet.untilTask(id, "begin");
  const all = [one.pid, ...descendants(one.pid)];
  for (const pid of all) process.kill(pid, "SIGSTOP");
  const since = fleet.ledger().length;
  fleet.worker("two", { timings: QUICK });
  const second = await fleet.untilTask(id, "begin", since);
  expect(second).toMatchObject({ worker: "two", crashes: 1 });
  for (const pid of all) process.kill(pid, "SIGCONT");
  const [record] = await fleet.ended([id]);
  expect(record).toMatchObject({ state: "completed", attempts: 1, crashes: 1, worker: "two" });
  expect(JSON.parse(record?.result ?? "null")).toMatchObject({ worker: "two", pid: second.pid });
  // What was frozen has come to its end, too, and its word did not count.
  await fleet.untilLine(
    (line) => line["task"] === id && line.what === "effect" && line.pid === first.pid,
    0,
    60_000,
  );
  await one.until((text) => text.includes("its lease had ended"));
  expect((await fleet.record(id))?.result).toBe(record?.result);
}, 240_000);
