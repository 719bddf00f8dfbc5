// One worker process on a store that goes away and comes back: what it costs meanwhile, and how soon all works again.
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFailed, onTestFinished, vi } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { makeProject } from "./cli.ts";
import {
  cpuOf,
  endWorker,
  projectFiles,
  SHORT,
  spawnWorker,
  tickReader,
  useOf,
  type WorkerProcess,
} from "./nemesis-fleet.ts";
import { runningSlots } from "./places.ts";
import { descendants } from "./processes.ts";

/** As in the short settings; but an emit may take its whole deadline (5 s) to learn that the store is away before its slot can end. */
const TIMINGS = { ...SHORT, stopGraceMs: 7000 };
const START_SLOTS = 4;
export const OUTAGE_SLOTS = 6;
/** Every slot works again within so long of the store's return. */
export const BACK_MS = 10_000;

export interface OnOutage {
  worker: WorkerProcess;
  cwd: string;
}

/** Starts a worker with four slots and scales it to six, so that there is a generation to lose. */
export async function workerOn(args: {
  store: Store;
  flags: readonly string[];
  cwd?: string;
  id?: string;
  timings?: Readonly<Record<string, unknown>>;
}): Promise<OnOutage> {
  const { store, flags, cwd = makeProject(projectFiles(START_SLOTS)), id = "w", timings = TIMINGS } = args;
  const worker = spawnWorker({ cwd, id, flags, timings });
  onTestFailed(() => console.log(worker.output().slice(-8000)));
  onTestFinished(() => endWorker(worker));
  await allRun(store, START_SLOTS);
  for (let slots = START_SLOTS + 1; slots <= OUTAGE_SLOTS; slots++) await scale(store, slots);
  await allRun(store, OUTAGE_SLOTS);
  return { worker, cwd };
}

export async function scale(store: Store, slots: number): Promise<void> {
  const current = (await store.registry.view()).desired["ticker"];
  if (current === undefined) throw new Error("there is no desired state");
  const desired = { ...current, slots, generation: current.generation + 1 };
  const outcome = await store.registry.putDesired({ name: "ticker", desired, expected: current.generation });
  expect(outcome).toBe("stored");
}

export async function allRun(store: Store, slots: number, timeout = 60_000): Promise<void> {
  await vi.waitFor(
    async () => {
      const owners = [...(await runningSlots(store)).values()];
      expect(owners.map((workers) => workers.length)).toEqual(Array.from({ length: slots }, () => 1));
    },
    { timeout, interval: 100 },
  );
}

export interface OutageCost {
  /** Until every slot had emitted again, counted from the store's return. */
  backMs: number;
  /** Share of one core that supervisor and child used meanwhile, in percent. */
  cpuPercent: number;
  lines: number;
  /** Growth of supervisor and child together. */
  grownMb: number;
}

/**
 * Breaks the store for `ms` and looks: no hot loop, no flood of log lines, no growth; all slots work again soon, in the same
 * processes; what was desired and how often it changed is still known.
 */
export async function outage(args: {
  name: string;
  worker: WorkerProcess;
  /** Not through what is broken, where the fault is in the link. */
  store: Store;
  ms: number;
  breakIt: () => Promise<void> | void;
  /** Resolves when the store is back. */
  mend: () => Promise<void> | void;
  /** Fails unless the fault bites. */
  bites: () => Promise<void>;
  backMs?: number;
  /** Only runs count that began after the fault: those before it lost their leases, but go on until they learn so. */
  freshRuns?: boolean;
}): Promise<OutageCost> {
  const { name, worker, store, ms, breakIt, mend, bites, backMs = BACK_MS, freshRuns = false } = args;
  const pids = [worker.pid, ...descendants(worker.pid)].toSorted((a, b) => a - b);
  const before = await recordOf(store);
  const old = freshRuns ? new Set((await tickReader(store)()).map(({ run }) => run)) : undefined;
  const [cpu, lines, megabytes] = [cpuOf(pids), worker.lines(), sizeOf(pids)];
  const begun = performance.now();
  await breakIt();
  await bites();
  await delay(Math.max(0, ms - (performance.now() - begun)));
  const took = performance.now() - begun;
  const cost = {
    cpuPercent: (100 * (cpuOf(pids) - cpu)) / took,
    lines: worker.lines() - lines,
    grownMb: sizeOf(pids) - megabytes,
  };
  await mend();
  const back = performance.now();
  await allEmit(store, worker, backMs + 10_000, old);
  const result = { backMs: performance.now() - back, ...cost };
  console.log(
    `${name}, ${Math.round(took)} ms: all slots work ${Math.round(result.backMs)} ms after its return; meanwhile ${cost.cpuPercent.toFixed(1)} % of a core, ${cost.lines} log lines, ${cost.grownMb.toFixed(1)} MB more`,
  );
  expect(result.backMs).toBeLessThan(backMs);
  // What the loss itself costs counts much where the store is away for less than a second.
  expect((cost.cpuPercent / 100) * took).toBeLessThan(300 + 0.3 * took);
  // What breaks is said once, then at most every ten seconds per process.
  expect(cost.lines).toBeLessThan(30 + took / 2500);
  expect(cost.grownMb).toBeLessThan(50);
  // The same processes, and nothing has gone back.
  expect([worker.pid, ...descendants(worker.pid)].toSorted((a, b) => a - b)).toEqual(pids);
  await vi.waitFor(
    async () => {
      const after = await recordOf(store);
      expect(after.slots).toBe(OUTAGE_SLOTS);
      expect(after.desired).toBeGreaterThanOrEqual(before.desired);
      expect(after.worker).toBeGreaterThanOrEqual(before.worker);
    },
    { timeout: 5000, interval: 100 },
  );
  await allRun(store, OUTAGE_SLOTS);
  return result;
}

async function recordOf(store: Store): Promise<{ desired: number; slots: number; worker: number }> {
  const { desired, workers } = await store.registry.view();
  const own = workers.find(({ id }) => id === "w");
  return {
    desired: desired["ticker"]?.generation ?? 0,
    slots: desired["ticker"]?.slots ?? 0,
    worker: own?.generation ?? 0,
  };
}

/** Waits until something comes out of the stream, from now on, of every slot. */
export async function allEmit(
  store: Store,
  worker: WorkerProcess,
  timeout: number,
  old?: ReadonlySet<string>,
): Promise<void> {
  const read = tickReader(store);
  const since = performance.now();
  const seen = new Set<number>();
  let first = true;
  while (seen.size < OUTAGE_SLOTS) {
    try {
      const ticks = await read();
      // What was there before the first look may be from before the outage.
      if (!first) for (const { slot, run } of ticks) if (old?.has(run) !== true) seen.add(slot);
      first = false;
    } catch {
      // Not back yet.
    }
    if (performance.now() - since > timeout) {
      throw new Error(`only slots ${[...seen].join(", ")} work again\n${worker.output().slice(-6000)}`);
    }
    await delay(50);
  }
}

function sizeOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + (useOf(pid)?.rssMb ?? 0), 0);
}
