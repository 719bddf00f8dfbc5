/** One page of a list that is at hand as a whole, in the order of its keys. The cursor is the last key of the page before. */
export function pageBy<T>(
  all: readonly T[],
  keyOf: (item: T) => string,
  { limit, cursor }: { limit: number; cursor?: string | undefined },
): { items: T[]; next_cursor: string | null } {
  const rest = all
    .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
    .filter((item) => cursor === undefined || keyOf(item) > cursor);
  const items = rest.slice(0, limit);
  const last = items.at(-1);
  return { items, next_cursor: rest.length > limit && last !== undefined ? keyOf(last) : null };
}
