import { createHash } from "node:crypto";

/** Longer than any check takes, with its pauses. */
const WEEK = 7 * 86_400;

/**
 * Options of a task that is to be run once per address and check, also when the first has finished long ago: a page that a thousand others
 * point to is read once. A hash, because an address may be longer than a key.
 */
export function once(check: string, url: string) {
  return {
    key: new URL(url).host,
    dedupeKey: createHash("sha256").update(`${check} ${url}`).digest("base64url"),
    onDuplicate: "throttle",
    dedupeSeconds: WEEK,
  } as const;
}
