import { byName } from "../internal/by-name.ts";
import type { Manifest } from "../protocol/manifest.ts";
import type { DamageBook, Place } from "./damage.ts";
import { manifestList, manifestOf } from "./records.ts";

/** By worker: of a list in which one manifest cannot be read the others count. */
export function readManifests(
  book: DamageBook,
  place: Place,
  records: readonly (readonly [worker: string, text: string])[],
): Record<string, Manifest[]> {
  const found = byName<Manifest[]>([]);
  book.look(place, records, (text, worker) => {
    const manifests: Manifest[] = [];
    let wrong: { error: unknown } | undefined;
    for (const value of manifestList(text)) {
      try {
        manifests.push(manifestOf(value));
      } catch (error) {
        wrong ??= { error };
      }
    }
    found[worker] = manifests;
    if (wrong !== undefined) throw wrong.error;
  });
  return found;
}
