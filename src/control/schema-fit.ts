/**
 * Whether one JSON Schema takes all that another one allows. Structural and careful: `"broken"` only where there surely is a value that
 * is given and not taken, `"ok"` only where there surely is none; else `"unknown"`. One thing is taken on trust: whoever gives an object
 * gives the fields that its schema names. Pure.
 */
import type { JsonSchema } from "../contracts/schema/standard.ts";
import { canonicalJson } from "../internal/canonical.ts";
import { boundsFit } from "./schema-fit-bounds.ts";
import { valueFits } from "./schema-fit-value.ts";
import {
  ANNOTATIONS,
  type Fit,
  isNever,
  isTrivial,
  list,
  type Node,
  OK,
  record,
  resolve,
  shown,
  typeWord,
  unknown,
  without,
  worst,
} from "./schema-node.ts";

/** Deeper than payloads may nest. */
const MOST_DEPTH = 64;
/** So many pairs of parts are looked at: unions of unions can have very many. */
const MOST_PAIRS = 20_000;

interface Side {
  node: Node;
  /** What `$ref`s are looked up in. */
  root: Node;
}

/** `given`: what the one side allows; `taken`: what the other accepts. */
export function schemaFit(given: JsonSchema, taken: JsonSchema): Fit {
  /** What is being compared at present, and where. */
  const open = new Map<Node, Map<Node, string>>();
  let pairs = 0;

  /** `at`: JSON Pointer into the payload; `*` stands for any element or key. */
  function fit(from: Side, to: Side, at: string, depth: number): Fit {
    const g = resolve(from.node, from.root);
    const t = resolve(to.node, to.root);
    if (g === undefined || t === undefined) return unknown(at, "a reference in the schema leads nowhere");
    if (isTrivial(t) || isNever(g)) return OK;
    if (isNever(t))
      return {
        outcome: "broken",
        pointer: at,
        words: "is given, but nothing is taken there",
        disjoint: true,
      };
    if (depth > MOST_DEPTH || ++pairs > MOST_PAIRS)
      return unknown(at, "the schemas are too large to be compared");
    const before = open.get(g)?.get(t);
    // Deeper in the payload it is what it is above, where that is found out; at the same place it says nothing.
    if (before !== undefined) return before === at ? unknown(at, "the schema refers to itself") : OK;
    if (same(g, t)) return OK;
    const within = open.get(g) ?? new Map<Node, string>();
    open.set(g, within.set(t, at));
    try {
      return fitNodes({ ...from, node: g }, { ...to, node: t }, at, depth + 1);
    } finally {
      within.delete(t);
    }
  }

  function fitNodes(from: Side, to: Side, at: string, depth: number): Fit {
    const g = record(from.node);
    const t = record(to.node);
    const again = (node: Node, taken: Node, where = at) =>
      fit({ ...from, node }, { ...to, node: taken }, where, depth);

    const only = g["minimum"] !== undefined && g["minimum"] === g["maximum"] ? [g["minimum"]] : undefined;
    const values = "const" in g ? [g["const"]] : (list(g["enum"]) ?? only);
    if (values !== undefined) return fitValues(values, to, at);

    const union = list(g["anyOf"]) ?? list(g["oneOf"]);
    if (union !== undefined) {
      const fits = union.map((node) => again(node as Node, t));
      const found = ofAll(fits);
      const bad = union[fits.findIndex(({ outcome }) => outcome === "broken")] as Node;
      const root = from.root;
      // Of alternatives that exclude each other, what two of them allow is not given.
      const apart = (node: unknown) => {
        const beside = fit({ node: bad, root }, { node: node as Node, root }, at, depth);
        return node === bad || (beside.outcome === "broken" && beside.disjoint === true);
      };
      const alone = "anyOf" in g || found.outcome !== "broken" || union.every(apart);
      return alone && isTrivial(without(g, "anyOf", "oneOf")) ? found : doubtful(found);
    }
    const types = list(g["type"]);
    if (types !== undefined) return ofAll(types.map((type) => again({ ...g, type }, t)));
    const all = list(g["allOf"]);
    if (all !== undefined) {
      const parts = [without(g, "allOf"), ...(all as Node[])].map((node) => again(node, t));
      return parts.find(({ outcome }) => outcome === "ok") ?? unknown(at, "several schemas hold at once");
    }
    return fitTo(from, to, at, again);
  }

  /** What is given is of one type by now. */
  function fitTo(
    from: Side,
    to: Side,
    at: string,
    again: (node: Node, taken: Node, where?: string) => Fit,
  ): Fit {
    const g = record(from.node);
    const t = record(to.node);
    const every = list(t["allOf"]);
    if (every !== undefined)
      return worst([without(t, "allOf"), ...(every as Node[])].map((node) => again(g, node)));
    for (const key of ["anyOf", "oneOf"] as const) {
      const union = list(t[key]);
      if (union === undefined) continue;
      const fits = union.map((node) => again(g, node as Node));
      return worst([again(g, without(t, key)), oneOfThem(fits, key === "oneOf", at)]);
    }
    const type = typeof g["type"] === "string" ? g["type"] : undefined;
    if (type === undefined) return unknown(at, "what is given does not say its type");
    const types = list(t["type"]) ?? (t["type"] === undefined ? undefined : [t["type"]]);
    const wider =
      types?.includes(type) === true || (type === "integer" && types?.includes("number") === true);
    if (types !== undefined && !wider) {
      const words = `is given as ${typeWord(type)}, but taken as ${types.map(typeWord).join(" or ")}`;
      return {
        outcome: "broken",
        pointer: at,
        words,
        disjoint: !(type === "number" && types.includes("integer")),
      };
    }
    const allowed = "const" in t ? [t["const"]] : list(t["enum"]);
    if (allowed !== undefined) return fitEnum(type, g, allowed, at);
    if (type === "object") return careful(g, worst([fitObject(g, t, at, again), fitRest(g, t, at)]));
    if (type === "array") return careful(g, worst([fitArray(g, t, at, again), fitRest(g, t, at)]));
    return careful(g, worst([boundsFit(type, g, t, at), fitRest(g, t, at)]));
  }

  function fitValues(values: readonly unknown[], to: Side, at: string): Fit {
    const answers = values.map((value) => valueFits(value, to.node, to.root));
    const refused = values.filter((_, index) => answers[index] === "no");
    if (refused.length > 0)
      return {
        outcome: "broken",
        pointer: at,
        words: `may be given as ${refused.map(shown).join(" or ")}, which is not taken`,
        disjoint: refused.length === values.length,
      };
    return answers.every((answer) => answer === "yes")
      ? OK
      : unknown(at, "whether its values are taken cannot be told");
  }

  return fit({ node: given, root: given }, { node: taken, root: taken }, "", 0);
}

