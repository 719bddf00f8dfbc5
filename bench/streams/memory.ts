// P14: resident memory of a worker that waits: its supervisor, and the child with one slot; and of a master that nobody asks anything.
import { join } from "node:path";
import { canInspect, childrenOf, config, cpuSeconds, makeProject, residentMb, WAITER } from "../project.ts";
import { line, type Line } from "../result.ts";
import { pause } from "../rounds.ts";
import type { Bench } from "../suite.ts";

const ROUNDS = 3;

export async function memory(bench: Bench): Promise<Line[]> {
  if (!canInspect) return [];
  return [...(await ofWorkers(bench)), ...(await ofMasters(bench))];
}

async function ofWorkers({ redisUrl, rounds, quick }: Bench): Promise<Line[]> {
  const settleMs = quick ? 1000 : 8000;
  const stores = { Redis: `${redisUrl}/1`, SQLite: "sqlite:.fleet/fleet.db" };
  const lines: Line[] = [];
  for (const [name, store] of Object.entries(stores)) {
    const supervisors: number[] = [];
    const children: number[] = [];
    for (let round = 0; round < Math.min(ROUNDS, rounds); round++) {
      const project = makeProject({ "waiter.ts": WAITER, "fleet.config.ts": config("waiter", 1) });
      const worker = project.fleet("worker", "--store", store);
      await worker.printed("waiting in slot 0");
      await pause(settleMs);
      supervisors.push(residentMb(worker.pid));
      children.push(...childrenOf(worker.pid).map(residentMb));
      await project.close();
    }
    lines.push(resident("supervisor", name, supervisors), resident("child with one slot", name, children));
  }
  return lines;
}

async function ofMasters({ redisUrl, folder, rounds, quick }: Bench): Promise<Line[]> {
  const stores = { Redis: `${redisUrl}/3`, SQLite: `sqlite:${join(folder, "master.db")}` };
  const idleSeconds = quick ? 3 : 15;
  const lines: Line[] = [];
  for (const [name, store] of Object.entries(stores)) {
    const sizes: number[] = [];
    const percents: number[] = [];
    for (let round = 0; round < Math.min(ROUNDS, rounds); round++) {
      const project = makeProject({});
      const master = project.fleet("master", "--store", store, "--port", "0");
      await master.printed("master at ");
      await pause(quick ? 1000 : 5000);
      const before = cpuSeconds(master.pid);
      const started = performance.now();
      await pause(idleSeconds * 1000);
      percents.push(((cpuSeconds(master.pid) - before) * 100_000) / (performance.now() - started));
      sizes.push(residentMb(master.pid));
      await project.close();
    }
    lines.push(
      resident("master", name, sizes, 130),
      line({
        row: "P14",
        what: `CPU, idle, ${name}: master`,
        ours: { label: "master", unit: "% of a core", rounds: percents },
      }),
    );
  }
  return lines;
}

function resident(what: string, store: string, megabytes: readonly number[], most = 90): Line {
  return line({
    row: "P14",
    what: `resident memory, idle, ${store}: ${what}`,
    ours: { label: what, unit: "MB", rounds: megabytes },
    target: { is: "at most", value: most },
  });
}
