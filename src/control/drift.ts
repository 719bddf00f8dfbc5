import { workerState, type WorkerRecord } from "../protocol/status.ts";

/** An automation of which live workers have different versions. */
export interface Drift {
  automation: string;
  /** Sorted; each with the workers that have it. */
  versions: { version: string; workers: string[] }[];
}

type Known = Pick<WorkerRecord, "id" | "draining" | "expiresAt" | "known">;

/**
 * Which automations differ between live workers. That is so during each roll-out; where it stays, somebody was forgotten. Workers of a
 * version of Fleet that does not tell count as none. Pure.
 */
export function driftOf(workers: readonly Known[], now: number): Drift[] {
  const names = new Set(workers.flatMap(({ known = {} }) => Object.keys(known)));
  return [...names]
    .toSorted((a, b) => (a < b ? -1 : 1))
    .map((automation) => ({ automation, versions: versionsOf(automation, workers, now) }))
    .filter(({ versions }) => versions.length > 1);
}

/** Which versions of one automation live workers have. */
export function versionsOf(automation: string, workers: readonly Known[], now: number): Drift["versions"] {
  const found = new Map<string, string[]>();
  for (const worker of workers) {
    const { known = {} } = worker;
    if (workerState(worker, now) === "offline" || !Object.hasOwn(known, automation)) continue;
    const version = known[automation]?.version ?? "";
    found.set(version, [...(found.get(version) ?? []), worker.id]);
  }
  return [...found]
    .map(([version, ids]) => ({ version, workers: ids.toSorted() }))
    .toSorted((a, b) => (a.version < b.version ? -1 : 1));
}

/** In words, as in `w1, w2 have 1f2e3d4c, w3 has 9a8b7c6d`. */
export function versionWords(versions: Drift["versions"]): string {
  return versions
    .map(({ version, workers }) => {
      const named = `${workers.slice(0, 5).join(", ")}${workers.length > 5 ? ` and ${workers.length - 5} more` : ""}`;
      return `${named} ${workers.length === 1 ? "has" : "have"} ${version.slice(0, 8)}`;
    })
    .join(", ");
}
