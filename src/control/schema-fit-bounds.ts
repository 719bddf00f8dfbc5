// Bounds of numbers, lengths of texts and lists, patterns and formats. Pure.
import { type Fit, OK, unknown, worst } from "./schema-node.ts";

type Keywords = Readonly<Record<string, unknown>>;

/** Whether what is given keeps within what is taken; both are of this type. */
export function boundsFit(type: string, given: Keywords, taken: Keywords, at: string): Fit {
  if (type === "number" || type === "integer")
    return worst([
      limit(lowest(given, type), lowest(taken, type), "below", at),
      limit(highest(given, type), highest(taken, type), "above", at),
      steps(given["multipleOf"], taken["multipleOf"], type, at),
    ]);
  if (type === "string")
    return worst([
      length("minLength", given, taken, "shorter than", at),
      length("maxLength", given, taken, "longer than", at),
      shape(given, taken, at),
    ]);
  if (type !== "array") return OK;
  return worst([
    length("minItems", given, taken, "shorter than", at),
    length("maxItems", given, taken, "longer than", at),
  ]);
}

/** A lower bound; of an upper one its mirror image. */
interface Bound {
  at: number;
  /** The bound itself is out. */
  open: boolean;
}

function lowest(node: Keywords, type: string): Bound {
  const closed = numeric(node["minimum"], Number.NEGATIVE_INFINITY);
  const open = numeric(node["exclusiveMinimum"], Number.NEGATIVE_INFINITY);
  return exact(
    open >= closed && open > Number.NEGATIVE_INFINITY
      ? { at: open, open: true }
      : { at: closed, open: false },
    type,
  );
}

/** The upper bound's mirror image. */
function highest(node: Keywords, type: string): Bound {
  const turned = (key: string) => (typeof node[key] === "number" ? -node[key] : undefined);
  return lowest({ minimum: turned("maximum"), exclusiveMinimum: turned("exclusiveMaximum") }, type);
}

/** A whole number above 0 is one of at least 1. Beyond 2^53 none travels exactly: a bound there is none. */
function exact({ at, open }: Bound, type: string): Bound {
  if (type !== "integer") return { at, open };
  const least = open ? Math.floor(at) + 1 : Math.ceil(at);
  return { at: least <= -Number.MAX_SAFE_INTEGER ? Number.NEGATIVE_INFINITY : least, open: false };
}

function limit(given: Bound, taken: Bound, side: "below" | "above", at: string): Fit {
  if (given.at > taken.at || (given.at === taken.at && (given.open || !taken.open))) return OK;
  const bound = side === "below" ? taken.at : -taken.at;
  const words = `may be ${taken.open && given.at === taken.at ? `${bound}, or ` : ""}${side} ${bound}, which is not taken`;
  return { outcome: "broken", pointer: at, words };
}

function steps(given: unknown, taken: unknown, type: string, at: string): Fit {
  if (typeof taken !== "number" || given === taken) return OK;
  if (type === "integer" && taken === 1) return OK;
  if (typeof given === "number" && Number.isInteger(given / taken)) return OK;
  return unknown(at, `whether it is a multiple of ${taken} cannot be told`);
}

function length(
  key: "minLength" | "maxLength" | "minItems" | "maxItems",
  given: Keywords,
  taken: Keywords,
  words: string,
  at: string,
): Fit {
  const least = key.startsWith("min");
  const none = least ? 0 : Number.POSITIVE_INFINITY;
  const [mine, theirs] = [numeric(given[key], none), numeric(taken[key], none)];
  if (least ? mine >= theirs : mine <= theirs) return OK;
  return { outcome: "broken", pointer: at, words: `may be ${words} ${theirs}, which is not taken` };
}

/** A text of no particular shape is not always one of this shape; whether one shape is part of another nobody here can tell. */
function shape(given: Keywords, taken: Keywords, at: string): Fit {
  const asked = ["format", "pattern"].filter((key) => taken[key] !== undefined && given[key] !== taken[key]);
  const [first] = asked;
  if (first === undefined) return OK;
  const what = `${first} ${JSON.stringify(taken[first])}`;
  const free = ["format", "pattern", "minLength", "maxLength"].every((key) => given[key] === undefined);
  return free
    ? { outcome: "broken", pointer: at, words: `is given as any text, but taken only in ${what}` }
    : unknown(at, `whether it is always of ${what} cannot be told`);
}

function numeric(value: unknown, otherwise: number): number {
  return typeof value === "number" ? value : otherwise;
}
