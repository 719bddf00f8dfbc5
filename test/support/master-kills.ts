// Masters that are killed again and again while workers run, tasks are submitted and a schedule ticks: what that costs.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFailed, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { type Fleet, fleetOn } from "../../src/automation/fleet.ts";
import { defineQueue } from "../../src/contracts/queue.ts";
import { SILENT } from "../../src/internal/log.ts";
import { TASK_STATES, type TaskRecord } from "../../src/protocol/task.ts";
import type { Store } from "../../src/store/store.ts";
import { makeProject, startFleet } from "./cli.ts";
import { openPlace, type Place, runningSlots, slotStatus } from "./places.ts";
import { freePort } from "./redis.ts";

export const TOKEN = "a-token-for-a-killed-master";
const SLOTS = 4;
const WORK = defineQueue("work", { payload: z.object({ n: z.number() }), keepCount: 1_000_000 });

const FILES = {
  "ticker.ts": `
    import { defineContinuous } from "fleet-framework";
    import { z } from "zod";
    export default defineContinuous("ticker", {
      output: z.object({ slot: z.number() }),
      config: z.object({ direct: z.boolean() }),
      async runSlot(ctx) {
        // Through a master that is away for longer than the deadline of a call (5 s), an emit fails, and may be tried again.
        const failed = (error) => {
          if (ctx.config.direct || !error.retryable) throw error;
        };
        for await (const _ of ctx.loop({ everySeconds: 0.02 })) await ctx.emit({ slot: ctx.slotId }).catch(failed);
      },
    });`,
  "work.ts": `
    import { appendFileSync } from "node:fs";
    import { defineBatch, defineQueue } from "fleet-framework";
    import { z } from "zod";
    export default defineBatch("work", {
      tasks: defineQueue("work", { payload: z.object({ n: z.number() }), keepCount: 1_000_000 }),
      async runOne(task) {
        await new Promise((resolve) => setTimeout(resolve, 50));
        appendFileSync(process.cwd() + "/effects", task.payload.n + "\\n");
      },
    });`,
  "beat.ts": `
    import { defineBatch, defineQueue } from "fleet-framework";
    import { z } from "zod";
    export default defineBatch("beat", {
      tasks: defineQueue("beat", { payload: z.object({}), keepCount: 1_000_000 }),
      schedules: { second: { everySeconds: 1, missed: "all", missedCap: 1000, payload: {} } },
      runOne: async () => undefined,
    });`,
  "fleet.config.ts": `
    import { defineConfig } from "fleet-framework";
    export default defineConfig({
      automations: ["./ticker.ts", "./work.ts", "./beat.ts"],
      deploy: { ticker: { slots: ${SLOTS}, config: { direct: DIRECT } }, work: { slots: 4 }, beat: { slots: 2 } },
    });`,
};

/** Workers on the store itself, or through the master that is killed. */
export type Link = "on the store" | "through the master";

/** A fleet of two workers, with its first master. */
export async function fleetToKill(place: Place, link: Link, leaseMs: number) {
  const config = FILES["fleet.config.ts"].replace("DIRECT", String(link === "on the store"));
  const dir = makeProject({ ...FILES, "fleet.config.ts": config });
  const at = place.at(dir);
  const port = String(await freePort());
  const timings = { beatMs: 500, leaseMs, backoffBaseMs: 200, sweepMs: 2000, budgets: [] };
  const env = { FLEET_TOKEN: TOKEN, FLEET_TIMINGS: JSON.stringify(timings) };
  const store = await openPlace(at);
  const fleet = fleetOn(store, { log: SILENT });
  onTestFinished(() => fleet.close());
  const master = async (onPort = port, flags = at.flags) => {
    const running = startFleet(["master", "--port", onPort, ...flags], { cwd: dir, env });
    await running.until((text) => text.includes("master at"));
    return running;
  };
  const first = await master();
  const flags = link === "on the store" ? at.flags : ["--join", `http://127.0.0.1:${port}`];
  for (const id of ["w0", "w1"]) {
    const worker = startFleet(["worker", "--id", id, ...flags], { cwd: dir, env });
    onTestFailed(() => console.log(`${id}:\n${worker.stderr().slice(-4000)}`));
  }
  await vi.waitFor(async () => expect([...(await runningSlots(store)).keys()]).toHaveLength(SLOTS + 4 + 2), {
    timeout: 90_000,
    interval: 100,
  });
  return { dir, store, fleet, port, at, first, master };
}

export interface MasterKills {
  link: Link;
  kills: number;
  /** From one kill to the next. */
  everyMs: number;
  /** From a kill to the start of the next master. */
  awayMs: number;
  /** Longer than a master is away. */
  leaseMs: number;
}

export interface KillCost {
  /** Slots whose process or count of restarts is another one than before. */
  restarted: number;
  submitted: number;
  /** Tasks that had no effect. */
  lost: number;
  /** Effects beyond the first of each task, of which the task's own record does not say that it was given back and ran again. */
  doubled: number;
  /** Nominal times of the tasks of a schedule of a second. */
  ticks: number[];
}

