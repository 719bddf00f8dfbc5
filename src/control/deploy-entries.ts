import { encodePayload } from "../contracts/json.ts";
import { checkName } from "../contracts/name.ts";
import { checkOptions, integer, refuse, type OptionRules } from "../contracts/options.ts";
import type { DeployEntry } from "../protocol/program.ts";

/** Most slots that one automation may have. */
const MAX_SLOTS = 10_000;

const DEPLOY_RULES: OptionRules<Required<DeployEntry>> = {
  slots: integer({ min: 0, max: MAX_SLOTS }),
  config: (value, where) => {
    encodePayload(where, value);
    return value;
  },
};

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
