import type { DamageBook } from "../damage.ts";
import type { Identity } from "./identity.ts";
import type { Keys } from "./keys.ts";
import type { Link } from "./link.ts";
import type { RunScript } from "./scripts.ts";
import type { StoreClock } from "./store-clock.ts";
import type { Subscriber } from "./subscriber.ts";

/** What streams, events and registry are made from. */
export interface RedisParts {
  link: Link;
  run: RunScript;
  keys: Keys;
  identity: Identity;
  subscriber: Subscriber;
  /** What of the records cannot be read. */
  book: DamageBook;
  clock: StoreClock;
}

/** A flat list `a, b, a, b, …` (a hash as a script returns it) as pairs. */
export function pairs(flat: readonly string[]): [string, string][] {
  const found: [string, string][] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) found.push([flat[i] as string, flat[i + 1] as string]);
  return found;
}
