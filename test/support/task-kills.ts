// Workers that run tasks while one of them is killed again and again; a ledger outside of the store tells what was done.
import { createReadStream, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { onTestFinished, vi } from "vitest";
import { z } from "zod";
import { fleetOn } from "../../src/automation/fleet.ts";
import { defineQueue } from "../../src/contracts/queue.ts";
import { SILENT } from "../../src/internal/log.ts";
import type { QueueStats } from "../../src/store/queue-store.ts";
import { makeProject, startFleet, type RunningFleet } from "./cli.ts";
import { QUICK } from "./heal-fleet.ts";
import { openPlace, type Place } from "./places.ts";

const QUEUE = defineQueue("work", {
  payload: z.object({ n: z.number() }),
  // Kept to the end, so that each task's own record can be looked at.
  keepCount: 1_000_000,
  // A worker that is killed takes innocent tasks along: what is tested here is that none is lost, not that poison is found.
  crashLimit: 50,
});

const PROJECT = {
  // The effect comes last: between it and the end of the claim lies what a kill may double.
  "work.ts": `
    import { appendFileSync } from "node:fs";
    import { defineBatch, defineQueue } from "fleet-framework";
    import { z } from "zod";
    const QUEUE = defineQueue("work", { payload: z.object({ n: z.number() }), keepCount: 1_000_000, crashLimit: 50 });
    export default defineBatch("work", {
      tasks: QUEUE,
      config: z.object({ ms: z.number() }),
      async runOne(task, ctx) {
        await new Promise((resolve) => setTimeout(resolve, ctx.config.ms));
        appendFileSync(process.cwd() + "/effects", task.payload.n + " " + ctx.worker + " " + process.pid + "\\n");
      },
    });`,
  "fleet.config.ts": `
    import { defineConfig } from "fleet-framework";
    export default defineConfig({
      automations: ["./work.ts"],
      deploy: { work: { slots: SLOTS, config: { ms: MS } } },
    });`,
};

export interface KillPlan {
  tasks: number;
  workers: number;
  slotsPerWorker: number;
  /** How long one task takes, in ms. */
  taskMs: number;
  killEveryMs: number;
  forMs: number;
}

export interface KillOutcome {
  kills: number;
  /** Tasks without an effect. */
  lost: number;
  /** Effects beyond the first of each task. */
  duplicates: number;
  stats: QueueStats;
  /** Workers that had effects. */
  workersSeen: number;
}

/** Submits, works and kills for a while, then waits for the rest to be done. */
export async function tasksUnderKills(place: Place, plan: KillPlan): Promise<KillOutcome> {
  const { tasks, workers, slotsPerWorker, taskMs, killEveryMs, forMs } = plan;
  const dir = makeProject({
    ...PROJECT,
    "fleet.config.ts": PROJECT["fleet.config.ts"]
      .replace("SLOTS", String(workers * slotsPerWorker))
      .replace("MS", String(taskMs)),
    effects: "",
  });
  const at = place.at(dir);
  const store = await openPlace(at);
  const fleet = fleetOn(store, { log: SILENT });
  onTestFinished(() => fleet.close());
  const queue = fleet.queue(QUEUE);
  for (let n = 0; n < tasks; n += 1000) {
    await queue.submitMany(
      Array.from({ length: Math.min(1000, tasks - n) }, (_, index) => ({ n: n + index })),
    );
  }
  const start = (id: string): RunningFleet =>
    startFleet(["worker", "--id", id, "--capacity", String(slotsPerWorker), ...at.flags], {
      cwd: dir,
      env: { FLEET_TIMINGS: JSON.stringify(QUICK) },
    });
  const running = Array.from({ length: workers }, (_, index) => ({
    id: `w${index}`,
    fleet: start(`w${index}`),
  }));
  const statsNow = async () => (await store.queues.stats({ queue: "work" })) as QueueStats;
  await vi.waitFor(async () => {
    const { totals } = await statsNow();
    if (totals.completed < 50) throw new Error("no task is done yet");
  }, 30_000);

  let kills = 0;
  const until = Date.now() + forMs;
  while (Date.now() + killEveryMs < until) {
    await delay(killEveryMs);
    const { counts } = await statsNow();
    // A kill of somebody who has nothing to do proves nothing.
    if (counts.waiting + counts.active === 0) break;
    const victim = running[kills % workers] as (typeof running)[number];
    victim.fleet.signal("SIGKILL");
    await victim.fleet.ended;
    kills += 1;
    victim.fleet = start(victim.id);
  }
  await vi.waitFor(
    async () => {
      const { counts } = await statsNow();
      if (counts.waiting + counts.active + counts.scheduled > 0)
        throw new Error(`left: ${JSON.stringify(counts)}`);
    },
    { timeout: 120_000, interval: 100 },
  );
  for (const { fleet: worker } of running) worker.signal("SIGTERM");
  await Promise.all(running.map(({ fleet: worker }) => worker.ended));
  return { kills, ...(await readLedger(join(dir, "effects"), tasks)), stats: await statsNow() };
}

async function readLedger(
  path: string,
  tasks: number,
): Promise<Pick<KillOutcome, "lost" | "duplicates" | "workersSeen">> {
  const effects = new Uint32Array(tasks);
  const seen = new Set<string>();
  for await (const line of createInterface({ input: createReadStream(path) })) {
    const [n, worker] = line.split(" ");
    effects[Number(n)] = (effects[Number(n)] ?? 0) + 1;
    if (worker !== undefined) seen.add(worker);
  }
  writeFileSync(path, "");
  return {
    lost: effects.filter((count) => count === 0).length,
    duplicates: effects.reduce((sum, count) => sum + Math.max(0, count - 1), 0),
    workersSeen: seen.size,
  };
}
