import { integer } from "../contracts/options.ts";
import { FleetError, isFleetError } from "../errors.ts";
import { canonicalJson } from "../internal/canonical.ts";
import type { Log } from "../internal/log.ts";
import type { Manifest } from "../protocol/manifest.ts";
import type { DeployEntry, Program } from "../protocol/program.ts";
import type { DesiredAutomation } from "../protocol/spec.ts";
import type { Registry } from "../store/store.ts";
import { checkConfig } from "./config-check.ts";
import { unknownFields } from "./config-warnings.ts";
import { unreadable } from "./damaged.ts";

const PARTS = ["slots", "config", "overrides"] as const;
type Part = (typeof PARTS)[number];
const slotCount = integer({ min: 0, max: 10_000 });

export interface Seeded {
  desired: DesiredAutomation;
  /** Parts that somebody had changed by command line or API, and that the changed entry now replaces. */
  replaced: { part: Part; by: string }[];
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
    const { slots = 1, config = {}, overrides } = entry;
    const labelled = overrides === undefined ? {} : { overrides };
    const by = "deploy";
    const changedBy = { slots: by, config: by, ...(overrides === undefined ? {} : { overrides: by }) };
    const deployed = deployedOf(entry);
    return {
      desired: { slots, config, ...labelled, paused: false, generation: 1, deployed, changedBy },
      replaced: [],
    };
  }
  const next = { ...current, deployed: { ...current.deployed }, changedBy: { ...current.changedBy } };
  const replaced: Seeded["replaced"] = [];
  let changed = false;
  for (const part of PARTS) {
    if (entry[part] === undefined) continue;
    const text = canonicalJson(entry[part]);
    if (current.deployed[part] === text) continue;
    changed = true;
    next.deployed[part] = text;
    if (canonicalJson(presentOf(current, part)) === text) continue;
    const by = changerOf(current, part);
    if (by !== "deploy") replaced.push({ part, by });
    Object.assign(next, { [part]: entry[part] });
    // Promoted later, it would undo what is deployed now.
    if (part === "config" && next.canary) next.canary = null;
    if (part !== "slots" && next.canaryStopped) next.canaryStopped = null;
    next.changedBy[part] = "deploy";
  }
  return changed ? { desired: { ...next, generation: current.generation + 1 }, replaced } : undefined;
}

function presentOf(current: DesiredAutomation, part: Part): unknown {
  return part === "overrides" ? (current.overrides ?? []) : current[part];
}

/** Of overrides that an earlier version has kept it is not known who set them. */
function changerOf(current: DesiredAutomation, part: Part): string {
  return current.changedBy[part] ?? ((current.overrides ?? []).length === 0 ? "deploy" : "somebody");
}

/** Undefined where it fits, as far as the published schema tells. */
async function whyUnfit(desired: DesiredAutomation, manifest: Manifest): Promise<string | undefined> {
  try {
    await checkConfig(manifest.name, desired, [{ worker: "this one", manifest, labels: {} }]);
    return undefined;
  } catch (error) {
    if (isFleetError(error, "FLEET_CONFIG_INVALID")) return error.message;
    throw error;
  }
}

/** What of it makes up configs that workers get, apart from what is on trial. */
function configText(desired: DesiredAutomation | undefined): string {
  return canonicalJson([desired?.config ?? null, desired?.overrides ?? []]);
}

function deployedOf(entry: DeployEntry): DesiredAutomation["deployed"] {
  return Object.fromEntries(
    PARTS.filter((part) => entry[part] !== undefined).map((part) => [part, canonicalJson(entry[part])]),
  );
}

/** Entries count where they have changed, or only where there is no desired state at all. */
export type DeployHow = "changed" | "missing";

/** What is told of a config that a deploy has changed. */
type Told = (change: { automation: string; generation: number; by: string; note: string | null }) => void;

/**
 * Seeds the desired state of all automations of a program: 1 slot and an empty config where nothing else is said. A changed entry whose
 * config this very code would refuse changes nothing, as slots run with what is there.
 */
export async function applyDeploy(
  registry: Registry,
  program: Program,
  log: Log,
  told: Told = () => undefined,
  how: DeployHow = "changed",
): Promise<void> {
  for (const { manifest } of program.automations) {
    await applyEntry({ registry, log, told, how }, manifest, program.deploy[manifest.name] ?? {});
  }
}

async function applyEntry(
  { registry, log, told, how }: { registry: Registry; log: Log; told: Told; how: DeployHow },
  manifest: Manifest,
  entry: DeployEntry,
): Promise<void> {
  const { name } = manifest;
  for (let tries = 0; tries < 20; tries++) {
    const view = await registry.view();
    if (unreadable(view).includes(name))
      return log.error(`deploy: nothing was changed of "${name}": what is desired of it cannot be read`, {
        automation: name,
      });
    const { desired } = view;
    const current = Object.hasOwn(desired, name) ? desired[name] : undefined;
    if (current !== undefined && how === "missing") return;
    const seeded = seed(name, current, entry);
    if (seeded === undefined) return;
    const configured = configText(current) !== configText(seeded.desired);
    if (configured && current !== undefined) {
      const wrong = await whyUnfit(seeded.desired, manifest);
      if (wrong !== undefined) return log.error(`deploy: ${wrong}`, { automation: name });
    }
    for (const warning of configured ? unknownFields(entry.config, [manifest.configSchema]) : [])
      log.warn(`deploy: "${name}": ${warning}`, { automation: name });
    const by = "deploy";
    const note = current?.canary && !seeded.desired.canary ? "the canary was dropped" : null;
    const outcome = await registry.putDesired({
      name,
      desired: seeded.desired,
      expected: current?.generation ?? 0,
      ...(configured || current === undefined ? { record: { by, note } } : {}),
    });
    if (outcome === "conflict") continue;
    if (configured) told({ automation: name, generation: seeded.desired.generation, by, note });
    for (const { part, by } of seeded.replaced) {
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
