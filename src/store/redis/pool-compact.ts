/** Short texts for what each item of a pool bears: its id, and its tags as JSON. A pool can hold millions. */

const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/;

/** A UUID takes 23 bytes in place of 36: `~` and its base64. */
export function shortId(id: string): string {
  if (id.length === 36 && UUID.test(id))
    return `~${Buffer.from(id.replaceAll("-", ""), "hex").toString("base64url")}`;
  return id.startsWith("~") ? `~${id}` : id;
}

export function longId(short: string): string {
  if (!short.startsWith("~")) return short;
  if (short.startsWith("~~")) return short.slice(1);
  const hex = Buffer.from(short.slice(1), "base64url").toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** Places of more tags than these, and JSON that the tags do not tell, are kept as they are. */
const PLACES = "0123456789abcdefghijklmnopqrstuvwxyz";
/** How the values of a tag stand in the JSON, behind its place: a text (nothing), a list of texts, a number or truth value, a list of those. */
const KINDS = ["", "L", "V", "M"] as const;
type Kind = (typeof KINDS)[number];

/**
 * What the JSON of tags says beyond the tags themselves (as `wireOfTags` has them): which stands where, and how. `:20V1` is the third, the
 * first, which is no text, and the second. No JSON begins with a colon, so the two are told apart.
 */
export function shapeOf(tagsJson: string, tags: string): string {
  const names = entriesOf(tags).map(([name]) => name);
  const given = parsed(tagsJson);
  if (names.length === 0 || typeof given !== "object" || given === null) return tagsJson;
  let shape = ":";
  for (const [name, value] of Object.entries(given)) {
    const place = PLACES[names.indexOf(name)];
    if (place === undefined) return tagsJson;
    shape += `${place}${kindOf(value)}`;
  }
  return shape !== ":" && jsonOf(shape, tags) === tagsJson ? shape : tagsJson;
}

/** Items of a pool bear the same tags over and over. */
const KNOWN = new Map<string, string>();
const MOST_KNOWN = 1000;

/** What a script answers: JSON as it is, or its shape and, behind a space, the tags. */
export function tagsJsonOf(text: string): string {
  if (!text.startsWith(":")) return text;
  const known = KNOWN.get(text);
  if (known !== undefined) return known;
  const space = text.indexOf(" ");
  const json = space < 0 ? text : jsonOf(text.slice(0, space), text.slice(space + 1));
  if (KNOWN.size >= MOST_KNOWN) KNOWN.clear();
  KNOWN.set(text, json);
  return json;
}

function jsonOf(shape: string, tags: string): string {
  const entries = entriesOf(tags);
  const members = [...shape.matchAll(/([\da-z])([LVM]?)/g)].map(([, place = "", kind = ""]) => {
    const [name = "", values = []] = entries[PLACES.indexOf(place)] ?? [];
    return `${JSON.stringify(name)}:${valueOf(values, kind as Kind)}`;
  });
  return `{${members.join(",")}}`;
}

/** Names with their values, from `name=value name=value …`. */
function entriesOf(tags: string): [name: string, values: string[]][] {
  const entries = new Map<string, string[]>();
  for (const tag of tags.split(" ")) {
    const [name = "", value = ""] = tag.split("=").map(decodeURIComponent);
    const values = entries.get(name);
    if (values === undefined) entries.set(name, [value]);
    else values.push(value);
  }
  return [...entries];
}

function valueOf(values: readonly string[], kind: Kind): string {
  const texts = kind === "" || kind === "L" ? values.map((value) => JSON.stringify(value)) : values;
  return kind === "L" || kind === "M" ? `[${texts.join(",")}]` : (texts[0] ?? "");
}

function kindOf(value: unknown): Kind {
  if (Array.isArray(value)) return typeof value[0] === "string" ? "L" : "M";
  return typeof value === "string" ? "" : "V";
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return undefined;
  }
}
