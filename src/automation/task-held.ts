/** What a process makes of the list of its claims as the store has them. Pure. */

export interface Held {
  id: string;
  token: string;
  cancelling: boolean;
}

/** Those of `tokens` that are lost: claimed before the list was made (`at`), and not on it. */
export function missing(tokens: readonly string[], held: readonly Held[], at: string): string[] {
  const listed = new Set(held.map(({ token }) => token));
  return tokens.filter((token) => !listed.has(token) && isLess(token, at));
}

/** Claims on the list that nobody here knows. */
export function strangers(held: readonly Held[], known: ReadonlySet<string>): Held[] {
  return held.filter(({ token }) => !known.has(token));
}

/** Tokens are whole numbers as decimal text, without leading zeros. */
function isLess(a: string, b: string): boolean {
  return a.length === b.length ? a < b : a.length < b.length;
}
