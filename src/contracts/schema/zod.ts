import { DIALECT, NotJson, standardJson, type JsonSchema, type Schema } from "./standard.ts";

/** The part of a zod 4 schema that this adapter reads, typed by hand so that Fleet needs no particular copy of zod. */
interface ZodNode {
  _zod: { def: { type: string; coerce?: boolean; values?: readonly unknown[]; innerType?: ZodNode } };
}

const HINTS: Record<string, string> = {
  date: "use z.iso.datetime() for a text, or z.coerce.date() to get a Date on the consumer's side",
  bigint: "use z.string() or z.coerce.bigint() to get a bigint on the consumer's side",
  map: "use z.record() or an array of pairs",
  set: "use z.array()",
  nan: "use z.number().nullable()",
  undefined: "use .optional()",
  void: "use .optional()",
};
const REFUSED = new Set([
  "bigint",
  "symbol",
  "undefined",
  "void",
  "date",
  "map",
  "set",
  "custom",
  "function",
  "transform",
  "nan",
  "promise",
  "file",
]);

/** JSON Schema of a zod schema's input. Coerced dates and bigints take any JSON value in, so they may travel. */
export function zodInput(schema: Schema): JsonSchema {
  const json = standardJson(schema);
  if (json === undefined)
    throw new NotJson("this zod version has no JSON Schema support", "use zod 4.2 or newer");
  return json.input({
    target: DIALECT,
    libraryOptions: {
      unrepresentable: "any",
      override: ({ zodSchema }: { zodSchema: ZodNode }) => refuseNonJson(zodSchema),
    },
  });
}

function refuseNonJson({ _zod: { def } }: ZodNode): void {
  if (def.coerce === true) return;
  if (REFUSED.has(def.type)) throw new NotJson(`z.${def.type}() has no JSON form`, HINTS[def.type]);
  if (
    def.type === "literal" &&
    def.values?.some((value) => typeof value === "bigint" || value === undefined)
  ) {
    throw new NotJson(
      "a z.literal() of undefined or a bigint has no JSON form",
      "use a text, number, boolean or null",
    );
  }
}
