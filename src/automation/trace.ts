import { messageOf } from "../errors.ts";
import { hideSecrets } from "./config-secrets.ts";

const MAX = 4000;

/** Message and stack of whatever was thrown, with what caused it, as {@link shownText}; never throws itself. */
export function traceOf(error: unknown): string {
  let text = error instanceof Error ? stackOf(error) : `thrown: ${messageOf(error)}`;
  // "fetch failed" says nothing without its cause.
  for (
    let inner = error, depth = 0;
    depth < 3 && inner instanceof Error && inner.cause !== undefined;
    depth++
  ) {
    inner = inner.cause;
    text += `\ncaused by: ${inner instanceof Error ? stackOf(inner) : messageOf(inner)}`;
  }
  return shownText(text);
}

/** A text as it may leave this process: at most 4000 characters, without secrets of configs and passwords of addresses. */
export function shownText(text: string): string {
  return hideSecrets(text).slice(0, MAX);
}

function stackOf(error: Error): string {
  // A stack is whatever somebody put there.
  return typeof error.stack === "string" ? error.stack : `${error.name}: ${error.message}`;
}
