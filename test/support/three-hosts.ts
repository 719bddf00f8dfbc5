// A master on one host, a worker on each of two others: data flows between them, the cable of one is pulled, and put back.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFailed, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { type Fleet, fleetOn } from "../../src/automation/fleet.ts";
import { defineStream } from "../../src/contracts/stream.ts";
import { SILENT } from "../../src/internal/log.ts";
import { openStore } from "../../src/store/open.ts";
import type { Store } from "../../src/store/store.ts";
import { makeProject, type RunningFleet, startFleet } from "./cli.ts";
import { type Host, makeHosts, redisOn } from "./hosts.ts";
import { runningSlots } from "./places.ts";

/** Longer than the deadline of a call (5 s), as by default: what was sent into a dead link has failed before the lease is over. */
const LEASE_MS = 6000;
const TIMINGS = {
  beatMs: 500,
  leaseMs: LEASE_MS,
  stopGraceMs: 6000,
  backoffBaseMs: 200,
  backoffCapMs: 1000,
  healthyMs: 500,
  budgets: [],
};
/** docs/guarantees.md: lease + about 2 s. One more for a machine that has much to do. */
export const MOVED_MS = LEASE_MS + 2000 + 1000;
const TOKEN = "a-token-for-several-hosts";
const MASTER_PORT = 4400;
const REDIS_PORT = 6379;
const SLOTS = 4;

export type Way = "direct" | "via the master" | "embedded";

const TICK = z.object({ slot: z.number(), worker: z.string(), run: z.string(), n: z.number() });
const TICKS = defineStream("ticker", TICK, { maxLength: 100_000 });
const SEEN = defineStream("sink", z.object({ n: z.number(), from: z.string(), by: z.string() }));

const FILES = {
  // Emits are not waited for: whenever the cable is pulled some are under way, and more follow until the slot has ended.
  "ticker.ts": `
    import { randomUUID } from "node:crypto";
    import { appendFileSync } from "node:fs";
    import { defineContinuous, defineStream } from "fleet-framework";
    import { z } from "zod";
    const TICK = z.object({ slot: z.number(), worker: z.string(), run: z.string(), n: z.number() });
    const note = (line) => appendFileSync(process.cwd() + "/notes", JSON.stringify({ at: Date.now(), ...line }) + "\\n");
    export default defineContinuous("ticker", {
      output: defineStream("ticker", TICK, { maxLength: 100_000 }),
      async runSlot(ctx) {
        const run = randomUUID();
        for await (const { index: n } of ctx.loop({ everySeconds: 0.1 })) {
          const at = { slot: ctx.slotId, run, n };
          note({ ...at, outcome: "tried" });
          ctx.emit({ ...at, worker: ctx.worker }).then(
            () => note({ ...at, outcome: "done" }),
            (error) => note({ ...at, outcome: error.code }),
          );
        }
      },
    });`,
  "contracts.ts": `
    import { defineQueue, defineStream } from "fleet-framework";
    import { z } from "zod";
    export const SOURCE = defineStream("source", z.object({ n: z.number(), from: z.string() }));
    export const WORK = defineQueue("work", {
      payload: z.object({ n: z.number(), from: z.string() }),
      result: z.object({ from: z.string(), by: z.string() }),
    });`,
  "source.ts": `
    import { defineContinuous } from "fleet-framework";
    import { SOURCE, WORK } from "./contracts.ts";
    export default defineContinuous("source", {
      output: SOURCE,
      async runSlot(ctx) {
        for await (const { index: n } of ctx.loop({ everySeconds: 0.2 })) {
          await ctx.emit({ n, from: ctx.worker });
          await ctx.submit(WORK, { n, from: ctx.worker });
        }
      },
    });`,
  "sink.ts": `
    import { defineContinuous } from "fleet-framework";
    import { z } from "zod";
    import { SOURCE } from "./contracts.ts";
    export default defineContinuous("sink", {
      output: z.object({ n: z.number(), from: z.string(), by: z.string() }),
      async runSlot(ctx) {
        for await (const _ of ctx.loop())
          for (const { n, from } of await ctx.stream(SOURCE).pop({ n: 10, waitSeconds: 1 }))
            await ctx.emit({ n, from, by: ctx.worker });
      },
    });`,
  "work.ts": `
    import { defineBatch } from "fleet-framework";
    import { WORK } from "./contracts.ts";
    export default defineBatch("work", {
      tasks: WORK,
      runOne: async (task, ctx) => ({ from: task.payload.from, by: ctx.worker }),
    });`,
  "fleet.config.ts": `
    import { defineConfig } from "fleet-framework";
    export default defineConfig({
      automations: ["./ticker.ts", "./source.ts", "./sink.ts", "./work.ts"],
      deploy: { ticker: { slots: ${SLOTS} }, source: { slots: 1 }, sink: { slots: 1 }, work: { slots: 1 } },
    });`,
};