/** Of alternatives that are given: nothing fits only where nothing of any of them does. */
function ofAll(fits: readonly Fit[]): Fit {
  const none = fits.every((fit) => fit.outcome === "broken" && fit.disjoint === true);
  return none ? worst(fits) : weak(worst(fits));
}

/** Of alternatives that are taken. Those that no value given could be are out; the only one that is left decides. */
function oneOfThem(fits: readonly Fit[], exactly: boolean, at: string): Fit {
  const open = fits.filter((one) => one.outcome !== "broken" || one.disjoint !== true);
  const good = open.filter(({ outcome }) => outcome === "ok");
  if (good.length > 0 && (!exactly || open.length === 1)) return OK;
  const [only] = open;
  if (open.length === 1 && only !== undefined) return only;
  if (open.length > 0) return unknown(at, "which of several schemas takes it cannot be told");
  // Where all but one are of another type altogether, the words of that one say most.
  const [near, ...others] = fits.filter((fit) => fit.outcome === "broken" && fit.pointer !== at);
  if (near !== undefined && others.length === 0) return near;
  return { outcome: "broken", pointer: at, words: "is given as none of what is taken", disjoint: true };
}

function fitEnum(type: string, g: Record<string, unknown>, allowed: readonly unknown[], at: string): Fit {
  if (type === "null" && allowed.includes(null)) return OK;
  if (type === "boolean" && allowed.includes(true) && allowed.includes(false)) return OK;
  const ofType = allowed.filter((value) => jsonType(value, type));
  const words = `is given as any ${typeWord(type).replace(/^an? /, "")}, but taken only as ${allowed.slice(0, 5).map(shown).join(", ")}`;
  if (ofType.length === 0) return { outcome: "broken", pointer: at, words, disjoint: true };
  const plain = isTrivial(without(g, "type"));
  return plain ? { outcome: "broken", pointer: at, words } : unknown(at, words);
}

function jsonType(value: unknown, type: string): boolean {
  if (type === "null") return value === null;
  if (type === "integer" || type === "number") return typeof value === "number";
  if (type === "array") return Array.isArray(value);
  return type === "object" ? typeof value === "object" && value !== null : typeof value === type;
}

type Again = (node: Node, taken: Node, where?: string) => Fit;

