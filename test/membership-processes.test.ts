// Short (`npm test`): who may bear an id, with real worker processes: restarts, twins, and one that was frozen for too long.
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { fleetOn } from "../src/automation/fleet.ts";
import { FLEET_TOPICS } from "../src/contracts/life-cycle.ts";
import { SILENT } from "../src/internal/log.ts";
import { workerState, type WorkerRecord } from "../src/protocol/status.ts";
import type { Store } from "../src/store/store.ts";
import { makeProject } from "./support/cli.ts";
import {
  emittersOf,
  endWorker,
  projectFiles,
  SHORT,
  spawnWorker,
  type SpawnOptions,
  tickReader,
  type WorkerProcess,
} from "./support/nemesis-fleet.ts";
import { allRun } from "./support/outage.ts";
import { openPlace, type Place, placesFor } from "./support/places.ts";
import { descendants } from "./support/processes.ts";

const SLOTS = 4;

function start(options: SpawnOptions): WorkerProcess {
  const worker = spawnWorker(options);
  onTestFinished(() => endWorker(worker));
  return worker;
}

async function record(store: Store, id: string): Promise<{ worker: WorkerRecord; state: string }> {
  const { workers, now } = await store.registry.view();
  const worker = workers.find((one) => one.id === id);
  if (worker === undefined) throw new Error(`no record of ${id}`);
  return { worker, state: workerState(worker, now) };
}

const said = (worker: WorkerProcess, text: string, timeout = 60_000) =>
  vi.waitFor(() => expect(worker.output()).toContain(text), { timeout, interval: 50 });

describe.each(placesFor("Redis"))("on $name", ({ at }) => {
  test("a live twin is refused, by name; after a kill -9 the id is given back at once, as a new generation", async () => {
    const cwd = makeProject(projectFiles(SLOTS));
    const shared = at(cwd);
    const store = await openPlace(shared);
    onTestFinished(() => store.close());
    // A lease so long that nothing here can be a matter of waiting for its end.
    const options = { cwd, id: "x", flags: shared.flags, timings: { ...SHORT, leaseMs: 60_000 } };
    const first = start(options);
    await allRun(store, SLOTS);

    const twin = start(options);
    expect(await twin.ended).toBe(1);
    expect(twin.output()).toContain(
      `a live worker bears the id "x" already (host ${hostname()}, process ${first.pid})`,
    );
    const before = await record(store, "x");
    expect(before.worker.pid).toBe(first.pid);

    await endWorker(first);
    const killed = performance.now();
    const second = start(options);
    await said(second, "as worker x");
    await allRun(store, SLOTS);
    const took = performance.now() - killed;
    console.log(`restarted after kill -9: all slots run again after ${Math.round(took)} ms (lease 60 s)`);
    expect(took).toBeLessThan(30_000);
    const after = await record(store, "x");
    expect(after.worker.pid).toBe(second.pid);
    expect(after.worker.generation).toBe(before.worker.generation + 1);
  }, 120_000);

  test("a frozen worker counts as offline; one whose id was taken meanwhile runs nothing until the other ends", async () => {
    const cwd = makeProject(projectFiles(SLOTS));
    const shared = at(cwd);
    const store = await openPlace(shared);
    onTestFinished(() => store.close());
    const options = { cwd, id: "x", flags: shared.flags };
    const frozen = start(options);
    await allRun(store, SLOTS);
    const before = await record(store, "x");

    process.kill(frozen.pid, "SIGSTOP");
    onTestFinished(() => void frozen.child.kill("SIGCONT"));
    // By the age of its last beat, in the store's time.
    await vi.waitFor(async () => expect((await record(store, "x")).state).toBe("offline"), {
      timeout: 10_000,
      interval: 50,
    });
    const other = start(options);
    await said(other, "as worker x");
    await allRun(store, SLOTS);
    const taken = await record(store, "x");
    expect(taken.worker).toMatchObject({ pid: other.pid, generation: before.worker.generation + 1 });

    process.kill(frozen.pid, "SIGCONT");
    await said(frozen, `another worker bears the id "x" by now`);
    const read = tickReader(store);
    await read();
    await delay(3000);
    const ours = new Set([other.pid, ...descendants(other.pid)]);
    const ticks = await read();
    expect([...emittersOf(ticks).keys()].toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3]);
    expect(ticks.filter(({ pid }) => !ours.has(pid))).toEqual([]);
    expect((await record(store, "x")).worker).toMatchObject({
      pid: other.pid,
      generation: taken.worker.generation,
    });
    expect(other.output()).not.toContain("another worker bears");

    other.child.kill("SIGTERM");
    expect(await other.ended).toBe(0);
    const left = performance.now();
    await said(frozen, "takes part again");
    await allRun(store, SLOTS);
    console.log(
      `the stand-in runs all slots ${Math.round(performance.now() - left)} ms after the other had left`,
    );
    const again = await record(store, "x");
    expect(again.worker).toMatchObject({ pid: frozen.pid });
    expect(again.worker.generation).toBeGreaterThan(taken.worker.generation);
  }, 180_000);
});

