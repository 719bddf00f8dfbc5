/**
 * What references in configs stand for, as this process has read it. Whatever it says to others (errors, log lines) goes through
 * `hideSecrets` first, so that none of it shows up in the store, a status or a log.
 */
import { redactText } from "../internal/redact.ts";

const known = new Map<string, string>();

/** Shorter ones may be a word like any other ("eu"): they are hidden only in what is said of the config itself. */
const SHORTEST = 6;

/** `text` is the reference by which the value stands in the config. */
export function rememberSecret(value: string, text: string): void {
  if (value.length >= SHORTEST) known.set(value, text);
}

/** The text with every value that this process has by reference replaced by that reference, and without passwords of addresses. */
export function hideSecrets(text: string): string {
  return redactText(known.size === 0 ? text : hideIn(text, known));
}

/** Longer values first: one may be part of another. Also as they stand within JSON. */
export function hideIn(text: string, secrets: ReadonlyMap<string, string>): string {
  const forms = [...secrets].flatMap(([value, reference]) =>
    [value, JSON.stringify(value).slice(1, -1)].map((form) => [form, reference] as const),
  );
  return forms
    .filter(([form]) => form !== "")
    .toSorted(([a], [b]) => b.length - a.length)
    .reduce((hidden, [form, reference]) => hidden.replaceAll(form, () => reference), text);
}
