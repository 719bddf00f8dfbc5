// What only this back end has; the port's guarantees are in the conformance suite.
import { afterEach, beforeEach, expect, test } from "vitest";
import { DamageBook } from "../damage.ts";
import type { NewTask } from "../../protocol/task.ts";
import { completed, failed, SETTINGS, task } from "../conformance/queue-driver.ts";
import type { QueueStore } from "../queue-store.ts";
import { type Database, openMemory } from "./database.ts";
import type { SqlValue, Statement } from "./driver.ts";
import { createNotifier } from "./notify.ts";
import { AT_ONCE } from "./queue-sweep.ts";
import { createQueues } from "./queues.ts";
import { wipeNamespace } from "./wipe.ts";
import { createWriter } from "./writer.ts";

let db: Database;
/** Texts of all statements that ran, and how many runs and rows that were. */
let ran: Set<string>;
let runs = 0;
let rows = 0;
let now = 1_781_234_567_890;
let queues: QueueStore;

beforeEach(async () => {
  ran = new Set();
  db = counting(await openMemory());
  queues = open("");
  await declare();
});
afterEach(() => db.close());

function open(ns: string): QueueStore {
  const writer = createWriter(db, { deadlineMs: 1000 });
  const notifier = createNotifier(db, () => {});
  return createQueues({ db, ns, clock: () => now, writer, notifier, damage: new DamageBook(undefined) });
}

function counting(inner: Database): Database {
  return { ...inner, sql: (text) => counted(text, inner.sql(text)) };
}

function counted(text: string, statement: Statement): Statement {
  const count = <T>(result: T, of: number): T => {
    ran.add(text);
    runs++;
    rows += of;
    return result;
  };
  return {
    run: (...values) => {
      const result = statement.run(...values);
      return count(result, result.changes);
    },
    get: (...values: SqlValue[]) => count(statement.get(...values), 1) as never,
    all: (...values: SqlValue[]) => {
      const found = statement.all(...values);
      return count(found, found.length) as never;
    },
  };
}

const declare = (more: Partial<typeof SETTINGS> = {}, on = queues) =>
  on.declare({ queue: "q", settings: { ...SETTINGS, ...more }, as: "owner" });
const submit = (tasks: NewTask[], on = queues) => on.submit({ queue: "q", lists: [tasks] });
const turn = (claim: number, settle: Parameters<QueueStore["turn"]>[0]["settle"] = [], on = queues) =>
  on.turn({ queue: "q", holder: "h", worker: "w", leaseMs: 1000, settle, claim });
const numbered = (prefix: string, count: number, more: (i: number) => Partial<NewTask> = () => ({})) =>
  Array.from({ length: count }, (_, i) => task(`${prefix}${i}`, more(i)));
const dedupe = (onDuplicate: NonNullable<NewTask["dedupe"]>["onDuplicate"]) => {
  return { key: onDuplicate, onDuplicate, windowMs: 1000 };
};

/** Every kind of call, on a queue in which there is something of every kind. */
async function everything(on = queues): Promise<void> {
  const everyWay = (["ignore", "replace", "throttle", "debounce", "supersede"] as const).map(dedupe);
  for (const round of [1, 2]) {
    const twins = everyWay.map((one) => task(`${one.onDuplicate}${round}`, { dedupe: one }));
    await submit([...twins, task(`tick${round}`, { tick: { schedule: "s", at: round } })], on);
  }
  await submit(
    [task("late", { delayMs: 1 }), task("short", { ttlMs: 1 }), task("asked", { asked: true })],
    on,
  );
  await submit(
    numbered("keyed", 6, (i) => ({ key: `k${i % 2}` })),
    on,
  );
  const { tasks } = await turn(5, [], on);
  await turn(1, [completed(tasks[0]!), failed(tasks[1]!, { retryInMs: 1 })], on);
  await on.keep({ queue: "q", holders: ["h"], leaseMs: 1000 });
  await on.lose({ queue: "q", holders: ["h"], crashed: [tasks[2]!.id], error: "gone" });
  await on.cancel({ queue: "q", ids: ["asked"] });
  await on.retry({ queue: "q", ids: ["asked"] });
  await on.get({ queue: "q", id: "asked" });
  await on.ask({ queue: "q", id: "asked" });
  for (const state of ["scheduled", "waiting", "active", "completed", "failed", "cancelled"] as const)
    await on.page({ queue: "q", state, n: 1 });
  await on.stats({ queue: "q" });
  await on.list();
  const timing = { everyMs: 1000, anchor: 0 };
  const options = { payload: "1", overlap: "allow", missed: "skip", missedCap: 1, jitterMs: 0 } as const;
  const terms = { priority: 0, maxAttempts: 1, timeoutMs: 0, ttlMs: 0 };
  const spec = { id: "s", timing, ...options, task: terms, origin: "runtime" } as const;
  const { revision } = await on.putSchedule({ queue: "q", spec });
  await on.ticked({ queue: "q", id: "s", tick: 5, revision });
  await on.pauseSchedule({ queue: "q", id: "s", paused: true });
  await on.schedules({ queue: "q" });
  await on.removeSchedule({ queue: "q", id: "s" });
  await declare({ keyConcurrency: 1, keepCount: 0, maxLength: 1 }, on);
  await submit([task("refused")], on);
  now += 5000;
  await turn(1, [], on);
  await on.sweep({ queue: "q" });
  await declare({}, on);
  await submit([task("throttle3", { dedupe: { ...dedupe("throttle"), key: "window" } })], on);
}

