import { PayloadError } from "../errors.ts";
import { payloadError, pointerPart } from "./validate.ts";

/** Deepest nesting of a payload. */
export const MAX_DEPTH = 64;

/** What JSON makes an empty object of, or (bytes) a heap of numbered fields. */
const NOT_JSON = [Map, Set, WeakMap, WeakSet, Promise, RegExp, Error, ArrayBuffer];

/**
 * The JSON text of a payload. Throws `FLEET_PAYLOAD_INVALID`, naming the field, for what JSON would lose without a word:
 * `bigint`, `NaN`, `Infinity`, functions, symbols, `Map`, `Set`, a promise that was not awaited, an error, bytes, an invalid
 * `Date`, an `undefined` in an array. Objects with `toJSON` (a `Date`) travel in that form; `undefined` fields are left out, as in
 * `JSON.stringify`.
 */
export function encodePayload(where: string, payload: unknown): string {
  // The names of fields are put together only where one of them has to be named.
  if (!isLossless(payload, 0)) refuseLossy(where, payload, "", 0);
  return JSON.stringify(payload);
}

/** Size in bytes of `json` as UTF-8, cheap for the usual short text. */
export function byteLength(json: string, limit: number): number {
  // A UTF-16 unit takes at most 3 bytes, so most texts are seen to fit without being encoded.
  return json.length * 3 <= limit ? json.length : new TextEncoder().encode(json).length;
}

/** Throws `FLEET_PAYLOAD_TOO_LARGE` with both numbers when `json` is above `limit` bytes; `remedy` says what to do then. */
export function checkSize(
  where: string,
  json: string,
  limit: number,
  remedy = "send a reference to the data instead",
): void {
  const bytes = byteLength(json, limit);
  if (bytes > limit) {
    throw new PayloadError(
      "FLEET_PAYLOAD_TOO_LARGE",
      `${where}: the payload has ${bytes} bytes, the limit is ${limit}; ${remedy}`,
    );
  }
}

/** True only for plain data; for all else `refuseLossy` decides. */
function isLossless(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return Number.isFinite(value);
    case "object":
      break;
    default:
      return false;
  }
  if (value === null) return true;
  if (depth >= MAX_DEPTH || typeof (value as { toJSON?: unknown }).toJSON === "function") return false;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (!isLossless(value[i], depth + 1)) return false;
    return true;
  }
  const kind: unknown = Object.getPrototypeOf(value);
  if (kind !== Object.prototype && kind !== null) return false;
  for (const key in value) {
    const field = (value as Record<string, unknown>)[key];
    if (field !== undefined && !isLossless(field, depth + 1)) return false;
  }
  return true;
}

function refuseLossy(where: string, value: unknown, path: string, depth: number): void {
  switch (typeof value) {
    case "string":
    case "boolean":
      return;
    case "number":
      if (!Number.isFinite(value)) fail(where, path, `${value} has no JSON form`);
      return;
    case "undefined":
      return fail(where, path, "undefined has no JSON form; use null");
    case "object":
      break;
    default:
      return fail(where, path, `a ${typeof value} has no JSON form`);
  }
  if (value === null) return;
  if (depth >= MAX_DEPTH) fail(where, path, `nested deeper than ${MAX_DEPTH} levels (or in a circle)`);
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) refuseLossy(where, value[i], `${path}/${i}`, depth + 1);
    return;
  }
  const object = value as Record<string, unknown>;
  if (value instanceof Date && Number.isNaN(value.getTime()))
    fail(where, path, "an invalid Date has no JSON form");
  if (typeof object.toJSON === "function") return refuseLossy(where, object.toJSON(), path, depth + 1);
  if (ArrayBuffer.isView(value) || NOT_JSON.some((kind) => value instanceof kind)) {
    const kind = Object.prototype.toString.call(value).slice("[object ".length, -1);
    const hint = kind === "Promise" ? "await it" : "use a plain object, an array or a text";
    fail(where, path, `${/^[AEIOU]/.test(kind) ? "an" : "a"} ${kind} has no JSON form; ${hint}`);
  }
  for (const key in object) {
    if (Object.hasOwn(object, key) && object[key] !== undefined)
      refuseLossy(where, object[key], `${path}/${pointerPart(key)}`, depth + 1);
  }
}

function fail(where: string, pointer: string, message: string): never {
  throw payloadError(where, [{ pointer, message }]);
}
