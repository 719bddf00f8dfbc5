import { createLogger } from "../internal/logger.ts";
import type { Log, LogLevel } from "../internal/log.ts";
import type { Terminal } from "./terminal.ts";

/** The command's log: on stderr, lines for people or, with `--json`, JSON lines. */
export function openLog(terminal: Terminal, level: LogLevel = "info"): Log {
  const colors = terminal.colors(2);
  const paint: Record<LogLevel, (text: string) => string> = {
    debug: colors.dim,
    info: colors.green,
    warn: colors.yellow,
    error: colors.red,
  };
  return createLogger({
    level,
    format: terminal.json ? "json" : "text",
    write: terminal.complain,
    paint: (level, text) => paint[level](text),
  });
}
