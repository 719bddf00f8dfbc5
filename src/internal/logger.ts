import { cleanFields, cleanMessage } from "./log-fields.ts";
import { LOG_LEVELS, type Log, type LogFields, type LogLevel } from "./log.ts";
import { escapeControls } from "./redact.ts";

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
    const clean = cleanFields([options.fields, fields]);
    options.write(line(level, cleanMessage(message), clean, options));
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
