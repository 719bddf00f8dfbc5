// P12: what ten workers cost whose slots all wait: store calls and CPU.
import { join } from "node:path";
import { openStore } from "../../src/index.ts";
import {
  type BenchProject,
  canInspect,
  childrenOf,
  config,
  cpuSeconds,
  type FleetProcess,
  makeProject,
  WAITER,
} from "../project.ts";
import { watchCommands } from "../redis-monitor.ts";
import { line, type Line } from "../result.ts";
import { pause } from "../rounds.ts";
import type { Bench } from "../suite.ts";

const SLOTS_PER_WORKER = 8;

export async function idleFleet({ redisUrl, redisPort, folder, quick }: Bench): Promise<Line[]> {
  if (!canInspect) return [];
  const count = quick ? 2 : 10;
  const seconds = quick ? 3 : 30;
  const onRedis = await idle(`${redisUrl}/2`, { count, seconds, quick, watch: redisPort });
  const onSqlite = await idle(`sqlite:${join(folder, "idle.db")}`, { count, seconds, quick });
  const ofFleet = `idle fleet, ${count} workers of ${SLOTS_PER_WORKER} slots`;
  return [
    line({
      row: "P12",
      what: `${ofFleet}, Redis: store calls per second and child`,
      ours: { label: "child", unit: "calls/s", rounds: onRedis.child },
      target: { is: "at most", value: 1.05 },
    }),
    line({
      row: "P12",
      what: "the same: store calls per second and supervisor (heartbeat and leases)",
      ours: { label: "supervisor", unit: "calls/s", rounds: onRedis.supervisor },
    }),
    cpuLine("the same: CPU of a worker, supervisor and child together", onRedis.cpu),
    cpuLine(`${ofFleet}, SQLite: CPU of a worker, supervisor and child together`, onSqlite.cpu),
  ];
}

interface Idle {
  count: number;
  seconds: number;
  quick: boolean;
  /** Port of the Redis whose calls are counted. */
  watch?: number;
}

/** Store calls per second of each child and each supervisor, where they are counted, and the CPU of each worker in percent of a core. */
async function idle(store: string, { count, seconds, quick, watch }: Idle) {
  const slots = count * SLOTS_PER_WORKER;
  const project = makeProject({ "waiter.ts": WAITER, "fleet.config.ts": config("waiter", slots) });
  const workers = await startWorkers(project, count, store);
  await untilRunning(store, slots);
  await pause(quick ? 1000 : 10_000);

  const supervisors = workers.map(({ pid }) => pid);
  const children = supervisors.map(childrenOf);
  const used = () =>
    supervisors.map((pid, at) => cpuSeconds(pid) + (children[at] ?? []).map(cpuSeconds).reduce(add, 0));
  const before = used();
  const started = performance.now();
  const commands =
    watch === undefined
      ? await pause(seconds * 1000).then(() => new Map<string, string[]>())
      : await watchCommands(watch, seconds * 1000);
  const after = used();
  const lasted = (performance.now() - started) / 1000;
  await project.close();

  // A supervisor's connection is told by its beats; what is left are the children's.
  const callers = [...commands.values()];
  const ofChildren = callers.filter((lines) => !lines.some((text) => text.includes("{fleet}:beats")));
  const calls = (lines: string[]) => lines.filter(isCall).length / seconds;
  return {
    child: ofChildren.map(calls).filter((found) => found > 0),
    supervisor: callers.filter((lines) => !ofChildren.includes(lines)).map(calls),
    cpu: after.map((total, at) => ((total - (before[at] as number)) * 100) / lasted),
  };
}

function cpuLine(what: string, percents: number[]): Line {
  return line({
    row: "P12",
    what,
    ours: { label: "worker", unit: "% of a core", rounds: percents },
    target: { is: "at most", value: 1 },
  });
}

async function startWorkers(project: BenchProject, count: number, store: string): Promise<FleetProcess[]> {
  const workers: FleetProcess[] = [];
  for (let at = 0; at < count; at++) {
    const capacity = String(SLOTS_PER_WORKER);
    const worker = project.fleet("worker", "--store", store, "--id", `w${at}`, "--capacity", capacity);
    workers.push(worker);
    await worker.printed(`as worker w${at}`);
  }
  return workers;
}

async function untilRunning(url: string, slots: number): Promise<void> {
  const store = await openStore(url);
  for (;;) {
    const { workers } = await store.registry.view();
    const running = workers.flatMap((worker) => worker.slots).filter(({ state }) => state === "running");
    if (running.length === slots) break;
    await pause(200);
  }
  await store.close();
}

/** The client tries an idle connection with a PING every few seconds; that reads nothing and is no call of ours. */
function isCall(text: string): boolean {
  return !/"PING"/i.test(text);
}

function add(a: number, b: number): number {
  return a + b;
}
