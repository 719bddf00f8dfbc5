import { encodePayload } from "../contracts/json.ts";
import { checkName } from "../contracts/name.ts";
import { checkLabels } from "../contracts/labels.ts";
import { checkOptions, integer, refuse, type OptionRules } from "../contracts/options.ts";
import { canonicalJson } from "../internal/canonical.ts";
import type { DeployEntry } from "../protocol/program.ts";
import type { ConfigOverride } from "../protocol/spec.ts";
import { MAX_OVERRIDES } from "./config-changes.ts";

/** Most slots that one automation may have. */
const MAX_SLOTS = 10_000;

const DEPLOY_RULES: OptionRules<Required<DeployEntry>> = {
  slots: integer({ min: 0, max: MAX_SLOTS }),
  config: checkConfig,
  overrides: checkOverrides,
};

const OVERRIDE_RULES: OptionRules<ConfigOverride> = {
  labels: (value, where) => {
    const labels = checkLabels(value, where);
    return Object.keys(labels).length > 0
      ? labels
      : refuse(where, 'at least one label, for example { region: "eu" }', value);
  },
  config: checkConfig,
};

function checkConfig(value: unknown, where: string): unknown {
  encodePayload(where, value);
  return value;
}

function checkOverrides(value: unknown, where: string): readonly ConfigOverride[] {
  if (!Array.isArray(value))
    return refuse(where, 'a list, for example [{ labels: { region: "eu" }, config: { rate: 2 } }]', value);
  if (value.length > MAX_OVERRIDES) return refuse(where, `at most ${MAX_OVERRIDES}`, value.length);
  const seen = new Set<string>();
  return value.map((one: unknown, at) => {
    const here = `${where}[${at}]`;
    const { labels, config } = checkOptions<ConfigOverride>(here, one ?? null, OVERRIDE_RULES);
    if (labels === undefined)
      return refuse(`${here}: labels`, 'labels, for example { region: "eu" }', labels);
    if (config === undefined)
      return refuse(`${here}: config`, "what changes on workers with these labels", config);
    const key = canonicalJson(labels);
    if (seen.has(key))
      return refuse(`${here}: labels`, "labels that no other override of the list has", labels);
    seen.add(key);
    return { labels, config };
  });
}

/** What `deploy` of a config or of an embedded worker may say. Throws `FLEET_OPTION_INVALID` or `FLEET_NAME_INVALID`. */
export function checkDeploy(value: unknown, where: string): Record<string, DeployEntry> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return refuse(where, 'an object, for example { "url-pinger": { slots: 2 } }', value);
  return Object.fromEntries(
    Object.entries(value).map(([name, entry]) => {
      checkName(`${where}: automation`, name);
      if (entry === undefined) return refuse(`${where}.${name}`, "an object", entry);
      return [name, checkOptions<Required<DeployEntry>>(`${where}.${name}`, entry, DEPLOY_RULES)];
    }),
  );
}
