import { LOG_LEVELS, type Log, type LogFields, type LogLevel } from "./log.ts";
import { escapeControls, HIDDEN, isSecretKey, redactText } from "./redact.ts";

export interface LoggerOptions {
  /** Lowest level that is written. Default `"info"`. */
  level?: LogLevel;
  /** `"text"` is a line for people, `"json"` one JSON object per line. */
  format: "text" | "json";
  /** Takes one line, with its line feed. */
  write: (line: string) => void;
  /** Marks up the level's name in `"text"`; default none. */
  paint?: (level: LogLevel, text: string) => string;
  /** Fields of every line. */
  fields?: LogFields;
  /** Unix milliseconds; for tests. */
  now?: () => number;
}

/** Deepest nesting, and most characters of one text, that a field keeps. */
const MAX_DEPTH = 6;
const MAX_TEXT = 8192;

/**
 * A log that hides secrets (passwords in addresses, fields named like one) and lets no control character through.
 * Written by hand because every value is cleaned first, and what is left after that is one `JSON.stringify`.
 */
export function createLogger(options: LoggerOptions): Log {
  const { level: lowestLevel = "info" } = options;
  const lowest = LOG_LEVELS.indexOf(lowestLevel);
  const line = options.format === "json" ? jsonLine : textLine;
  const at = (level: LogLevel) => (message: string, fields?: LogFields) => {
    if (LOG_LEVELS.indexOf(level) < lowest) return;
    const clean = cleanFields({ ...options.fields, ...fields }, 0);
    options.write(line(level, redactText(message), clean, options));
  };
  return {
    level: lowestLevel,
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
  };
}

function jsonLine(level: LogLevel, message: string, fields: LogFields, options: LoggerOptions): string {
  const time = options.now?.() ?? Date.now();
  return `${JSON.stringify({ ...fields, level, time, msg: message })}\n`;
}

function textLine(level: LogLevel, message: string, fields: LogFields, options: LoggerOptions): string {
  const time = clock(new Date(options.now?.() ?? Date.now()));
  const name = level.padEnd(5);
  const pairs = Object.entries(fields).map(([key, value]) => ` ${escapeControls(key)}=${shown(value)}`);
  return `${time} ${options.paint?.(level, name) ?? name} ${escapeControls(message)}${pairs.join("")}\n`;
}

function clock(date: Date): string {
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((part) => String(part).padStart(2, "0"))
    .join(":");
}

/** A value in a line for people: bare when it is one plain word. */
function shown(value: unknown): string {
  if (typeof value === "string") return /^[^\s"=\\]+$/.test(value) ? escapeControls(value) : quoted(value);
  return escapeControls(JSON.stringify(value) ?? String(value));
}

function quoted(text: string): string {
  return escapeControls(JSON.stringify(text));
}

function cleanFields(fields: object, depth: number): LogFields {
  const out: LogFields = {};
  for (const [key, value] of Object.entries(fields)) {
    if (value !== undefined) out[key] = isSecretKey(key) ? HIDDEN : cleanValue(value, depth + 1);
  }
  return out;
}

function cleanValue(value: unknown, depth: number): unknown {
  switch (typeof value) {
    case "string":
      return redactText(value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}…` : value);
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "boolean":
      return value;
    case "object":
      break;
    default:
      return String(value);
  }
  if (value === null) return null;
  if (value instanceof Error) return errorText(value);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString();
  if (depth > MAX_DEPTH) return "…";
  if (Array.isArray(value)) return value.slice(0, 100).map((item) => cleanValue(item, depth + 1));
  return cleanFields(value, depth);
}

function errorText(error: Error): string {
  const { code } = error as { code?: unknown };
  return redactText(`${typeof code === "string" ? `${code}: ` : ""}${error.message}`);
}
