/**
 * What people ask of an automation's config, as changes of its desired state. Pure: each answers the next desired state, one generation on,
 * or undefined where things stand so already.
 */
import { byteLength, encodePayload } from "../contracts/json.ts";
import { checkLabels } from "../contracts/labels.ts";
import { number, refuse } from "../contracts/options.ts";
import { FleetError } from "../errors.ts";
import { canonicalJson } from "../internal/canonical.ts";
import { type ConfigVersion, isFields, mergePatch } from "../protocol/config.ts";
import type { Canary, ConfigOverride, DesiredAutomation } from "../protocol/spec.ts";

/** Most bytes of a config as JSON, its overrides and what is on trial included. */
export const MAX_CONFIG_BYTES = 262_144;
export const MAX_OVERRIDES = 100;

/** A JSON merge patch (RFC 7396) on what is there, or what takes its place. */
export type ConfigEdit = { patch: unknown } | { replace: unknown };

type Change = (desired: DesiredAutomation, by: string, now: number) => DesiredAutomation | undefined;

/** Throws `FLEET_CONFLICT` while a canary runs: it would undo the change when it is promoted. */
export function setConfig(edit: ConfigEdit): Change {
  checkEdit(edit);
  return (desired, by) => {
    if (desired.canary)
      throw new FleetError(
        "FLEET_CONFLICT",
        `a canary runs since generation ${desired.canary.generation}; promote or stop it first. Nothing was changed`,
      );
    return next(desired, { config: edited(desired.config, edit) }, by);
  };
}

/**
 * Changes the override for exactly these labels, or makes it, behind all others. A patch that leaves nothing of it removes it; to take a
 * field of the automation's config away for these workers, replace the override by one with `null` in that place.
 */
export function setOverride(given: Readonly<Record<string, string>>, edit: ConfigEdit): Change {
  checkEdit(edit);
  const labels = checkLabels(given, "config: labels");
  if (Object.keys(labels).length === 0)
    refuse("config: labels", 'at least one label, for example { region: "eu" }', labels);
  const key = canonicalJson(labels);
  return (desired, by) => {
    const all = desired.overrides ?? [];
    const at = all.findIndex((one) => canonicalJson(one.labels) === key);
    const config = edited(all[at]?.config ?? {}, edit);
    const without = isFields(config) && Object.keys(config).length === 0;
    const overrides: ConfigOverride[] = without ? [] : [{ labels, config }];
    return next(
      desired,
      { overrides: at < 0 ? [...all, ...overrides] : all.toSpliced(at, 1, ...overrides) },
      by,
    );
  };
}

/** Some of the slots get a changed config, until it is promoted or stopped. It takes the place of a canary that runs. */
export function startCanary(size: Canary["size"], edit: ConfigEdit): Change {
  checkEdit(edit);
  checkSize(size);
  return (desired, by, now) => {
    const config = edited(desired.config, edit);
    if (canonicalJson(config) === canonicalJson(desired.config)) return undefined;
    const canary = { size, config, since: now, generation: desired.generation + 1, by };
    return next(desired, { canary }, by);
  };
}

/** The config on trial becomes that of all slots. Throws `FLEET_CONFLICT` where there is none. */
export const promoteCanary: Change = (desired, by) =>
  next(desired, { config: running(desired).config, canary: null }, by);

/** The config on trial is dropped. Throws `FLEET_CONFLICT` where there is none. */
export const stopCanary: Change = (desired, by) => {
  running(desired);
  return next(desired, { canary: null }, by);
};

/** Config and overrides as they were; a canary is dropped. */
export function rollBackTo({ config, overrides }: Pick<ConfigVersion, "config" | "overrides">): Change {
  return (desired, by) => next(desired, { config, overrides, canary: null }, by);
}

type Configs = Pick<DesiredAutomation, "config" | "overrides" | "canary">;

function next(
  desired: DesiredAutomation,
  changes: Partial<Configs>,
  by: string,
): DesiredAutomation | undefined {
  const text = ({ config, overrides = [], canary = null }: Configs) =>
    canonicalJson([config ?? null, overrides, canary]);
  const changed = { ...desired, ...changes };
  if (text(changed) === text(desired)) return undefined;
  if ((changed.overrides ?? []).length > MAX_OVERRIDES)
    refuse("config: overrides", `at most ${MAX_OVERRIDES}`, changed.overrides?.length);
  const bytes = byteLength(text(changed), MAX_CONFIG_BYTES);
  if (bytes > MAX_CONFIG_BYTES)
    throw new FleetError(
      "FLEET_CONFIG_INVALID",
      `the config would have ${bytes} bytes with its overrides and what is on trial, the limit is ${MAX_CONFIG_BYTES}; keep large data in a file or a store of its own. Nothing was changed`,
    );
  const differs = (a: unknown, b: unknown) => canonicalJson(a) !== canonicalJson(b);
  return {
    ...changed,
    ...(desired.canaryStopped ? { canaryStopped: null } : {}),
    generation: desired.generation + 1,
    changedBy: {
      ...desired.changedBy,
      ...(differs(changed.config ?? null, desired.config ?? null) ? { config: by } : {}),
      ...(differs(changed.overrides ?? [], desired.overrides ?? []) ? { overrides: by } : {}),
    },
  };
}

function edited(config: unknown, edit: ConfigEdit): unknown {
  return "replace" in edit ? edit.replace : mergePatch(config, edit.patch);
}

function running({ canary }: DesiredAutomation): Canary {
  if (canary) return canary;
  throw new FleetError("FLEET_CONFLICT", "no canary runs; nothing was changed");
}

function checkEdit(edit: ConfigEdit): void {
  const value = "replace" in edit ? edit.replace : edit.patch;
  encodePayload("config", value);
  refuseProto(value, "config");
}

/** No config has such a field on purpose. */
function refuseProto(value: unknown, where: string): void {
  if (typeof value !== "object" || value === null) return;
  if (Object.hasOwn(value, "__proto__")) refuse(where, 'no field named "__proto__"', value);
  for (const [name, inner] of Object.entries(value)) refuseProto(inner, `${where}.${name}`);
}

const share = number({ above: 0, max: 1 });

function checkSize(size: Canary["size"]): void {
  if ("share" in size) share(size.share, "canary: share");
  else if (!Number.isInteger(size.slots) || size.slots < 1)
    refuse("canary: slots", "a whole number of at least 1", size.slots);
}
