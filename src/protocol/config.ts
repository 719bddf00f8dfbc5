// What config a slot should have, out of what stands in the store. Pure: workers, masters and commands work it out alike.
import { pointerPart } from "../contracts/validate.ts";
import type { Canary, ConfigOverride, DesiredAutomation } from "./spec.ts";

/** One change of an automation's config, as its history keeps it. */
export interface ConfigVersion {
  /** Of the desired state that the change made. */
  generation: number;
  config: unknown;
  overrides: readonly ConfigOverride[];
  canary: Canary | null;
  by: string;
  /** Store time. */
  at: number;
  /** What was done, where that is not plain. */
  note: string | null;
}

/** Who changes a config, and why: goes into its history. */
export interface ConfigRecord {
  by: string;
  note: string | null;
}

/** So many changes of config are kept per automation. */
export const CONFIG_HISTORY = 100;

/** What of a desired state makes up its slots' configs; equal texts where nothing of it changed. */
export function versionOf(desired: DesiredAutomation): Omit<ConfigVersion, keyof ConfigRecord | "at"> {
  const { generation, config, overrides = [], canary = null } = desired;
  return { generation, config: config ?? null, overrides, canary };
}

type Fields = Readonly<Record<string, unknown>>;

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * RFC 7396 (JSON Merge Patch): fields of an object are replaced one by one, `null` takes a field away, and whatever is no object (a
 * list, a text) takes the place of what was there. Changes neither argument.
 */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isFields(patch)) return patch;
  const merged = new Map(isFields(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, mergePatch(merged.get(key), value));
  }
  // Defines each field, whatever its name: `__proto__` is a field like others here.
  return Object.fromEntries(merged);
}

/** How many slots are on trial. */
export function canarySlots({ slots, canary }: Pick<DesiredAutomation, "slots" | "canary">): number {
  if (canary === undefined || canary === null) return 0;
  const { size } = canary;
  // A tenth of 30 is 3, whatever binary fractions make of it.
  const wanted = "share" in size ? Math.max(0, Math.ceil(size.share * slots - 1e-9)) : size.slots;
  return Math.min(slots, wanted);
}

/** Whether the overrides' labels are all borne. An override without labels is for everybody. */
export function bears(labels: Readonly<Record<string, string>>, wanted: ConfigOverride["labels"]): boolean {
  return Object.entries(wanted).every(
    ([label, value]) => Object.hasOwn(labels, label) && labels[label] === value,
  );
}

/** The config of a slot, or (without an id) of the slots that are not on trial, on a worker with these labels. */
export function effectiveConfig(
  desired: Pick<DesiredAutomation, "slots" | "config" | "overrides" | "canary">,
  { labels, slotId }: { labels: Readonly<Record<string, string>>; slotId?: number },
): unknown {
  const onTrial = slotId !== undefined && slotId < canarySlots(desired);
  const base = onTrial ? desired.canary?.config : desired.config;
  return (desired.overrides ?? [])
    .filter((override) => bears(labels, override.labels))
    .reduce<unknown>((config, override) => mergePatch(config, override.config), base);
}

/** Where two configs differ. `before` is left out for what is new, `after` for what is gone. */
export interface ConfigDifference {
  /** JSON Pointer (RFC 6901); empty for the whole config. */
  pointer: string;
  before?: unknown;
  after?: unknown;
}

/** Field by field, in the order of their names. A list counts as a whole, as in a merge patch. */
export function configDiff(before: unknown, after: unknown, pointer = ""): ConfigDifference[] {
  if (!isFields(before) || !isFields(after))
    return isEqual(before, after) ? [] : [{ pointer, before, after }];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].toSorted();
  return names.flatMap((name) => {
    const at = `${pointer}/${pointerPart(name)}`;
    if (!Object.hasOwn(after, name)) return [{ pointer: at, before: before[name] }];
    if (!Object.hasOwn(before, name)) return [{ pointer: at, after: after[name] }];
    return configDiff(before[name], after[name], at);
  });
}

function isEqual(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((one, i) => isEqual(one, b[i]));
  if (isFields(a) && isFields(b)) return configDiff(a, b).length === 0;
  return a === b;
}
