import { checkNamespace } from "../contracts/name.ts";
import {
  checkOptions,
  describe,
  number,
  oneOf,
  refuse,
  text,
  type OptionRules,
} from "../contracts/options.ts";
import { checkDeploy } from "../control/deploy-entries.ts";
import { FleetError } from "../errors.ts";
import type { DeployEntry } from "../protocol/program.ts";
import { PARTITION_POLICIES, type PartitionPolicy } from "../protocol/status.ts";
import { isPackageName } from "./plugins.ts";

/** Marks configs across two copies of the package. */
const BRAND = Symbol.for("fleet-framework.config");

export interface ProjectConfig {
  /** Files or globs (`*`, `**`, `?`) of the automations, relative to the config file, or names of packages that bring some. */
  automations: string[];
  /** Which installed packages may bring automations: `false` for none. Default: all plugins among the project's dependencies. */
  plugins?: false | string[];
  /** Address of the store. Default: the SQLite file `.fleet/fleet.db` beside the config file. */
  store?: string;
  /** Keeps fleets that share one store apart. Default none. */
  namespace?: string;
  /** Desired state by automation. An entry that did not change since it was last applied overwrites nothing. */
  deploy?: Record<string, DeployEntry>;
  /** What a worker does while it cannot reach the store; `--partition` counts before it. Default `"finish"`. */
  partition?: PartitionPolicy;
  /** With `"exit"`: after how many seconds without the store the worker ends; at least its lease. Default 60. */
  partitionSeconds?: number;
}

const RULES: OptionRules<Required<ProjectConfig>> = {
  automations: (value, where) =>
    Array.isArray(value) && value.every((item) => typeof item === "string" && item !== "")
      ? (value as string[])
      : refuse(where, 'an array of files or globs, for example ["./automations/*.ts"]', value),
  store: text({ max: 4096 }),
  namespace: checkNamespace,
  deploy: checkDeploy,
  partition: oneOf(PARTITION_POLICIES),
  partitionSeconds: number({ above: 0, max: 86_400 }),
  plugins: (value, where) =>
    value === false ||
    (Array.isArray(value) && value.every((item) => typeof item === "string" && isPackageName(item)))
      ? (value as false | string[])
      : refuse(where, 'false, or an array of names of packages, for example ["fleet-plugin-clock"]', value),
};

/**
 * What `fleet.config.ts` exports by default. Throws `FLEET_CONFIG_INVALID`, `FLEET_OPTION_INVALID` or `FLEET_NAME_INVALID`,
 * naming the field.
 */
export function defineConfig(config: ProjectConfig): Readonly<ProjectConfig> {
  const checked = checkOptions<Required<ProjectConfig>>("config", config, RULES);
  if (checked.automations === undefined) {
    throw new FleetError(
      "FLEET_CONFIG_INVALID",
      'config: automations is missing; list files or globs, for example automations: ["./automations/*.ts"]',
    );
  }
  const made = { ...checked };
  Object.defineProperty(made, BRAND, { value: true });
  return Object.freeze(made) as Readonly<ProjectConfig>;
}

/** The config in a module's default export; a plain object is checked as `defineConfig` would. */
export function configOf(exported: unknown): Readonly<ProjectConfig> {
  if (typeof exported !== "object" || exported === null) {
    throw new FleetError(
      "FLEET_CONFIG_INVALID",
      `the default export must be defineConfig({ … }), got ${exported === undefined ? "none" : describe(exported)}`,
    );
  }
  return BRAND in exported
    ? (exported as unknown as Readonly<ProjectConfig>)
    : defineConfig(exported as ProjectConfig);
}
