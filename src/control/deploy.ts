import { integer } from "../contracts/options.ts";
import { FleetError } from "../errors.ts";
import { canonicalJson } from "../internal/canonical.ts";
import type { Log } from "../internal/log.ts";
import type { DeployEntry, Program } from "../protocol/program.ts";
import type { DesiredAutomation } from "../protocol/spec.ts";
import type { Registry } from "../store/store.ts";

const PARTS = ["slots", "config"] as const;
const slotCount = integer({ min: 0, max: 10_000 });

export interface Seeded {
  desired: DesiredAutomation;
  /** Parts that somebody had changed by command line or API, and that the changed entry now replaces. */
  overrides: { part: "slots" | "config"; by: string }[];
}

/**
 * What a `deploy` entry makes of the present desired state; undefined when nothing changes. A part that changed since it was
 * applied last becomes a new generation; an unchanged one never overwrites what others set meanwhile. Pure.
 */
export function seed(
  name: string,
  current: DesiredAutomation | undefined,
  entry: DeployEntry,
): Seeded | undefined {
  if (entry.slots !== undefined) slotCount(entry.slots, `deploy: ${name}: slots`);
  if (current === undefined) {
    const { slots = 1, config = {} } = entry;
    const changedBy = { slots: "deploy", config: "deploy" };
    return {
      desired: { slots, config, paused: false, generation: 1, deployed: deployedOf(entry), changedBy },
      overrides: [],
    };
  }
  const next = { ...current, deployed: { ...current.deployed }, changedBy: { ...current.changedBy } };
  const overrides: Seeded["overrides"] = [];
  let changed = false;
  for (const part of PARTS) {
    if (entry[part] === undefined) continue;
    const text = canonicalJson(entry[part]);
    if (current.deployed[part] === text) continue;
    changed = true;
    next.deployed[part] = text;
    if (canonicalJson(current[part]) === text) continue;
    if (current.changedBy[part] !== "deploy") overrides.push({ part, by: current.changedBy[part] });
    Object.assign(next, { [part]: entry[part] });
    next.changedBy[part] = "deploy";
  }
  return changed ? { desired: { ...next, generation: current.generation + 1 }, overrides } : undefined;
}

function deployedOf(entry: DeployEntry): DesiredAutomation["deployed"] {
  return Object.fromEntries(
    PARTS.filter((part) => entry[part] !== undefined).map((part) => [part, canonicalJson(entry[part])]),
  );
}

/** Seeds the desired state of all automations of a program: 1 slot and an empty config where nothing else is said. */
export async function applyDeploy(registry: Registry, program: Program, log: Log): Promise<void> {
  for (const { manifest } of program.automations) {
    await applyEntry(registry, manifest.name, program.deploy[manifest.name] ?? {}, log);
  }
}

async function applyEntry(registry: Registry, name: string, entry: DeployEntry, log: Log): Promise<void> {
  for (let tries = 0; tries < 20; tries++) {
    const { desired } = await registry.view();
    const seeded = seed(name, desired[name], entry);
    if (seeded === undefined) return;
    const outcome = await registry.putDesired({
      name,
      desired: seeded.desired,
      expected: desired[name]?.generation ?? 0,
    });
    if (outcome === "conflict") continue;
    for (const { part, by } of seeded.overrides) {
      log.warn(`deploy changed ${part} of "${name}", which ${by} had set meanwhile`, {
        generation: seeded.desired.generation,
      });
    }
    return;
  }
  throw new FleetError(
    "FLEET_STORE_BUSY",
    `deploy: the desired state of "${name}" kept changing while it was written`,
    { retryable: true },
  );
}
