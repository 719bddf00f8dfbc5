// Workers that run the tasks of one queue with a rate limit, and what tells how fast: by the store's own times.
import { createRequire } from "node:module";
import type * as Sqlite from "@photostructure/sqlite";
import { createClient } from "@redis/client";
import { onTestFinished, vi } from "vitest";
import { z } from "zod";
import { fleetOn } from "../../src/automation/fleet.ts";
import { defineQueue } from "../../src/contracts/queue.ts";
import { SILENT } from "../../src/internal/log.ts";
import type { TaskRecord } from "../../src/protocol/task.ts";
import { mostWithin } from "../../src/store/conformance/state-limits-random.ts";
import { runFleet } from "./cli.ts";
import { healFleet } from "./heal-fleet.ts";
import { openPlace, type Place, runningSlots } from "./places.ts";

const JOB = defineQueue("job", z.object({ n: z.number() }));
const WORKERS = ["one", "two", "three", "four", "five", "six"];

const automation = (limit: number, perSeconds: number) => `
  import { defineBatch } from "fleet-framework";
  import { z } from "zod";

  export default defineBatch("job", {
    tasks: { payload: z.object({ n: z.number() }), rateLimit: { name: "api", limit: ${limit}, perSeconds: ${perSeconds} } },
    async runOne(task, ctx) {
      return { worker: ctx.worker };
    },
  });
`;

export interface LimitedRun {
  /** Most grants in any span of one second that begins at a grant. */
  most: number;
  /** The same of starts: each is up to a moment later than its grant. */
  mostStarts: number;
  /** Starts as a share of what the limit allows between the first and the last. */
  used: number;
  starts: number;
  grants: number;
  /** Starts for which there was no grant yet. */
  unpermitted: number;
  /** Tasks that each worker ran. */
  each: number[];
}

export interface LimitedQueue {
  /** Submits so many tasks at once and waits for their ends. */
  run(tasks: number): Promise<LimitedRun>;
  /** Submits so many tasks and waits until one of them has ended. */
  untilOne(tasks: number): Promise<void>;
  /** What a command prints with `--json`. */
  json(...args: string[]): Promise<unknown>;
  /** How long whoever asks now has to wait, in ms. */
  longestLine(): Promise<number>;
}

export async function limitedQueue(
  place: Place,
  {
    limit,
    perSeconds = 1,
    workers,
    slots,
  }: { limit: number; perSeconds?: number; workers: number; slots: number },
): Promise<LimitedQueue> {
  const fleet = await healFleet(place, {
    "job.ts": automation(limit, perSeconds),
    "fleet.config.ts": `export default { automations: ["./job.ts"], deploy: { job: { slots: ${slots} } } };`,
  });
  const names = WORKERS.slice(0, workers);
  for (const name of names) fleet.worker(name);
  await vi.waitFor(
    async () => {
      const running = await runningSlots(fleet.store);
      const on = new Set([...running.values()].flat());
      if (running.size !== slots || on.size !== workers) throw new Error("not all workers run slots yet");
    },
    { timeout: 60_000, interval: 50 },
  );
  const at = { url: fleet.url, namespace: fleet.store.namespace };
  const handles = fleetOn(await openPlace(at), { log: SILENT });
  onTestFinished(() => handles.close());
  const queue = handles.queue(JOB);

  return {
    async run(tasks) {
      const before = new Set(await grantsOf(at));
      const submitted = await queue.submitMany(Array.from({ length: tasks }, (_, n) => ({ n })));
      const records = await vi.waitFor(
        async () => {
          const found = await Promise.all(
            submitted.map(({ id }) => fleet.store.queues.get({ queue: "job", id })),
          );
          if (found.some((one) => one?.state !== "completed")) throw new Error("not all have completed yet");
          return found as TaskRecord[];
        },
        { timeout: (tasks / limit) * 1000 + 20_000, interval: 200 },
      );
      const grants = (await grantsOf(at)).filter((grant) => !before.has(grant));
      const starts = records.map(({ startedAt }) => startedAt as number).toSorted((a, b) => a - b);
      const spanMs = (starts.at(-1) as number) - (starts[0] as number);
      const most = (times: number[]) =>
        mostWithin(
          times.map((time) => ({ at: time, cost: 1 })),
          1000,
        );
      return {
        most: most(grants),
        mostStarts: most(starts),
        used: starts.length / ((spanMs * limit) / 1000 + 1),
        starts: starts.length,
        grants: grants.length,
        // The store tells a start in whole milliseconds.
        unpermitted: starts.filter(
          (start, nth) => start < Math.floor(grants[nth] ?? Number.POSITIVE_INFINITY),
        ).length,
        each: names.map((name) => records.filter(({ worker }) => worker === name).length),
      };
    },
    async untilOne(tasks) {
      await queue.submitMany(Array.from({ length: tasks }, (_, n) => ({ n })));
      await vi.waitFor(
        async () => {
          const stats = await fleet.store.queues.stats({ queue: "job" });
          if (stats?.counts.completed !== 1) throw new Error("none has completed yet");
        },
        { timeout: 20_000, interval: 50 },
      );
    },
    async json(...args) {
      const { code, stdout, stderr } = await runFleet([...args, ...fleet.flags, "--json"], {
        cwd: fleet.dir,
      });
      if (code !== 0) throw new Error(stderr);
      return JSON.parse(stdout) as unknown;
    },
    async longestLine() {
      const { waitMs } = await fleet.store.state.limits.take({
        name: "api",
        key: "",
        windows: [{ limit, perMs: perSeconds * 1000, burst: 1 }],
        cost: 1,
        withinMs: 0,
        request: "the test",
      });
      return waitMs;
    },
  };
}

/** The times of all grants that the store still knows and that were not given back, in order. */
async function grantsOf({ url, namespace }: { url: string; namespace: string }): Promise<number[]> {
  const grants = url.startsWith("redis") ? await redisGrants(url, namespace) : sqliteGrants(url);
  return grants.map((us) => us / 1000).toSorted((a, b) => a - b);
}

async function redisGrants(url: string, namespace: string): Promise<number[]> {
  const client = createClient({ url });
  await client.connect();
  try {
    const keys: string[] = [];
    for await (const some of client.scanIterator({ MATCH: `{${namespace}:limit:api}:r:*`, COUNT: 1000 }))
      keys.push(...some);
    const values = await Promise.all(keys.map((key) => client.get(key)));
    return values.filter((value) => value !== null).map(Number);
  } finally {
    client.destroy();
  }
}

function sqliteGrants(url: string): number[] {
  const { DatabaseSync } = createRequire(import.meta.url)("@photostructure/sqlite") as typeof Sqlite;
  const db = new DatabaseSync(url.replace("sqlite:", ""), { readOnly: true, timeout: 10_000 });
  try {
    const rows = db.prepare("SELECT at FROM limit_requests WHERE name = 'api'").all() as { at: number }[];
    return rows.map(({ at }) => at);
  } finally {
    db.close();
  }
}
