import type { Place, RecordKind } from "../damage.ts";

/** The fields of a hash. */
export function hashPlace(kind: RecordKind, key: string, of?: string): Place {
  return {
    kind,
    ...(of === undefined ? {} : { of }),
    where: (field) => ({
      where: `key ${key}, field ${field}`,
      remove: `HDEL ${JSON.stringify(key)} ${JSON.stringify(field)}`,
    }),
  };
}

/** A key that is one record. */
export function keyPlace(kind: RecordKind, key: string): Place {
  return { kind, where: () => ({ where: `key ${key}`, remove: `DEL ${JSON.stringify(key)}` }) };
}

/** The members of a sorted set, each with a score of its own. */
export function scoredPlace(kind: RecordKind, key: string, of: string): Place {
  return {
    kind,
    of,
    where: (score) => ({
      where: `key ${key}, score ${score}`,
      remove: `ZREMRANGEBYSCORE ${JSON.stringify(key)} ${score} ${score}`,
    }),
  };
}
