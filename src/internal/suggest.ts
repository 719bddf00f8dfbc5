/** The known name nearest to `given` (Levenshtein distance at most 3 and under half its length), or undefined. */
export function nearest(given: string, known: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.min(3, Math.floor(given.length / 2)) + 1;
  for (const name of known) {
    const d = distance(given.toLowerCase(), name.toLowerCase());
    if (d < bestDistance) {
      best = name;
      bestDistance = d;
    }
  }
  return best;
}

function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}

/** Names that a hint lists at most. */
const MOST_NAMES = 20;

/** Which name may have been meant; else what there is: `none` or `others` in words, where they are not simply listed. */
export function hintFor(
  name: string,
  names: readonly string[],
  { none = "there are none yet", others }: { none?: string; others?: string } = {},
): string {
  const near = nearest(name, names);
  if (near !== undefined) return `did you mean "${near}"?`;
  if (names.length === 0) return none;
  if (others !== undefined) return others;
  const left = names.length - MOST_NAMES;
  return `there are: ${names.slice(0, MOST_NAMES).join(", ")}${left > 0 ? ` and ${left} more` : ""}`;
}
