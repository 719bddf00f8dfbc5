// Secrets in config by reference: what stands in the store is where to find them.
import { pointerPart } from "../contracts/validate.ts";
import { isFields } from "./config.ts";

export type Reference = { kind: "env"; name: string } | { kind: "file"; path: string };

const ENV = /^env:([A-Za-z_][A-Za-z0-9_]*)$/;
/** An absolute path. `file://…` is an address like any other. */
const FILE = /^file:(\/(?!\/).*)$/s;
/** `env::NAME` is the text `env:NAME`. */
const ESCAPED = /^(env|file)::/;

/** Where the value of this text stands; undefined for a text that means itself. */
export function referenceOf(text: string): Reference | undefined {
  const name = ENV.exec(text)?.[1];
  if (name !== undefined) return { kind: "env", name };
  const path = FILE.exec(text)?.[1];
  return path === undefined ? undefined : { kind: "file", path };
}

/** Fleet's own variables hold its secrets: no config reads them. */
export function isForbidden(reference: Reference): boolean {
  return reference.kind === "env" && /^FLEET_/i.test(reference.name);
}

/** What a text that is no reference means. */
export function unescaped(text: string): string {
  return text.replace(ESCAPED, "$1:");
}

/** The config with each text replaced by what `replace` answers for it, called with its JSON Pointer. Fields' names stay. */
export function mapTexts(
  config: unknown,
  replace: (text: string, pointer: string) => unknown,
  pointer = "",
): unknown {
  if (typeof config === "string") return replace(config, pointer);
  if (Array.isArray(config)) return config.map((one, i) => mapTexts(one, replace, `${pointer}/${i}`));
  if (!isFields(config)) return config;
  return Object.fromEntries(
    Object.entries(config).map(([name, value]) => [
      name,
      mapTexts(value, replace, `${pointer}/${pointerPart(name)}`),
    ]),
  );
}

/** JSON Pointers of all references in a config. */
export function referencesIn(config: unknown): { pointer: string; text: string; reference: Reference }[] {
  const found: { pointer: string; text: string; reference: Reference }[] = [];
  mapTexts(config, (text, pointer) => {
    const reference = referenceOf(text);
    if (reference !== undefined) found.push({ pointer, text, reference });
    return text;
  });
  return found;
}

/** What a schema says where it tells that none of several forms fits. */
const ALTERNATIVES = /^must match (a schema in anyOf|exactly one schema in oneOf)/;

/**
 * What a schema finds in a config whose references it has seen as they stand, without what only the value behind them can decide: what is
 * said of the reference itself, and of a choice between forms in which there is one.
 */
export function withoutReferences<T extends { pointer: string; message: string }>(
  issues: readonly T[],
  config: unknown,
): T[] {
  const references = referencesIn(config).map(({ pointer }) => pointer);
  const open = issues
    .filter(({ pointer, message }) => ALTERNATIVES.test(message) && references.some(within(pointer)))
    .map(({ pointer }) => pointer);
  return issues.filter(
    ({ pointer }) => !references.includes(pointer) && !open.some((choice) => within(choice)(pointer)),
  );
}

function within(outer: string): (pointer: string) => boolean {
  return (pointer) => pointer === outer || pointer.startsWith(`${outer}/`);
}