test("who listens is told of a worker that was killed, that it is lost, and of one that drains, that it has left", async () => {
  const cwd = makeProject(projectFiles(SLOTS));
  const shared = (placesFor("Redis")[0] as Place).at(cwd);
  const store = await openPlace(shared);
  onTestFinished(() => store.close());
  const heard: string[] = [];
  const fleet = fleetOn(store, { log: SILENT });
  const ear = fleet.events.subscribe(FLEET_TOPICS.workerOffline);
  const listening = (async () => {
    for await (const { payload } of ear) heard.push(`${payload.worker} ${payload.reason}`);
  })();
  await ear.ready;
  const leaderOf = async () => (await store.registry.view()).leader?.split(" ")[0];
  // A lease so long that none that lives is taken for lost where the machine is slow.
  const timings = { ...SHORT, leaseMs: 15_000 };
  const workers = new Map<string, WorkerProcess>();
  for (const id of ["a", "b", "c"]) {
    workers.set(id, start({ cwd, id, flags: shared.flags, timings }));
    await vi.waitFor(async () => expect((await record(store, id)).state).toBe("online"), {
      timeout: 60_000,
      interval: 100,
    });
  }
  const leading = () =>
    vi.waitFor(
      async () => {
        const id = await leaderOf();
        expect(workers.keys()).toContain(id);
        return id as string;
      },
      { timeout: 60_000, interval: 100 },
    );
  // Killed is the one that leads: nobody could have seen that but its successor.
  const killed = await leading();
  await endWorker(workers.get(killed) as WorkerProcess);
  workers.delete(killed);
  const told = [`${killed} lost`];
  await vi.waitFor(() => expect(heard).toEqual(told), { timeout: 90_000, interval: 100 });
  const leads = await leading();
  for (const id of [...workers.keys()].toSorted((a, b) => Number(a === leads) - Number(b === leads))) {
    const worker = workers.get(id) as WorkerProcess;
    worker.child.kill("SIGTERM");
    expect(await worker.ended).toBe(0);
    told.push(`${id} drain`);
    await vi.waitFor(() => expect(heard).toEqual(told), { timeout: 30_000, interval: 50 });
  }
  await ear.close();
  await listening;
}, 300_000);

test("the default id stays the same over restarts", async () => {
  const cwd = makeProject(projectFiles(1));
  const idOf = async () => {
    const worker = spawnWorker({ cwd, id: undefined, flags: [] });
    onTestFinished(() => endWorker(worker));
    await said(worker, "as worker ");
    worker.child.kill("SIGTERM");
    expect(await worker.ended).toBe(0);
    return /as worker (\S+)/.exec(worker.output())?.[1];
  };
  const id = await idOf();
  expect(id).toMatch(/-[0-9a-f]{6}$/);
  expect(await idOf()).toBe(id);
}, 90_000);
