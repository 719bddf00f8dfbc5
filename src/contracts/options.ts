import { FleetError } from "../errors.ts";
import { LOG_LEVELS, type Log } from "../internal/log.ts";
import { nearest } from "../internal/suggest.ts";

/** One rule per option: returns the value to use, or throws. `undefined` never reaches a rule. */
export type OptionRules<T> = { [K in keyof T]-?: (value: unknown, where: string) => T[K] };

/**
 * Checks `given` against `rules`, so that no option is ever ignored: an unknown one is refused with the nearest known
 * name, a wrong one with what was expected and what came. Returns only the options that were given.
 */
export function checkOptions<T extends object>(
  where: string,
  given: unknown,
  rules: OptionRules<T>,
): Partial<T> {
  if (given === undefined) return {};
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new FleetError(
      "FLEET_OPTION_INVALID",
      `${where}: options must be an object, got ${describe(given)}`,
    );
  }
  const out: Partial<T> = {};
  for (const [key, value] of Object.entries(given)) {
    if (!Object.hasOwn(rules, key)) {
      const near = nearest(key, Object.keys(rules));
      const hint = near === undefined ? `known: ${Object.keys(rules).join(", ")}` : `did you mean "${near}"?`;
      throw new FleetError("FLEET_OPTION_INVALID", `${where}: unknown option "${key}"; ${hint}`);
    }
    if (value === undefined) continue;
    out[key as keyof T] = rules[key as keyof T](value, `${where}: ${key}`);
  }
  return out;
}

export interface NumberBounds {
  min?: number;
  max?: number;
  /** Exclusive lower bound. */
  above?: number;
}

/** A finite number within bounds. */
export function number(bounds: NumberBounds = {}): (value: unknown, where: string) => number {
  return (value, where) => {
    if (typeof value !== "number" || !Number.isFinite(value)) return refuse(where, "a finite number", value);
    return within(value, where, bounds);
  };
}

/** A whole number within bounds. */
export function integer(bounds: NumberBounds = {}): (value: unknown, where: string) => number {
  return (value, where) => {
    if (typeof value !== "number" || !Number.isSafeInteger(value))
      return refuse(where, "a whole number", value);
    return within(value, where, bounds);
  };
}

export function boolean(value: unknown, where: string): boolean {
  return typeof value === "boolean" ? value : refuse(where, "true or false", value);
}

export function text(options: { max?: number } = {}): (value: unknown, where: string) => string {
  const max = options.max ?? 1024;
  return (value, where) =>
    typeof value === "string" && value.length > 0 && value.length <= max
      ? value
      : refuse(where, `a text of 1 to ${max} characters`, value);
}

/** One or two dots are no part of an address; half a character, or none (NUL), is not kept by every store as it is. */
const NO_ID = /^\.{1,2}$|\p{Surrogate}|\0/u;

/** An id that somebody chooses for what is theirs: any text that every store keeps and every address can name. */
export function chosenId(value: unknown, where: string): string {
  if (typeof value === "string" && value.length > 0 && value.length <= 128 && !NO_ID.test(value))
    return value;
  return refuse(where, 'a text of 1 to 128 whole characters, and neither "." nor ".."', value);
}

export function oneOf<const T extends string>(allowed: readonly T[]): (value: unknown, where: string) => T {
  return (value, where) =>
    allowed.includes(value as T)
      ? (value as T)
      : refuse(where, allowed.map((a) => `"${a}"`).join(" or "), value);
}

/** Something to log to. */
export function logger(value: unknown, where: string): Log {
  return LOG_LEVELS.every((level) => typeof (value as Partial<Log> | null)?.[level] === "function")
    ? (value as Log)
    : refuse(where, "an object with the functions debug, info, warn and error", value);
}

/** For an option that a later version brings: naming it is an error now, so that it is never silently ignored. */
export function notAvailable(value: unknown, where: string): never {
  throw new FleetError(
    "FLEET_NOT_AVAILABLE",
    `${where} is not available in this version (got ${describe(value)}); leave it out`,
  );
}

export function refuse(where: string, expected: string, got: unknown): never {
  throw new FleetError("FLEET_OPTION_INVALID", `${where} must be ${expected}, got ${describe(got)}`);
}

function within(value: number, where: string, bounds: NumberBounds): number {
  if (bounds.min !== undefined && value < bounds.min) return refuse(where, `at least ${bounds.min}`, value);
  if (bounds.above !== undefined && value <= bounds.above)
    return refuse(where, `above ${bounds.above}`, value);
  if (bounds.max !== undefined && value > bounds.max) return refuse(where, `at most ${bounds.max}`, value);
  return value;
}

export function describe(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
  if (typeof value === "number" || typeof value === "boolean" || value === null || value === undefined)
    return String(value);
  if (typeof value === "bigint") return `${value}n`;
  if (Array.isArray(value)) return `an array of ${value.length}`;
  return typeof value === "function" ? "a function" : "an object";
}