/** Kills the master again and again while workers run, and looks what that has cost, once all is at rest. */
export async function masterUnderKills(place: Place, plan: MasterKills): Promise<KillCost> {
  const { link, kills, everyMs, awayMs, leaseMs } = plan;
  const parts = await fleetToKill(place, link, leaseMs);
  const { store, fleet, dir } = parts;
  const before = await runsOf(store);
  const load = submitSteadily(fleet);
  let { first: master } = parts;
  for (let count = 0; count < kills; count++) {
    const next = Date.now() + everyMs;
    master.signal("SIGKILL");
    expect(await master.ended).toBe(null);
    await delay(awayMs);
    master = await parts.master();
    await delay(Math.max(0, next - Date.now()));
  }
  const submitted = await load.end();
  expect(submitted).toBeGreaterThan(kills * 5);
  await vi.waitFor(
    async () => {
      const { counts, totals } = (await store.queues.stats({ queue: "work" }))!;
      expect(counts).toMatchObject({ waiting: 0, active: 0, scheduled: 0, failed: 0, cancelled: 0 });
      expect(totals.completed).toBe(submitted);
    },
    { timeout: 60_000, interval: 200 },
  );
  await everySlotEmits(store);
  const after = await runsOf(store);
  const done = effects(dir);
  const since = await store.now();
  await vi.waitFor(async () => expect((await ticks(store)).at(-1)).toBeGreaterThan(since), {
    timeout: leaseMs + 20_000,
    interval: 200,
  });
  return {
    restarted: after.filter((run, slot) => run !== before[slot]).length,
    submitted,
    lost: submitted - new Set(done).size,
    doubled: Math.max(0, done.length - new Set(done).size - (await runsAgain(store))),
    ticks: await ticks(store),
  };
}

/** Twenty tasks a second, until told to end; answers how many. */
function submitSteadily(fleet: Fleet): { end(): Promise<number> } {
  const end = new AbortController();
  let n = 0;
  const done = (async () => {
    while (!end.signal.aborted) {
      await fleet.submit(WORK, { n });
      n += 1;
      await delay(50);
    }
  })();
  return {
    end: async () => {
      end.abort();
      await done;
      return n;
    },
  };
}

/** Of each slot: its state, the process that runs it, and how often it was healed. */
export async function runsOf(store: Store): Promise<string[]> {
  const slots = Array.from({ length: SLOTS }, (_, slot) => slotStatus(store, "ticker", slot));
  return (await Promise.all(slots)).map((slot) => `${slot?.state} ${slot?.pid} ${slot?.restarts}`);
}

async function everySlotEmits(store: Store): Promise<void> {
  await store.streams.pop({ stream: "ticker", n: 1_000_000 });
  const seen = new Set<unknown>();
  await vi.waitFor(
    async () => {
      for (const raw of await store.streams.pop({ stream: "ticker", n: 1000 }))
        seen.add((JSON.parse(raw) as { payload: { slot: number } }).payload.slot);
      expect(seen.size).toBe(SLOTS);
    },
    { timeout: 15_000, interval: 50 },
  );
}

function effects(dir: string): number[] {
  const path = join(dir, "effects");
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, "utf8").trim().split("\n");
  return lines.map(Number);
}

/** How often tasks ran that had been claimed before: at least once is what is promised. */
async function runsAgain(store: Store): Promise<number> {
  const tasks = await tasksOf(store, "work");
  return tasks.reduce(
    (sum, { attempts, crashes, interruptions }) => sum + attempts - 1 + crashes + interruptions,
    0,
  );
}

/** Nominal times for which there is a task, one for each task, in order. */
export async function ticks(store: Store): Promise<number[]> {
  const tasks = await tasksOf(store, "beat");
  return tasks.flatMap(({ tick }) => (tick === null ? [] : [tick.at])).toSorted((a, b) => a - b);
}

async function tasksOf(store: Store, queue: string): Promise<TaskRecord[]> {
  const found: TaskRecord[] = [];
  for (const state of TASK_STATES) {
    let cursor: string | undefined;
    do {
      const page = await store.queues.page({
        queue,
        state,
        n: 1000,
        ...(cursor === undefined ? {} : { cursor }),
      });
      found.push(...page.tasks);
      cursor = page.next;
    } while (cursor !== undefined);
  }
  // One that went from one state to the next meanwhile stands on a page of each.
  return [...new Map(found.map((task) => [task.id, task])).values()];
}

/** What should have been: one task for each second from the first to the last, none left out and none doubled. */
export function eachSecond(times: readonly number[]): number[] {
  const [begin = 0, end = 0] = [times[0], times.at(-1)];
  return Array.from({ length: (end - begin) / 1000 + 1 }, (_, index) => begin + index * 1000);
}
