/**
 * What references in configs stand for, as this process has read it. Whatever it says to others (errors, log lines) goes through
 * `hideSecrets` first, so that none of it shows up in the store, a status or a log.
 */
import { redactText } from "../internal/redact.ts";

const known = new Map<string, string>();
let tellOther: ((value: string, reference: string) => void) | undefined;

/** Shorter ones may be a word like any other ("eu"): they are hidden only in what is said of the config itself. */
const SHORTEST = 6;

/** `text` is the reference by which the value stands in the config. */
export function rememberSecret(value: string, text: string): void {
  if (value.length < SHORTEST || known.get(value) === text) return;
  known.set(value, text);
  tellOther?.(value, text);
}

/** Has somebody else know them as well, each once, before any code does: who keeps what this process prints hides them there. */
export function tellSecrets(tell: (value: string, reference: string) => void): void {
  tellOther = tell;
}

/** The text with every value that this process has by reference replaced by that reference, and without passwords of addresses. */
export function hideSecrets(text: string): string {
  return redactText(known.size === 0 ? text : hideIn(text, known));
}

/** Longer values first: one may be part of another. Also as they stand within JSON. */
export function hideIn(text: string, secrets: ReadonlyMap<string, string>): string {
  return formsOf(secrets)
    .toSorted(([a], [b]) => b.length - a.length)
    .reduce((hidden, [form, reference]) => hidden.replaceAll(form, () => reference), text);
}

/** As {@link hideIn}, of the end of a longer text: it may begin within a value. */
export function hideInEnd(text: string, secrets: ReadonlyMap<string, string>): string {
  let cut = 0;
  let begun = "";
  for (const [form, reference] of formsOf(secrets)) {
    for (
      let length = Math.min(form.length - 1, text.length);
      length >= SHORTEST && length > cut;
      length -= 1
    ) {
      if (text.startsWith(form.slice(-length))) [cut, begun] = [length, reference];
    }
  }
  return begun + hideIn(text.slice(cut), secrets);
}

function formsOf(secrets: ReadonlyMap<string, string>): (readonly [form: string, reference: string])[] {
  return [...secrets].flatMap(([value, reference]) =>
    [value, JSON.stringify(value).slice(1, -1)]
      .filter((form) => form !== "")
      .map((form) => [form, reference] as const),
  );
}
