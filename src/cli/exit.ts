// The one place that knows exit codes, and how an error is shown.
import { type ErrorCode, isFleetError } from "../errors.ts";
import { redactText } from "../internal/redact.ts";
import type { Terminal } from "./terminal.ts";

export const EXIT = { done: 0, failed: 1, usage: 2, unreachable: 3, unauthorised: 4, forced: 5 } as const;

const BY_CODE: Partial<Record<ErrorCode, number>> = {
  FLEET_NAME_INVALID: EXIT.usage,
  FLEET_OPTION_INVALID: EXIT.usage,
  FLEET_NOT_AVAILABLE: EXIT.usage,
  FLEET_SCHEMA_INVALID: EXIT.usage,
  FLEET_DEFINITION_INVALID: EXIT.usage,
  FLEET_PAYLOAD_INVALID: EXIT.usage,
  FLEET_PAYLOAD_TOO_LARGE: EXIT.usage,
  FLEET_CONFIG_INVALID: EXIT.usage,
  FLEET_STORE_URL_INVALID: EXIT.usage,
  FLEET_PROJECT_INVALID: EXIT.usage,
  FLEET_USAGE: EXIT.usage,
  FLEET_STORE_UNAVAILABLE: EXIT.unreachable,
  FLEET_STORE_BUSY: EXIT.unreachable,
  FLEET_STORE_AUTH: EXIT.unauthorised,
  FLEET_TOKEN_REFUSED: EXIT.unauthorised,
};

/** Codes that only commands give. The table in `docs/errors.md` lists the same ones, and a test compares the two both ways. */
export const COMMAND_CODES = {
  FLEET_NOTHING_FREE: "`fleet pool claim` found as many items as asked for neither free nor in time.",
  FLEET_NOT_FOLLOWED: "`--wait` has passed, and not all slots have followed, or the worker is not gone.",
  FLEET_WORKERS_ALIVE: "`fleet wipe` while workers live, or `fleet remove` of one that lives.",
  FLEET_NOT_CONFIRMED: "What deletes or changes much was not confirmed.",
} as const;
export type CommandCode = keyof typeof COMMAND_CODES;

/** A command that could not do what was asked, though nothing is wrong with its arguments or the store. */
export class CommandFailed extends Error {
  override readonly name = "CommandFailed";
  /** For `--json`. */
  readonly code: CommandCode;

  constructor(code: CommandCode, message: string) {
    super(message);
    this.code = code;
  }
}

export function exitCodeOf(error: unknown): number {
  return isFleetError(error) ? (BY_CODE[error.code] ?? EXIT.failed) : EXIT.failed;
}

/** What to do about it, where its message only says what was met. */
const REMEDIES: Partial<Record<ErrorCode, string>> = {
  FLEET_STORE_UNAVAILABLE: "is it running there, and is the address right (--store, --master)?",
  FLEET_TOKEN_REFUSED: "the master keeps the right one in .fleet/token, or was given it as FLEET_TOKEN",
};

/** What a user is told of an error: with `json` one object, else the message, and for an unexpected one its stack. */
export function errorText(error: unknown, json: boolean): string {
  const { code, message, stack } = partsOf(error);
  if (json) return `${JSON.stringify({ code, message: redactText(message) })}\n`;
  const known = isFleetError(error) || error instanceof CommandFailed;
  const remedy = isFleetError(error) ? REMEDIES[error.code] : undefined;
  const more = remedy === undefined || /[;?]/.test(message) ? "" : `; ${remedy}`;
  const detail = known || stack === undefined ? "" : `\n${stack.split("\n").slice(1).join("\n")}`;
  return `fleet: ${visible(redactText(message + more + detail))}\n`;
}

/** Prints an error and answers the exit code for it. */
export function reportError(error: unknown, terminal: Terminal): number {
  const text = errorText(error, terminal.json);
  terminal.complain(terminal.json ? text : text.replace(/^fleet:/, terminal.colors(2).red("fleet:")));
  return exitCodeOf(error);
}

function partsOf(error: unknown): { code: string; message: string; stack?: string | undefined } {
  if (!(error instanceof Error)) return { code: "FAILED", message: String(error) };
  const { code } = error as { code?: unknown };
  return { code: typeof code === "string" ? code : "FAILED", message: error.message, stack: error.stack };
}

/** Line feeds and tabs stay (code frames have them); other control characters could play tricks on the terminal. */
function visible(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "\ufffd");
}
