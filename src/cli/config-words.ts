// What the commands around config print. Pure.
import { FleetError } from "../errors.ts";
import type { ConfigChanged } from "../control/config.ts";
import { sizeOf } from "../control/config.ts";
import {
  canarySlots,
  configDiff,
  type ConfigDifference,
  type ConfigVersion,
  mergePatch,
} from "../protocol/config.ts";
import type { Canary, DesiredAutomation } from "../protocol/spec.ts";
import { duration, renderTable } from "./table.ts";

/** `a.b=1` as a merge patch. The value is JSON where it can be read as that, else the text; a dot in a name is written `\.`. */
export function patchOf(pairs: readonly string[]): unknown {
  return pairs.reduce<unknown>((patch, pair) => {
    const [, path = "", text = ""] = /^((?:\\.|[^=\\])+)=(.*)$/s.exec(pair) ?? [];
    const names = path.split(/(?<!\\)\./).map((name) => name.replaceAll("\\.", "."));
    if (names.some((name) => name === ""))
      throw new FleetError(
        "FLEET_USAGE",
        `${JSON.stringify(pair)} is no change; write name=value, as in intervalSeconds=2 or limits.rate=5`,
      );
    const one = names.reduceRight<unknown>((inner, name) => ({ [name]: inner }), jsonOr(text));
    return combined(patch, one);
  }, {});
}

/** Two merge patches as one; a `null` stays, as it takes a field away. */
function combined(a: unknown, b: unknown): unknown {
  const [left, right] = [a, b].map((one) => (isObject(one) ? one : undefined));
  if (left === undefined || right === undefined) return b;
  const names = new Set([...Object.keys(left), ...Object.keys(right)]);
  return Object.fromEntries(
    [...names].map((name) => [
      name,
      Object.hasOwn(right, name)
        ? Object.hasOwn(left, name)
          ? combined(left[name], right[name])
          : right[name]
        : left[name],
    ]),
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** `0.2` or `20%`: a share of the slots; `3`: so many. Undefined for anything else. */
export function canarySize(text: string): Canary["size"] | undefined {
  const [, digits = "", percent] = /^(\d+\.?\d*|\.\d+)(%?)$/.exec(text) ?? [];
  const value = digits === "" ? Number.NaN : Number(digits);
  if (percent === "%") return value > 0 && value <= 100 ? { share: value / 100 } : undefined;
  if (value > 0 && value < 1) return { share: value };
  return Number.isInteger(value) && value >= 1 ? { slots: value } : undefined;
}

/** One line for each difference. */
export function diffLines(differences: readonly ConfigDifference[]): string[] {
  return differences.map((one) => {
    const at = one.pointer === "" ? "(all)" : one.pointer;
    if (!("after" in one)) return `- ${at}: ${JSON.stringify(one.before)}`;
    if (!("before" in one)) return `+ ${at}: ${JSON.stringify(one.after)}`;
    return `~ ${at}: ${JSON.stringify(one.before)} → ${JSON.stringify(one.after)}`;
  });
}

/** What happened, and what follows. */
export function changeWords(
  name: string,
  { changed, before, desired, diff, checked, warnings }: ConfigChanged,
): string {
  const warned = warnings.map((warning) => `Warning: ${warning}.`);
  if (!changed)
    return [`The config of "${name}" stands so already; nothing was changed.`, ...warned].join("\n");
  const said = [`The config of "${name}" is changed (generation ${desired.generation}).`];
  if (desired.canary && desired.canary.generation === desired.generation) {
    const count = canarySlots(desired);
    const ids = count === 1 ? "Slot 0 is" : `Slots 0 to ${count - 1} are`;
    said.push(
      count === 0
        ? "There are no slots to try it in."
        : `${ids} to try it; "fleet config canary promote ${name}" gives it to all, "… stop ${name}" drops it.`,
    );
  } else if (before.canary && !desired.canary) said.push("No canary runs any more.");
  if (checked.length === 0 && !before.canary) said.push("No worker has published it, so it was not checked.");
  if (desired.paused) said.push("It is paused: slots get it when they are resumed.");
  return [said.join(" "), ...diffLines(diff).map((line) => `  ${line}`), ...warned].join("\n");
}

/** Config, overrides and canary of an automation, as people read them. */
export function configText(name: string, desired: DesiredAutomation): string {
  const { config, overrides = [], canary, generation, changedBy } = desired;
  const parts = [
    `"${name}", generation ${generation}, set by ${changedBy.config}`,
    JSON.stringify(config ?? null, undefined, 2),
  ];
  for (const one of overrides)
    parts.push(`\nOn workers with ${labelsText(one.labels)}:\n${JSON.stringify(one.config, undefined, 2)}`);
  if (canary) {
    const what = `${sizeOf(canary.size)} (${canarySlots(desired)} of ${desired.slots}), since generation ${canary.generation}, by ${canary.by}`;
    const lines = diffLines(configDiff(config, canary.config)).map((line) => `  ${line}`);
    parts.push(`\nOn trial in ${what}:`, ...lines);
  }
  return `${parts.join("\n")}\n`;
}

/** Newest first; each with how many fields it changed against the one before. */
export function historyText(versions: readonly ConfigVersion[], now: number): string {
  if (versions.length === 0) return "No change of its config is kept.\n";
  const rows = versions.map((version, i) => ({ version, before: versions[i + 1] }));
  const table = renderTable(rows, [
    { title: "GENERATION", align: "right", text: ({ version }) => String(version.generation) },
    { title: "AGE", align: "right", text: ({ version }) => duration(now - version.at) },
    { title: "BY", text: ({ version }) => version.by },
    { title: "CHANGES", text: ({ version, before }) => (before ? summary(before, version) : "-") },
    { title: "NOTE", text: ({ version }) => version.note ?? "" },
  ]);
  return `${table}\n`;
}

/** Everything of a config that can differ, for `diff`. */
export function wholeOf({ config, overrides, canary }: ConfigVersion): unknown {
  if (overrides.length === 0 && canary === null) return config;
  const others = Object.fromEntries(overrides.map((one) => [labelsText(one.labels), one.config]));
  return mergePatch(config, {
    ...(overrides.length === 0 ? {} : { "(overrides)": others }),
    ...(canary === null ? {} : { "(canary)": canary.config }),
  });
}

function summary(before: ConfigVersion, after: ConfigVersion): string {
  const pointers = configDiff(wholeOf(before), wholeOf(after)).map(({ pointer }) => pointer || "(all)");
  const more = pointers.length > 3 ? ` and ${pointers.length - 3} more` : "";
  return `${pointers.slice(0, 3).join(", ")}${more}`;
}

function labelsText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(",");
}