interface ThreeHosts {
  a: Host;
  b: Host;
  c: Host;
  store: Store;
  fleet: Fleet;
  /** The worker of host b, and its project. */
  worker: RunningFleet;
  dir: string;
}

export interface CutOutcome {
  /** Until all slots of the cut host ran elsewhere. */
  movedMs: number;
  /** What runs wrote whose slot had begun a new one elsewhere. */
  late: Tick[];
  /** Slots that have had more than one run. */
  moved: number;
}

/** Throws where the hosts do not come to work together, or the cut does not bite. */
export async function cutOneOfThree(way: Way): Promise<CutOutcome> {
  const hosts = await start(way);
  const { a, b, c, store, fleet, worker } = hosts;
  await vi.waitFor(
    async () => {
      const { ticker, ...others } = await slotsByAutomation(store);
      expect(others).toEqual({ source: ["b"], sink: ["c"], work: ["c"] });
      expect(ticker?.toSorted()).toEqual(["b", "b", "c", "c"]);
    },
    { timeout: 40_000, interval: 100 },
  );
  await dataFlows(hosts);
  for (const host of [b, c]) expect(host.peers()).toContain(way === "direct" ? REDIS_PORT : MASTER_PORT);
  if (way !== "direct") expect([...b.peers(), ...c.peers()]).not.toContain(REDIS_PORT);

  const read = tickReader(fleet);
  await read();
  b.cut();
  const cutAt = Date.now();
  expect(b.reaches(a.address, MASTER_PORT, 1)).toBe(false);
  expect(c.reaches(a.address, MASTER_PORT, 10)).toBe(true);
  await vi.waitFor(
    async () => expect((await slotsByAutomation(store)).ticker).toEqual(Array(SLOTS).fill("c")),
    { timeout: MOVED_MS + 10_000, interval: 50 },
  );
  const movedMs = Date.now() - cutAt;
  process.stdout.write(
    `measured: ${way}: slots of a cut host run elsewhere: ${(movedMs / 1000).toFixed(2)} s\n`,
  );
  // What it still tried was not done, and it was told so.
  const after = notes(hosts.dir).filter(({ at }) => at > cutAt + 500);
  expect(after.filter(({ outcome }) => outcome === "tried").length).toBeGreaterThan(10);
  expect(after.filter(({ outcome }) => outcome === "done")).toEqual([]);
  await vi.waitFor(async () => {
    await read();
    expect(newestRuns(read.all).map(({ worker: by }) => by)).toEqual(Array(SLOTS).fill("c"));
  });

  b.mend();
  await vi.waitFor(
    async () => {
      const { ticker, source } = await slotsByAutomation(store);
      expect(source).toEqual(["b"]);
      expect(ticker?.filter((id) => id === "b").length).toBeGreaterThan(0);
    },
    { timeout: 30_000, interval: 100 },
  );
  await dataFlows(hosts);
  expect(worker.stderr()).not.toContain("another worker bears");
  worker.signal("SIGTERM");
  expect(await worker.ended).toBe(0);
  await read();
  return { movedMs, ...lateWrites(read.all) };
}