function fitObject(g: Record<string, unknown>, t: Record<string, unknown>, at: string, again: Again): Fit {
  const [mine, theirs] = [record(g["properties"]), record(t["properties"])];
  const surely = new Set(list(g["required"]) ?? []);
  const fits: Fit[] = [];
  for (const name of (list(t["required"]) ?? []) as string[]) {
    if (surely.has(name)) continue;
    const never = !Object.hasOwn(mine, name) && !opens(g);
    const words = Object.hasOwn(mine, name)
      ? "may be left out, but is required"
      : "is not among what is given, but is required";
    fits.push({ outcome: "broken", pointer: `${at}/${escape(name)}`, words, disjoint: never });
  }
  const rest = t["additionalProperties"] as Node | undefined;
  for (const [name, node] of Object.entries(mine)) {
    const where = `${at}/${escape(name)}`;
    const wanted = Object.hasOwn(theirs, name) ? (theirs[name] as Node) : (rest ?? true);
    const fit = again(node as Node, wanted, where);
    // What may be left out makes no object unfit as a whole.
    fits.push(surely.has(name) ? fit : { ...fit, ...(fit.outcome === "broken" ? { disjoint: false } : {}) });
  }
  const others = g["additionalProperties"] as Node | undefined;
  if (others !== undefined && !isTrivial(others) && !isNever(others)) {
    const wanted = [...Object.values(theirs), rest ?? true] as Node[];
    for (const node of wanted) fits.push(weak(again(others, node, `${at}/*`)));
  }
  const names = t["propertyNames"] as Node | undefined;
  if (names !== undefined && !isTrivial(names) && canonicalJson(names) !== '{"type":"string"}')
    for (const name of Object.keys(mine))
      if (valueFits(name, names, names) !== "yes")
        fits.push(unknown(at, `"${name}" may be no name that is taken`));
  return worst(fits);
}

/** Whether fields that the schema does not name may be there. */
function opens(g: Record<string, unknown>): boolean {
  return g["additionalProperties"] !== undefined && !isNever(g["additionalProperties"] as Node);
}

function fitArray(g: Record<string, unknown>, t: Record<string, unknown>, at: string, again: Again): Fit {
  const [mine, theirs] = [list(g["prefixItems"]) ?? [], list(t["prefixItems"]) ?? []] as Node[][];
  const [rest, restTaken] = [(g["items"] ?? true) as Node, (t["items"] ?? true) as Node];
  const fits = [boundsFit("array", g, t, at)];
  const most = Math.max(mine?.length ?? 0, theirs?.length ?? 0);
  const certain = Number(g["minItems"] ?? 0);
  for (let index = 0; index < most; index++) {
    const fit = again(mine?.[index] ?? rest, theirs?.[index] ?? restTaken, `${at}/${index}`);
    fits.push(index < certain ? fit : weak(fit));
  }
  const closed = isNever(rest) || Number(g["maxItems"] ?? Number.POSITIVE_INFINITY) <= most;
  if (!closed) fits.push(weak(again(rest, restTaken, `${at}/*`)));
  return worst(fits);
}

const HANDLED = new Set([
  "type",
  "properties",
  "required",
  "additionalProperties",
  "propertyNames",
  "items",
  "prefixItems",
  "minItems",
  "maxItems",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "pattern",
  "format",
]);

/** What else is asked of it: met only by the same words. */
function fitRest(g: Record<string, unknown>, t: Record<string, unknown>, at: string): Fit {
  const other = Object.keys(t).find(
    (key) =>
      !HANDLED.has(key) &&
      !ANNOTATIONS.has(key) &&
      !(key in g && canonicalJson(g[key]) === canonicalJson(t[key])),
  );
  return other === undefined ? OK : unknown(at, `what "${other}" asks for cannot be compared`);
}

/** What the schema of what is given says beyond what is understood here may rule out what would not fit. */
function careful(g: Record<string, unknown>, fit: Fit): Fit {
  return Object.keys(g).every((key) => HANDLED.has(key) || ANNOTATIONS.has(key)) ? fit : doubtful(fit);
}

function doubtful(fit: Fit): Fit {
  return fit.outcome === "broken" && fit.disjoint !== true ? unknown(fit.pointer, fit.words) : fit;
}

function weak(fit: Fit): Fit {
  return fit.outcome === "broken" ? { ...fit, disjoint: false } : fit;
}

function same(g: Node, t: Node): boolean {
  const [a, b] = [
    canonicalJson(without(record(g), ...ANNOTATIONS)),
    canonicalJson(without(record(t), ...ANNOTATIONS)),
  ];
  return a === b && !a.includes('"$ref"');
}

function escape(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}
