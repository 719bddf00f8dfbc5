// Options that several commands share, and how their values are read.
import { type Command, InvalidArgumentError, Option } from "commander";
import { LOG_LEVELS } from "../internal/log.ts";

/** Flags of a command that needs only a store. */
export interface TargetFlags extends StoreFlags {
  config?: string;
}

export interface StoreFlags {
  store?: string;
  namespace?: string;
  json?: boolean;
}

/** `--store`, `--namespace` and `--json`, which every command takes. */
export function addStoreOptions(command: Command): Command {
  return command
    .option("--store <url>", "address of the store (FLEET_STORE); default the SQLite file .fleet/fleet.db")
    .option("--namespace <name>", "keeps fleets on one store apart (FLEET_NAMESPACE)")
    .option("--json", "output for programs: JSON");
}

/** The same, and the config file that may name the store. */
export function addTargetOptions(command: Command): Command {
  return addStoreOptions(command).option(
    "--config <file>",
    "config file to read store and namespace from; default fleet.config.ts in this folder",
  );
}

export function logLevelOption(): Option {
  return new Option("--log-level <level>", "lowest level that is logged").choices(LOG_LEVELS).default("info");
}

/** A whole number from `min` to `max`. */
export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(
      max === Number.MAX_SAFE_INTEGER
        ? `It must be a whole number of at least ${min}.`
        : `It must be a whole number from ${min} to ${max}.`,
    );
  };
}

/** Seconds, also with a fraction. */
export function seconds(max: number): (text: string) => number {
  return (text) => {
    const value = /^(\d+\.?\d*|\.\d+)$/.test(text) ? Number(text) : Number.NaN;
    if (value <= max) return value;
    throw new InvalidArgumentError(`It must be a number of seconds from 0 to ${max}.`);
  };
}

/** `a,b`: names, at least one. */
export function nameList(text: string): string[] {
  const names = text.split(",").map((name) => name.trim());
  if (names.some((name) => name === ""))
    throw new InvalidArgumentError("It must be names with commas between them, as in a,b.");
  return names;
}

/** `region=eu,gpu=true` */
export function labelList(text: string): Record<string, string> {
  const pairs = text.split(",").map((pair) => /^\s*([A-Za-z0-9][\w./-]*)=(.*?)\s*$/.exec(pair));
  return Object.fromEntries(
    pairs.map((pair) => {
      if (pair === null)
        throw new InvalidArgumentError(
          "It must be pairs with commas between them, as in region=eu,gpu=true.",
        );
      return [pair[1] as string, pair[2] as string];
    }),
  );
}
