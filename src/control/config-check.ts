// A config against what workers have published of the automation, before anything is changed.
import type { JsonSchema, Schema } from "../contracts/schema/standard.ts";
import { check, payloadError } from "../contracts/validate.ts";
import { FleetError, type PayloadIssue } from "../errors.ts";
import { canonicalJson } from "../internal/canonical.ts";
import { effectiveConfig } from "../protocol/config.ts";
import { isForbidden, referencesIn, withoutReferences } from "../protocol/config-reference.ts";
import type { Manifest } from "../protocol/manifest.ts";
import type { DesiredAutomation } from "../protocol/spec.ts";
import { workerState } from "../protocol/status.ts";
import type { FleetView } from "../store/store.ts";
import { jsonSchemaValidator } from "./json-schema.ts";

type Labels = Readonly<Record<string, string>>;

/** Somebody who runs the automation: what of it, and where. */
export interface Runner {
  worker: string;
  manifest: Manifest;
  labels: Labels;
}

/** Who runs it: all workers that take slots, else those that drain, else the last one that was heard of. */
export function runnersOf(
  name: string,
  { workers, now }: Pick<FleetView, "workers" | "now">,
  manifests: Readonly<Record<string, readonly Manifest[]>>,
): Runner[] {
  const known = workers.flatMap((record) => {
    const manifest = manifests[record.id]?.find((one) => one.name === name);
    const { id: worker, labels } = record;
    return manifest === undefined ? [] : [{ record, runner: { worker, manifest, labels } }];
  });
  for (const state of ["online", "draining"] as const) {
    const live = known.filter(({ record }) => workerState(record, now) === state);
    if (live.length > 0) return live.map(({ runner }) => runner);
  }
  return known
    .toSorted((a, b) => b.record.lastSeenAt - a.record.lastSeenAt)
    .slice(0, 1)
    .map(({ runner }) => runner);
}

/**
 * Checks all configs that slots could get by this desired state against every version of the automation that is there. Answers those
 * versions; none where nobody has published it. Throws `FLEET_CONFIG_INVALID` with the issues, as JSON Pointers.
 *
 * A schema that is known as JSON Schema only cannot tell all: refinements, and what references lead to, are seen by the process of each
 * slot, which may still refuse.
 */
export async function checkConfig(
  name: string,
  desired: DesiredAutomation,
  runners: readonly Runner[],
): Promise<string[]> {
  const versions = new Map<string, Runner>();
  for (const runner of runners) versions.set(runner.manifest.version, runner);
  const labels = [
    {},
    ...runners.map((one) => one.labels),
    ...(desired.overrides ?? []).map((one) => one.labels),
  ];
  const configs = new Map<string, unknown>();
  const { canary } = desired;
  // Also where no slot is on trial by now: some are once there are more.
  const bases = [desired.config, ...(canary ? [canary.config] : [])];
  for (const some of labels)
    for (const base of bases) {
      const config = effectiveConfig({ ...desired, config: base, canary: null }, { labels: some }) ?? null;
      configs.set(canonicalJson(config), config);
    }
  for (const config of configs.values()) refuseForbidden(name, config);
  for (const { manifest, worker } of versions.values()) {
    if (manifest.configSchema === null) continue;
    const schema = validatorOf(name, manifest.configSchema);
    for (const config of configs.values()) {
      const checked = await check(schema, config);
      const issues = checked.ok ? [] : withoutReferences(checked.issues, config);
      if (issues.length === 0) continue;
      const whose = versions.size > 1 ? ` (version ${manifest.version}, as on worker ${worker})` : "";
      throw invalid(name, issues, whose);
    }
  }
  return [...versions.keys()];
}

/** Compiled once: a config that many change at once is checked many times. */
const validators = new Map<string, Schema>();
const MAX_VALIDATORS = 100;

function validatorOf(name: string, schema: JsonSchema): Schema {
  const where = `config of "${name}"`;
  const key = `${where} ${JSON.stringify(schema)}`;
  const known = validators.get(key);
  if (known !== undefined) return known;
  if (validators.size >= MAX_VALIDATORS) validators.clear();
  const made = jsonSchemaValidator(where, schema);
  validators.set(key, made);
  return made;
}

function refuseForbidden(name: string, config: unknown): void {
  const issues = referencesIn(config)
    .filter(({ reference }) => isForbidden(reference))
    .map(({ pointer, text }) => ({
      pointer,
      message: `${text}: variables of Fleet's own are not for configs`,
    }));
  if (issues.length > 0) throw invalid(name, issues, "");
}

function invalid(name: string, issues: readonly PayloadIssue[], whose: string): FleetError {
  const { message } = payloadError(`config of "${name}"`, issues);
  return new FleetError("FLEET_CONFIG_INVALID", `${message}${whose}. Nothing was changed`, { issues });
}
