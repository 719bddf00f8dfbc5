import { escapeControls } from "../internal/redact.ts";
import { entryAsJson } from "../protocol/envelope.ts";

/** A stored entry as a line for a terminal, which control characters in it neither steer nor break up. What is JSON stays the same JSON. */
export function entryLine(raw: string): string {
  return entryAsJson(raw) === raw ? jsonLine(raw) : escapeControls(raw);
}

/** The same, and as a text where it is no JSON. */
export function entryJsonLine(raw: string): string {
  return jsonLine(entryAsJson(raw));
}

/** Within its texts JSON can say all of them otherwise; between its parts only blanks stand. */
function jsonLine(json: string): string {
  return escapeControls(json.replace(/[\t\n\r]/g, " "));
}
