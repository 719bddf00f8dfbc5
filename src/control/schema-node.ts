// What the comparison of JSON Schemas is made of. Pure.

/** A schema, or a part of one. */
export type Node = Readonly<Record<string, unknown>> | boolean;

export type Fit =
  | { outcome: "ok" }
  | {
      outcome: "broken";
      /** JSON Pointer into the payload; `*` stands for any element or key. */
      pointer: string;
      words: string;
      /** No value at all that is given would be taken. */
      disjoint?: boolean;
    }
  | { outcome: "unknown"; pointer: string; words: string };

export const OK: Fit = { outcome: "ok" };

export function unknown(pointer: string, words: string): Fit {
  return { outcome: "unknown", pointer, words };
}

/** The first that is broken (disjoint ones before others), else the first that is not known. */
export function worst(fits: readonly Fit[]): Fit {
  return (
    fits.find((fit) => fit.outcome === "broken" && fit.disjoint === true) ??
    fits.find(({ outcome }) => outcome === "broken") ??
    fits.find(({ outcome }) => outcome === "unknown") ??
    OK
  );
}

/** Says nothing about which values are valid. */
export const ANNOTATIONS: ReadonlySet<string> = new Set([
  "$schema",
  "$id",
  "$comment",
  "$defs",
  "definitions",
  "title",
  "description",
  "default",
  "examples",
  "deprecated",
  "readOnly",
  "writeOnly",
  "contentEncoding",
  "contentMediaType",
]);

export function isTrivial(node: Node): boolean {
  return (
    node === true || (typeof node === "object" && Object.keys(node).every((key) => ANNOTATIONS.has(key)))
  );
}

export function isNever(node: Node): boolean {
  return node === false || (typeof node === "object" && "not" in node && isTrivial(node["not"] as Node));
}

export function record(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

export function list(value: unknown): readonly unknown[] | undefined {
  return Array.isArray(value) ? value : undefined;
}

export function without(node: Record<string, unknown>, ...keys: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(node).filter(([key]) => !keys.includes(key)));
}

/** Follows references within `root`; undefined where they lead nowhere. */
export function resolve(node: Node, root: Node): Node | undefined {
  let at: Node | undefined = node;
  for (let hops = 0; typeof at === "object" && typeof at["$ref"] === "string"; hops++) {
    const beside = without(record(at), "$ref", ...ANNOTATIONS);
    if (hops > 32) return undefined;
    const target = lookUp(at["$ref"], root);
    if (target === undefined) return undefined;
    if (Object.keys(beside).length > 0) return { allOf: [target, beside] };
    at = target;
  }
  return at;
}

function lookUp(ref: string, root: Node): Node | undefined {
  if (ref !== "#" && !ref.startsWith("#/")) return undefined;
  let at: unknown = root;
  for (const part of ref.split("/").slice(1)) {
    const key = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as Record<string, unknown>)[key];
  }
  return typeof at === "boolean" || (typeof at === "object" && at !== null) ? (at as Node) : undefined;
}

const WORDS: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  integer: "a whole number",
  boolean: "a boolean",
  object: "an object",
  array: "a list",
  null: "null",
};

export function typeWord(type: unknown): string {
  return WORDS[String(type)] ?? String(type);
}

export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
