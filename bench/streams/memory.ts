// P14: resident memory of a worker that waits: its supervisor, and the child with one slot.
import { canInspect, childrenOf, config, makeProject, residentMb, WAITER } from "../project.ts";
import { line, type Line } from "../result.ts";
import { pause } from "../rounds.ts";
import type { Bench } from "../suite.ts";

const ROUNDS = 3;

export async function memory({ redisUrl, rounds, quick }: Bench): Promise<Line[]> {
  if (!canInspect) return [];
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

function resident(what: string, store: string, megabytes: readonly number[]): Line {
  return line({
    row: "P14",
    what: `resident memory, idle, ${store}: ${what}`,
    ours: { label: what, unit: "MB", rounds: megabytes },
    target: { is: "at most", value: 90 },
  });
}