async function start(way: Way): Promise<ThreeHosts> {
  const [a, b, c] = makeHosts(3) as [Host, Host, Host];
  const own = makeProject();
  const url = way === "embedded" ? `sqlite:${join(own, "fleet.db")}` : await redisOn(a, REDIS_PORT);
  const env = { FLEET_TOKEN: TOKEN, FLEET_TIMINGS: JSON.stringify(TIMINGS) };
  const direct = way === "direct" ? ["--worker-store", url] : [];
  const master = startFleet(
    ["master", "--host", "0.0.0.0", "--port", String(MASTER_PORT), "--store", url, ...direct],
    { cwd: own, env, within: a.within },
  );
  await master.until((text) => text.includes("master at"));
  const join_ = [
    "--join",
    `http://${a.address}:${MASTER_PORT}`,
    ...(way === "via the master" ? ["--via-master"] : []),
  ];
  const worker = (host: Host, id: string, only: string) => {
    const dir = makeProject(FILES);
    const running = startFleet(["worker", "--id", id, "--only", only, ...join_], {
      cwd: dir,
      env,
      within: host.within,
    });
    onTestFailed(() => console.log(`worker ${id}:\n${running.stderr().slice(-4000)}`));
    return { dir, running };
  };
  const { dir, running } = worker(b, "b", "ticker,source");
  worker(c, "c", "ticker,sink,work");
  onTestFailed(() => console.log(`master:\n${master.stderr().slice(-4000)}`));
  const store = await openStore(url, { deadlineSeconds: 2 });
  onTestFinished(() => store.close());
  return { a, b, c, store, fleet: fleetOn(store, { log: SILENT }), worker: running, dir };
}

/** Which workers run the slots of each automation. */
async function slotsByAutomation(store: Store): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  for (const [slot, workers] of await runningSlots(store))
    (found[slot.split("/")[0] as string] ??= []).push(...workers);
  return found;
}

/** From now on: what b makes c sees, by a stream; what b asks for c does, by a queue. */
async function dataFlows({ fleet, store }: Pick<ThreeHosts, "fleet" | "store">): Promise<void> {
  const seen = fleet.stream(SEEN);
  await seen.pop({ n: 10_000 });
  const since = Date.now();
  await vi.waitFor(
    async () => {
      const [entry] = await seen.peek({ n: 1 });
      expect(entry).toMatchObject({ from: "b", by: "c" });
      const { tasks } = await store.queues.page({ queue: "work", state: "completed", n: 1 });
      expect(JSON.parse(tasks[0]?.result ?? "null")).toEqual({ from: "b", by: "c" });
      expect(tasks[0]?.finishedAt).toBeGreaterThan(since);
    },
    { timeout: 20_000, interval: 100 },
  );
}

type Tick = z.infer<typeof TICK>;

/** Takes the ticks out of the stream, in their order. */
function tickReader(fleet: Fleet): (() => Promise<void>) & { all: Tick[] } {
  const all: Tick[] = [];
  const read = async () => {
    for (;;) {
      const some = await fleet.stream(TICKS).pop({ n: 5000 });
      all.push(...some);
      if (some.length < 5000) return;
    }
  };
  return Object.assign(read, { all });
}

function newestRuns(ticks: readonly Tick[]): Tick[] {
  return [...new Map(ticks.map((tick) => [tick.slot, tick])).values()];
}

/** Once a slot has begun a new run, nothing of an older one must be written. */
function lateWrites(ticks: readonly Tick[]): Pick<CutOutcome, "late" | "moved"> {
  const runs = new Map<number, string[]>();
  const late: Tick[] = [];
  for (const tick of ticks) {
    const known = runs.get(tick.slot) ?? [];
    if (known.at(-1) === tick.run) continue;
    if (known.includes(tick.run)) late.push(tick);
    else runs.set(tick.slot, [...known, tick.run]);
  }
  return { late, moved: [...runs.values()].filter((ids) => ids.length > 1).length };
}

interface Note {
  at: number;
  outcome: string;
}

function notes(dir: string): Note[] {
  const path = join(dir, "notes");
  if (!existsSync(path)) return [];
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Note);
}
