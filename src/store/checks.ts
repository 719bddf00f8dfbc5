/**
 * What arguments of a call must look like when they come in over a socket. They have been checked in the process that made the call; here
 * the question is only whether the other side speaks the same port: kinds, names, bounds.
 */
import { checkName, checkTopic, checkTopicPattern } from "../contracts/name.ts";
import { boolean, describe, integer, number, oneOf, refuse } from "../contracts/options.ts";
import { FleetError } from "../errors.ts";
import { nearest } from "../internal/suggest.ts";

/** Throws `FLEET_OPTION_INVALID` or `FLEET_NAME_INVALID`, naming `where`. */
export type Check = (value: unknown, where: string) => unknown;
/** One check for each field, also for those that may be left out. */
export type Fields<T> = { readonly [K in keyof T]-?: Check };

const MOST_ITEMS = 100_000;
const LONGEST_ID = 65_536;

export const name: Check = (value, where) => checkName(where, value);
export const topic: Check = (value) => checkTopic(value, { own: true });
export const pattern: Check = (value) => checkTopicPattern(value);
export const flag: Check = boolean;
export const amount: Check = number();
export const count: Check = integer({ min: 0, max: 10_000_000 });
export const whole: Check = integer();
export const one = oneOf;

/** A payload: of any length, the frame has bounds of its own. */
export const words: Check = (value, where) =>
  typeof value === "string" ? value : refuse(where, "a text", value);

/** An id, a token, a key; may be empty. */
export const id: Check = (value, where) =>
  typeof value === "string" && value.length <= LONGEST_ID
    ? value
    : refuse(where, `a text of at most ${LONGEST_ID} characters`, value);

export const anything: Check = (value) => value;

export const nothing = (value: unknown, where: string): undefined =>
  value === undefined ? undefined : refuse(where, "left out", value);

export function maybe(check: Check): Check {
  return (value, where) => (value === undefined ? value : check(value, where));
}

export function orNull(check: Check): Check {
  return (value, where) => (value === null ? value : check(value, where));
}

export function list(check: Check, max = MOST_ITEMS): Check {
  return (value, where) => {
    if (!Array.isArray(value) || value.length > max) return refuse(where, `a list of at most ${max}`, value);
    for (let i = 0; i < value.length; i++) check(value[i], `${where}[${i}]`);
    return value;
  };
}

/** An object whose values all pass. */
export function record(check: Check): Check {
  return (value, where) => {
    for (const [key, one] of Object.entries(object(value, where))) check(one, `${where}.${key}`);
    return value;
  };
}

/** An object with these fields and no others: one that this version does not know would silently not be done. */
export function shape<T>(fields: Fields<T>): (value: unknown, where: string) => T {
  const known = Object.keys(fields);
  const checks = Object.entries<Check>(fields);
  return (value, where) => {
    const given = object(value, where);
    for (const [key, check] of checks) check(given[key], `${where}.${key}`);
    for (const key of Object.keys(given)) if (!Object.hasOwn(fields, key)) unknown(where, key, known);
    return value as T;
  };
}

/** An object that is kept as it is, with at least these fields: others are the business of who reads it. */
export function atLeast(fields: Readonly<Record<string, Check>>): Check {
  const checks = Object.entries(fields);
  return (value, where) => {
    const given = object(value, where);
    for (const [key, check] of checks) check(given[key], `${where}.${key}`);
    return value;
  };
}

function object(value: unknown, where: string): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : refuse(where, "an object", value);
}

function unknown(where: string, key: string, known: readonly string[]): never {
  const near = nearest(key, known);
  throw new FleetError(
    "FLEET_OPTION_INVALID",
    `${where}: unknown field ${describe(key)}; ${near === undefined ? `known: ${known.join(", ")}` : `did you mean "${near}"?`}`,
  );
}
