// Options that several commands share, and how their values are read.
import { type Command, InvalidArgumentError, Option } from "commander";
import { LOG_LEVELS } from "../internal/log.ts";

/** Flags of a command that needs only a store. */
export interface TargetFlags extends StoreFlags {
  config?: string;
}

export interface StoreFlags {
  store?: string;
  master?: string;
  token?: string;
  namespace?: string;
  json?: boolean;
}

/** `--store`, `--master`, `--token`, `--namespace` and `--json`, which every command takes. */
export function addStoreOptions(command: Command): Command {
  return command
    .option("--store <url>", "address of the store (FLEET_STORE); default the SQLite file .fleet/fleet.db")
    .option("--master <url>", "address of a master whose store to use, in place of --store (FLEET_MASTER)")
    .option(
      "--token <token>",
      "the master's token; better in FLEET_TOKEN, as others see what a command was called with",
    )
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

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of `90s` or `2h`; of a bare number, seconds. NaN where it is no length of time. */
function spanOf(text: string): number {
  const [, digits, unit = "s"] = /^(\d+\.?\d*|\.\d+)\s*(ms|s|m|h|d)?$/.exec(text) ?? [];
  return digits === undefined ? Number.NaN : Number(digits) * (UNITS[unit] as number);
}

/** A length of time in ms: a number with its unit, seconds where there is none. */
export function span(text: string): number {
  const ms = spanOf(text);
  if (!Number.isNaN(ms)) return ms;
  throw new InvalidArgumentError("It must be a length of time, as in 90s, 10m, 2h or 3d.");
}

/** Seconds, also with a fraction; like every length of time also with a unit. */
export function seconds(max: number): (text: string) => number {
  return (text) => {
    const value = spanOf(text) / 1000;
    if (value <= max) return value;
    throw new InvalidArgumentError(
      `It must be a number of seconds from 0 to ${max}, or a length of time, as in 90s or 10m.`,
    );
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
