/**
 * What a log line may bear. Both ends see to it: the process whose code logs, so that no line of it is more than its supervisor can do with in
 * no time, and whoever writes the line.
 */
import type { LogFields } from "./log.ts";
import { HIDDEN, isSecretKey, redactStart } from "./redact.ts";

/** Most characters of a message, and of one text among the fields. */
const MAX_TEXT = 8192;
/** Most characters of all fields of a line together, and of one name. */
const MAX_FIELDS = 65_536;
const MAX_KEY = 256;
/** Deepest nesting, most items of one list, and most values of all fields together. */
const MAX_DEPTH = 6;
const MAX_ITEMS = 100;
const MAX_VALUES = 1000;

/** Hides in a text what only its own process knows for a secret. */
export type Hide = (text: string) => string;
const nothing: Hide = (text) => text;

/** In place of what throws where it is looked at (a getter, a `toJSON`, an object without a text): no log call throws into the code that logs. */
const UNREADABLE = "(unreadable)";

function readable<T>(read: () => T): T | typeof UNREADABLE {
  try {
    return read();
  } catch {
    return UNREADABLE;
  }
}

interface Room {
  characters: number;
  values: number;
  hide: Hide;
}

/** Without passwords of addresses, and not longer than a line may bear. */
export function cleanMessage(message: unknown, hide = nothing): string {
  const text = typeof message === "string" ? message : readable(() => String(message));
  return redactStart(hide(text), MAX_TEXT);
}

/**
 * Fields as plain data, as {@link cleanMessage}, and with nothing in place of values whose name says that they are secrets. Of several
 * of one name the last counts.
 */
export function cleanFields(parts: readonly (LogFields | undefined)[], hide = nothing): LogFields {
  const all: LogFields = {};
  for (const part of parts) {
    const read = readable(() => Object.keys(part ?? {}));
    if (read === UNREADABLE) all["…"] = UNREADABLE;
    else for (const key of read) all[key] = readable(() => part?.[key]);
  }
  return cleanObject(all, 0, { characters: MAX_FIELDS, values: MAX_VALUES, hide });
}

function cleanObject(fields: object, depth: number, room: Room): LogFields {
  const out: LogFields = {};
  for (const key of Object.keys(fields)) {
    const value = readable(() => (fields as Record<string, unknown>)[key]);
    if (value === undefined) continue;
    if (room.values <= 0) {
      out["…"] = "…";
      break;
    }
    const name = redactStart(room.hide(key), MAX_KEY);
    room.characters -= name.length;
    out[name] = isSecretKey(key) ? HIDDEN : readable(() => cleanValue(value, depth + 1, room));
  }
  return out;
}

function cleanValue(value: unknown, depth: number, room: Room): unknown {
  room.values -= 1;
  switch (typeof value) {
    case "string":
      return cleanText(value, room);
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "boolean":
      return value;
    case "object":
      break;
    default:
      return cleanText(String(value), room);
  }
  if (value === null) return null;
  if (value instanceof Error) return cleanText(errorText(value), room);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString();
  if (depth > MAX_DEPTH || room.values <= 0) return "…";
  // An address (`URL`), say: it has no fields of its own.
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON === "function") return cleanValue(toJSON.call(value), depth + 1, room);
  if (Array.isArray(value))
    return value
      .slice(0, MAX_ITEMS)
      .map((item: unknown) => readable(() => cleanValue(item, depth + 1, room)));
  return cleanObject(value, depth, room);
}

function cleanText(text: string, room: Room): string {
  const clean = redactStart(room.hide(text), Math.max(0, Math.min(MAX_TEXT, room.characters)));
  room.characters -= clean.length;
  return clean;
}

function errorText(error: Error): string {
  const { code } = error as { code?: unknown };
  return `${typeof code === "string" ? `${code}: ` : ""}${error.message}`;
}
