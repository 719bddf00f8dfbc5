// Short; part of `npm test`. Records in the store that nobody can read: each costs what it is of, and nothing else.
import { join } from "node:path";
import { createClient } from "@redis/client";
import { describe, expect, inject, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { manifestOf } from "../src/automation/manifest.ts";
import { definePool } from "../src/contracts/pool.ts";
import { defineQueue } from "../src/contracts/queue.ts";
import { Control } from "../src/control/control.ts";
import { scale, changeDesired } from "../src/control/desire.ts";
import { applyDeploy } from "../src/control/deploy.ts";
import { readTopology } from "../src/control/read-topology.ts";
import { statusReport } from "../src/control/status-report.ts";
import { defineBatch, defineContinuous } from "../src/index.ts";
import { type Log, SILENT } from "../src/internal/log.ts";
import { readMetrics } from "../src/master/metrics.ts";
import { poolSettings } from "../src/primitives/pool-settings.ts";
import { settingsOf } from "../src/primitives/queue-settings.ts";
import { scheduleSpec } from "../src/primitives/schedule-spec.ts";
import type { DesiredAutomation } from "../src/protocol/spec.ts";
import type { RecordKind } from "../src/store/damage.ts";
import { openStore } from "../src/store/open.ts";
import { redisKeys } from "../src/store/redis/keys.ts";
import { openFile } from "../src/store/sqlite/database.ts";
import type { Store } from "../src/store/store.ts";
import { startWorker } from "../src/worker/worker.ts";
import { publish, restOn } from "./support/rest.ts";
import { freshNamespace, temporaryFolder } from "./support/stores.ts";

const OTHER = "healthy";
const BAD = "spoilt";

/** What stands in places of JSON, and is none that anybody can use. */
const POISON: readonly (readonly [what: string, text: string])[] = [
  ["no JSON", "{ not json"],
  ["nothing", ""],
  ["null", "null"],
  ["a text", '"text"'],
  ["a list of nonsense", '[1, null, {"__proto__": {"x": 1}}]'],
  ["a prototype", '{"__proto__": {"slots": 3, "polluted": true}}'],
  ["fields of other types", '{"slots": "many", "id": 7, "history": {}, "spec": 1, "automations": 3}'],
  ["a newer version's", '{"v": 99, "layout": {"pages": [1, 2, 3]}}'],
  ["nested without end", `${"[".repeat(100_000)}${"]".repeat(100_000)}`],
];

interface Site {
  open: (log?: Log) => Promise<Store>;
  /** Puts a text in the place of a record of that kind; `name` as in the damage that is found. */
  poison: (kind: RecordKind, name: string, text: string) => Promise<void>;
  /** Deletes such a record, as its remedy says. */
  mend: (kind: "desired state", name: string) => Promise<void>;
  /** The same in places that are read by scripts alone. */
  poisonMore: (text: string) => Promise<void>;
}

async function redisSite(): Promise<Site> {
  const ns = freshNamespace();
  const client = createClient({ url: inject("redisUrl") });
  client.on("error", () => undefined);
  await client.connect();
  onTestFinished(() => client.destroy());
  const keys = redisKeys(ns);
  const { workers, observed, desired, assignments, leases, manifests, health, wishes, beats, turns } =
    keys.fleet;
  const hashes: Partial<Record<RecordKind, string>> = {
    worker: workers,
    "slots of a worker": observed,
    "desired state": desired,
    lease: leases,
    manifest: manifests,
    health,
    "wish for a worker": wishes,
    "observed use": keys.edges.counts,
    schedule: `${keys.queue(OTHER).base}schedules`,
    refill: keys.pool(OTHER).refills,
  };
  return {
    open: (log) => opened(inject("redisUrl"), ns, log),
    async poison(kind, name, text) {
      if (kind === "assignments") await client.set(assignments, text);
      else if (kind === "config version")
        await client.zAdd(keys.configs(OTHER), { score: Number(name), value: `5|${text}` });
      else if (kind === "schedule")
        await client.hSet(hashes[kind] as string, name, `1 1 0 -\n{"everyMs":1}\n${text}`);
      else await client.hSet(hashes[kind] as string, name, text);
    },
    async mend(kind, name) {
      await client.hDel(hashes[kind] as string, name);
      await client.hIncrBy(keys.fleet.meta, "revision", 1);
    },
    // What scripts read, and no reader of ours.
    async poisonMore(text) {
      for (const key of [beats, turns]) await client.hSet(key, `${BAD} x`, text);
      await client.hSet(keys.fleet.meta, "revision", (await client.hGet(keys.fleet.meta, "revision")) ?? "1");
    },
  };
}

async function sqliteSite(): Promise<Site> {
  const folder = temporaryFolder();
  onTestFinished(() => folder.remove());
  const path = join(folder.path, "fleet.db");
  const db = await openFile(path, 5000);
  onTestFinished(() => db.close());
  const run = (sql: string, ...values: (string | number)[]) => void db.sql(sql).run(...values);
  const slot = (name: string) => [name.replace(/\/.*/s, ""), name.replace(/^[^/]*\//, "")] as const;
  const puts: Record<RecordKind, (name: string, text: string) => void> = {
    worker: (name, text) =>
      run(
        "INSERT OR REPLACE INTO workers (ns, id, incarnation, generation, last_seen_at, expires_at, info, slots) VALUES ('n', ?, 'i', 1, 1, 9e15, ?, '[]')",
        name,
        text,
      ),
    "slots of a worker": (name, text) =>
      run("UPDATE workers SET slots = ? WHERE ns = 'n' AND id = ?", text, name),
    "desired state": (name, text) =>
      run("INSERT OR REPLACE INTO desired (ns, name, generation, desired) VALUES ('n', ?, 4, ?)", name, text),
    assignments: (_, text) =>
      run("INSERT OR REPLACE INTO assignments (ns, assignments) VALUES ('n', ?)", text),
    lease: (name, text) =>
      run(
        "INSERT OR REPLACE INTO leases (ns, automation, slot_id, worker_id, incarnation, token, expires_at) VALUES ('n', ?, ?, 'w', 'i', 1, ?)",
        ...slot(name),
        text,
      ),
    manifest: (name, text) =>
      run("INSERT OR REPLACE INTO manifests (ns, worker_id, manifests) VALUES ('n', ?, ?)", name, text),
    health: (name, text) =>
      run(
        "INSERT OR REPLACE INTO slot_health (ns, automation, slot_id, health) VALUES ('n', ?, ?, ?)",
        ...slot(name),
        text,
      ),
    "config version": (name, text) =>
      run(
        "INSERT OR REPLACE INTO configs (ns, name, generation, at, version) VALUES ('n', ?, ?, 5, ?)",
        OTHER,
        Number(name),
        text,
      ),
    "wish for a worker": (name, text) =>
      run(
        "INSERT OR REPLACE INTO worker_wishes (ns, worker_id, kind, wish) VALUES ('n', ?, ?, ?)",
        name.replace(/^\S+ /, ""),
        name.replace(/ .*/s, ""),
        text,
      ),
    schedule: (name, text) =>
      run(
        "INSERT OR REPLACE INTO queue_schedules (ns, queue, id, spec, paused, since, revision) VALUES ('n', ?, ?, ?, 0, 1, 1)",
        OTHER,
        name,
        text,
      ),
    refill: (name, text) =>
      run(
        "INSERT OR REPLACE INTO pool_refills (pool_id, line, refill) SELECT id, ?, ? FROM pools WHERE ns = 'n'",
        name,
        text,
      ),
    "observed use": (name, text) =>
      run(
        "INSERT OR REPLACE INTO edges (ns, direction, name, from_kind, from_name, count, first_seen, last_seen, minute, current, before) VALUES ('n', 'emit', ?, 'automation', 'a', ?, 1, 1, 1, 1, 1)",
        name,
        text,
      ),
  };
  return {
    open: (log) => opened(`sqlite:${path}`, "n", log),
    poison: (kind, name, text) => Promise.resolve(puts[kind](name, text)),
    async mend(_, name) {
      run("DELETE FROM desired WHERE ns = 'n' AND name = ?", name);
    },
    async poisonMore(text) {
      run("INSERT INTO turns (ns, automation, holder, expires_at) VALUES ('n', ?, 'x', ?)", BAD, text);
    },
  };
}

async function opened(url: string, namespace: string, log: Log = SILENT): Promise<Store> {
  const store = await openStore(url, {
    namespace,
    log: (level, message, fields) => log[level](message, fields),
  });
  onTestFinished(() => store.close());
  return store;
}

const queue = defineQueue(OTHER, z.strictObject({ n: z.number() }));
const POOL = definePool(OTHER, { payload: z.string() });
const batch = defineBatch(OTHER, { tasks: queue, runOne: () => undefined });
const steady = defineContinuous("steady", { runSlot: () => Promise.resolve() });
const wanted = (slots: number): DesiredAutomation => ({
  slots,
  config: {},
  paused: false,
  generation: 1,
  deployed: {},
  changedBy: { slots: "t", config: "t" },
});

/** A healthy fleet: a live worker, two automations, a schedule, a pool with a wish, some use. */
async function healthyFleet(store: Store): Promise<string> {
  const { registry, queues, pools, edges } = store;
  await publish(store, [batch, steady]);
  const [worker] = (await registry.view()).workers;
  const id = worker?.id as string;
  await registry.register({
    worker: { ...(worker as NonNullable<typeof worker>), capacity: 20 },
    manifests: (await registry.manifests())[id] ?? [],
    ttlMs: 600_000,
  });
  const record = { by: "t", note: null };
  await registry.putDesired({ name: OTHER, desired: wanted(2), expected: 0, record });
  await registry.putDesired({ name: "steady", desired: wanted(1), expected: 0 });
  await queues.declare({ queue: OTHER, settings: settingsOf(queue), as: "owner" });
  const spec = await scheduleSpec(queue, "nightly", { everySeconds: 1, payload: { n: 1 } }, "runtime");
  await queues.putSchedule({ queue: OTHER, spec });
  await pools.declare({ pool: OTHER, settings: poolSettings(POOL), as: "owner" });
  await pools.putRefill({
    pool: OTHER,
    refill: { where: {}, below: 1, queue: OTHER, payload: '{"n":2}', maxAttempts: 1, timeoutMs: 1000 },
  });
  await edges.observe({
    from: { kind: "automation", name: OTHER },
    edges: [{ direction: "run", name: OTHER, count: 3 }],
  });
  return id;
}

/** Everything that reads, and what of the healthy part each must go on to show. */
async function allGoesOn(store: Store, worker: string): Promise<void> {
  const { registry, queues, pools, edges } = store;
  const view = await registry.view();
  expect(view.workers.map(({ id }) => id)).toContain(worker);
  expect(view.desired[OTHER]?.slots).toBe(2);
  const manifests = await registry.manifests();
  expect(manifests[worker]?.map(({ name }) => name)).toEqual([OTHER, "steady"]);
  expect((await registry.configHistory({ name: OTHER, limit: 100 })).map(({ by }) => by)).toContain("t");
  expect((await queues.schedules({ queue: OTHER })).schedules.map(({ spec }) => spec.id)).toEqual([
    "nightly",
  ]);
  expect((await pools.refills({ pool: OTHER })).map(({ below }) => below)).toEqual([1]);
  expect((await edges.list()).edges.map(({ name }) => name)).toContain(OTHER);
  const health = await registry.slotHealth();
  const report = statusReport(view, health, manifests, await store.damaged());
  expect(report.automations.find(({ name }) => name === OTHER)?.slots).toBe(2);
  expect((await readTopology(store)).nodes.map(({ id }) => id)).toContain(`automation:${OTHER}`);
  const { text } = await readMetrics(store, () => true);
  expect(text).toContain("fleet_store_up 1");
  const rest = restOn(store);
  const paths = ["/automations", `/automations/${OTHER}`, "/workers", "/fleet", "/pools", "/topology"];
  for (const path of [
    ...paths,
    `/automations/${OTHER}/schedules`,
    `/automations/${OTHER}/tasks?state=waiting`,
  ]) {
    const answer = await rest.call("GET", path);
    expect([path, answer.status]).toEqual([path, 200]);
  }
  const versions = await rest.call("GET", `/automations/${OTHER}/config/history`);
  expect(versions.text).toContain('"by":"t"');
  await rest.stop();
}

const PLACES: readonly (readonly [RecordKind, string])[] = [
  ["worker", BAD],
  ["worker", "__proto__"],
  ["slots of a worker", BAD],
  ["desired state", BAD],
  ["desired state", "__proto__"],
  ["lease", `${BAD}/0`],
  ["manifest", BAD],
  ["manifest", "__proto__"],
  ["health", `${BAD}/0`],
  ["config version", "77"],
  ["wish for a worker", `cordon ${BAD}`],
  ["schedule", BAD],
  ["schedule", "__proto__"],
  ["refill", BAD],
  ["observed use", "__proto__"],
];

describe.each([
  { name: "Redis", site: redisSite },
  { name: "SQLite", site: sqliteSite },
])("$name", ({ site }) => {
  test.each(POISON)(
    "%s in every place costs what it is of",
    async (_what, text) => {
      const { open, poison } = await site();
      const told: string[] = [];
      const log: Log = {
        ...SILENT,
        error: (message, fields) => void told.push(JSON.stringify([message, fields])),
      };
      const store = await open(log);
      const worker = await healthyFleet(store);
      for (const [kind, name] of PLACES) await poison(kind, name, text);
      await allGoesOn(store, worker);
      const found = await store.damaged();
      for (const [kind, name] of PLACES) {
        // Redis' client leaves such a field of a map out by itself.
        if (kind === "manifest" && name === "__proto__") continue;
        const own = found.find((one) => one.kind === kind && one.name.endsWith(name));
        expect([kind, name, own?.reason]).toEqual([kind, name, expect.any(String)]);
        expect(own?.where).toContain(name);
        expect(own?.remedy).toMatch(/delete it \((HDEL|ZREMRANGEBYSCORE|DELETE FROM) .*\), then /);
      }
      const often = told.length;
      expect(often).toBeGreaterThanOrEqual(found.length);
      await allGoesOn(store, worker);
      expect(told.length).toBe(often);
      expect(told.join("")).not.toContain("xxxxxxxx".repeat(1000));
      expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    },
    60_000,
  );

  test("one that is huge is not read", async () => {
    const { open, poison } = await site();
    const store = await open();
    const text = JSON.stringify({
      history: [],
      failures: 0,
      spent: [],
      circuit: null,
      fill: "x".repeat(9e6),
    });
    await poison("health", `${BAD}/0`, text);
    await poison(
      "health",
      `${OTHER}/0`,
      JSON.stringify({ history: [], failures: 1, spent: [], circuit: null }),
    );
    expect(Object.keys(await store.registry.slotHealth())).toEqual([`${OTHER}/0`]);
    expect((await store.damaged()).map(({ reason }) => reason)).toEqual([
      expect.stringContaining("characters"),
    ]);
  });

  test("the leader places, fires, refills and sweeps beside them, and writes assignments anew", async () => {
    const { open, poison, poisonMore } = await site();
    const store = await open();
    const worker = await healthyFleet(store);
    for (const [kind, name] of PLACES) await poison(kind, name, '{"v": 99}');
    await poison("assignments", "all", '{"__proto__": 3}');
    await poisonMore("no number");
    const control = new Control({
      store,
      candidate: "c",
      rank: 1,
      leaseMs: 10_000,
      sweepMs: 100,
      log: SILENT,
    });
    control.start();
    onTestFinished(() => control.stop());
    await vi.waitFor(
      async () => {
        await control.turn(undefined);
        const { assignments, damaged } = await store.registry.view();
        expect(Object.values({ ...assignments[OTHER] })).toEqual([worker, worker]);
        expect(damaged.map(({ kind }) => kind)).not.toContain("assignments");
        const { tasks } = await store.queues.page({ queue: OTHER, state: "waiting", n: 100 });
        expect(tasks.some(({ tick }) => tick?.schedule === "nightly")).toBe(true);
        expect(tasks.some(({ dedupeKey }) => dedupeKey?.startsWith("refill:"))).toBe(true);
      },
      { timeout: 20_000, interval: 100 },
    );
    const turn = { automation: BAD, holder: "me", most: 1, ttlMs: 1000 };
    expect(await store.registry.takeTurn(turn)).toMatch(/taken|full/);
    expect(await store.registry.pruneWorkers({ offlineMs: 0 })).toEqual({ removed: expect.any(Number) });
    const claimed = await store.registry.claimSlots({
      workerId: worker,
      incarnation: "i",
      leaseMs: 1000,
      slots: [{ automation: OTHER, slotId: 0 }],
    });
    expect(claimed).toHaveLength(1);
  }, 40_000);

  test("a worker starts beside them, and runs on where what is desired of its automation cannot be read", async () => {
    const { open, poison, mend } = await site();
    const store = await open();
    await healthyFleet(store);
    for (const [kind, name] of PLACES) await poison(kind, name, "{ not json");
    let turns = 0;
    const runs = defineContinuous("runs", {
      async runSlot(ctx) {
        for await (const _ of ctx.loop({ everySeconds: 0.02 })) turns += 1;
      },
    });
    const automations = [
      { manifest: manifestOf(runs, "1"), module: "", source: "t", isolate: "automation" as const },
    ];
    const worker = await startWorker({
      store: await open(),
      storeUrl: "inline",
      program: { automations, deploy: {} },
      log: SILENT,
      inline: new Map([["runs", runs]]),
      timings: { beatMs: 50, leaseMs: 2000 },
    });
    onTestFinished(() => worker.drain().then(() => undefined));
    const runsOn = async () => {
      const before = turns;
      await vi.waitFor(() => expect(turns).toBeGreaterThan(before + 2), { timeout: 20_000 });
    };
    await runsOn();
    const healthy = (await store.registry.view()).desired.runs;
    await poison("desired state", "runs", '{"slots": "three"}');
    // Other automations go on being changed meanwhile, so everybody reads the view anew.
    const other = await changeDesired(store.registry, OTHER, (desired) => scale(desired, 3, "t"));
    expect(other.outcome).toBe("changed");
    await runsOn();
    await expect(
      changeDesired(store.registry, "runs", (desired) => scale(desired, 3, "t")),
    ).rejects.toMatchObject({
      code: "FLEET_CONFLICT",
      message: expect.stringContaining("desired.slots"),
    });
    await applyDeploy(store.registry, { automations, deploy: { runs: { slots: 5 } } }, SILENT);
    await runsOn();
    const { workers, damaged } = await store.registry.view();
    expect(
      workers.flatMap(({ slots }) => slots).filter(({ automation }) => automation === "runs"),
    ).toHaveLength(1);
    expect(damaged.map(({ name }) => name)).toContain("runs");
    await mend("desired state", "runs");
    await changeDesired(store.registry, OTHER, (desired) => scale(desired, 4, "t"));
    await vi.waitFor(async () => expect((await store.registry.view()).desired.runs).toEqual(healthy), {
      timeout: 20_000,
    });
    await runsOn();
  }, 60_000);
});

test("an automation may be named as what every object has", async () => {
  const store = await (await sqliteSite()).open();
  const odd = defineContinuous("constructor", { runSlot: () => Promise.resolve() });
  await publish(store, [odd]);
  await store.registry.putDesired({ name: "constructor", desired: wanted(1), expected: 0 });
  const control = new Control({
    store,
    candidate: "c",
    rank: 1,
    leaseMs: 10_000,
    sweepMs: 60_000,
    log: SILENT,
  });
  onTestFinished(() => control.stop());
  await control.turn(undefined);
  const { assignments } = await store.registry.view();
  expect(Object.keys(assignments)).toEqual(["constructor"]);
});
