import type { Log } from "../internal/log.ts";
import type { Program } from "../protocol/program.ts";
import type { Store } from "../store/store.ts";
import { announce } from "./config.ts";
import { applyDeploy, type DeployHow } from "./deploy.ts";

type Written = Pick<Store, "registry" | "queues" | "events">;

/** Writes down what a program asks for: the desired state that it seeds, and the schedules that its batch automations declare. */
export async function applyProgram(store: Written, program: Program, log: Log): Promise<void> {
  await deploy(store, program, log);
  const { queues } = store;
  for (const { manifest } of program.automations) {
    if (manifest.tasks === null) continue;
    const { queue } = manifest.tasks;
    const declared = manifest.schedules ?? [];
    const { schedules } = await queues.schedules({ queue });
    // Those made or changed at run time are somebody else's.
    const foreign = new Set(
      schedules.filter(({ spec }) => spec.origin === "runtime").map(({ spec }) => spec.id),
    );
    for (const spec of declared) if (!foreign.has(spec.id)) await queues.putSchedule({ queue, spec });
    const gone = schedules.filter(
      ({ spec }) => spec.origin === "definition" && !declared.some(({ id }) => id === spec.id),
    );
    // Where somebody has put one of that name meanwhile, it is not what is gone.
    for (const { spec, revision } of gone) await queues.removeSchedule({ queue, id: spec.id, revision });
  }
}

/**
 * The same where the store has lost some of it: only what is not there at all is written, nothing is changed or removed. Others may run a
 * newer program, and have written what it asks for.
 */
export async function addMissing(store: Written, program: Program, log: Log): Promise<void> {
  await deploy(store, program, log, "missing");
  const { queues } = store;
  for (const { manifest } of program.automations) {
    if (manifest.tasks === null) continue;
    const { queue } = manifest.tasks;
    const { schedules } = await queues.schedules({ queue });
    const there = new Set(schedules.map(({ spec }) => spec.id));
    for (const spec of manifest.schedules ?? [])
      if (!there.has(spec.id)) await queues.putSchedule({ queue, spec });
  }
}

function deploy({ registry, events }: Written, program: Program, log: Log, how?: DeployHow): Promise<void> {
  return applyDeploy(registry, program, log, (change) => void announce({ events }, change), how);
}