test("every statement walks an index, and never all tasks of a queue", async () => {
  await everything();
  const plans = [...ran]
    .filter((sql) => /\b(tasks|task_payloads|queue_\w+|queues)\b/.test(sql) && !sql.startsWith("INSERT"))
    .map((sql) => {
      const steps = db.sql(`EXPLAIN QUERY PLAN ${sql}`).all<[number, number, number, string]>();
      return { sql, plan: steps.map(([, , , step]) => step).join("; ") };
    });
  expect(plans.length).toBeGreaterThan(40);
  const matching = (plan: RegExp) => plans.filter((one) => plan.test(one.plan)).map(({ sql }) => sql);
  expect(matching(/SCAN/)).toEqual([]);
  // Claims are few and in no index by their start.
  expect(matching(/TEMP B-TREE/)).toEqual([
    expect.stringContaining("t.state = 'active' AND (t.token, t.seq) >"),
  ]);
  // By the queue alone, this index leads to all its tasks.
  expect(matching(/autoindex_tasks_1 \(queue_id=\?\)(;|$)/)).toEqual([]);
});

test("a call costs the same with a hundred tasks in the queue and with a hundred thousand", async () => {
  async function cost(what: () => Promise<unknown>): Promise<number> {
    const before = runs + rows;
    await what();
    return runs + rows - before;
  }
  async function costs(prefix: string): Promise<Record<string, number>> {
    const submitted = await cost(() =>
      submit(numbered(prefix, 10, (i) => ({ key: `${prefix}${i}`, priority: 1 }))),
    );
    const { tasks } = await turn(10);
    expect(tasks.map(({ id }) => id)).toEqual(numbered(prefix, 10).map(({ id }) => id));
    const kept = await cost(() => queues.keep({ queue: "q", holders: ["h"], leaseMs: 1000 }));
    const turned = await cost(() =>
      turn(
        10,
        tasks.map((claim) => completed(claim)),
      ),
    );
    const lost = await cost(() => queues.lose({ queue: "q", holders: ["h"], crashed: [], error: "" }));
    const swept = await cost(() => queues.sweep({ queue: "q" }));
    const listed = await cost(() => queues.page({ queue: "q", state: "waiting", n: 10 }));
    const looked = await cost(() => queues.stats({ queue: "q" }));
    return { submitted, kept, turned, lost, swept, listed, looked };
  }
  const crowd = (from: number, to: number, keys: number) =>
    Array.from({ length: to - from }, (_, i) =>
      task(`crowd${from + i}`, {
        key: `k${(from + i) % keys}`,
        delayMs: (from + i) % 4 === 0 ? 60_000 : 0,
        ttlMs: (from + i) % 4 === 1 ? 60_000 : 0,
      }),
    );
  await submit(crowd(0, 100, 20));
  const few = await costs("a");
  for (let from = 100; from < 100_000; from += 5000)
    await submit(crowd(from, Math.min(from + 5000, 100_000), 5000));
  expect((await queues.stats({ queue: "q" }))?.counts).toMatchObject({ scheduled: 25_000 });
  expect(await costs("b")).toEqual(few);
}, 30_000);

test("nothing writes where nothing is to be done", async () => {
  await declare({ concurrency: 1 });
  await submit([task("a"), task("b", { delayMs: 1000 })]);
  const { tasks } = await turn(1);
  const changed = () => db.sql("SELECT total_changes()").get<[number]>()?.[0];
  const before = changed();
  await turn(5);
  await queues.keep({ queue: "q", holders: ["other"], leaseMs: 1000 });
  await queues.lose({ queue: "q", holders: ["other"], crashed: [], error: "" });
  await queues.sweep({ queue: "q" });
  await declare({ concurrency: 1 });
  expect(changed()).toBe(before);
  await queues.keep({ queue: "q", holders: ["h"], leaseMs: 1000 });
  expect(changed()).toBe((before ?? 0) + 1);
  await turn(0, [completed(tasks[0]!)]);
  expect(changed()).toBeGreaterThan((before ?? 0) + 1);
});

test("more that is past its time to live than one step ends delays claims, and is never claimed", async () => {
  await submit([...numbered("old", 2 * AT_ONCE + 1, () => ({ ttlMs: 10, priority: 1 })), task("new")]);
  now += 10;
  for (const left of [AT_ONCE + 2, 2]) {
    const { tasks, ready } = await turn(5);
    expect({ tasks, ready }).toEqual({ tasks: [], ready: left });
  }
  expect((await turn(5)).tasks.map(({ id }) => id)).toEqual(["new"]);
  expect((await queues.stats({ queue: "q" }))?.reasons).toEqual({ expired: 2 * AT_ONCE + 1 });
});

test("a wipe takes all rows of its namespace's queues, and no other's", async () => {
  const other = open("other");
  await declare({}, other);
  await everything(other);
  const tables = db
    .sql("SELECT name FROM sqlite_schema WHERE type = 'table' AND (name LIKE 'queue%' OR name LIKE 'task%')")
    .all<[string]>()
    .map(([name]) => name);
  const counts = () =>
    Object.fromEntries(
      tables.map((name) => [name, db.sql(`SELECT count(*) FROM ${name}`).get<[number]>()?.[0] ?? 0]),
    );
  expect(tables).toHaveLength(7);
  const others = counts();
  for (const table of tables) expect([table, others[table]]).not.toEqual([table, 0]);
  await everything();
  wipeNamespace(db, "");
  expect(counts()).toEqual({ ...others, queues: 1 });
  wipeNamespace(db, "other");
  expect(Object.values(counts()).every((count) => count === 0)).toBe(true);
});
