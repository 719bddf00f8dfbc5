/** JSON of `facts` and of further fields whose values are JSON texts already: payloads go out byte for byte as they came in. */
export function jsonWith(facts: object, texts: Readonly<Record<string, string>>): string {
  const head = JSON.stringify(facts).slice(0, -1);
  const more = Object.entries(texts).map(([name, text]) => `${JSON.stringify(name)}:${text}`);
  return `${head}${head === "{" || more.length === 0 ? "" : ","}${more.join(",")}}`;
}

/** A page of a list whose items are JSON texts already. */
export function jsonPage(items: readonly string[], nextCursor: string | null): string {
  return `{"items":[${items.join(",")}],"next_cursor":${JSON.stringify(nextCursor)}}`;
}
