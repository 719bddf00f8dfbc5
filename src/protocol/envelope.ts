/** What a stream entry is on the wire. The optional fields are left out when they say nothing. */
export interface Envelope<T = unknown> {
  id: string;
  /** The slot that emitted it; null when pushed from outside an automation. */
  slotId: number | null;
  /** Store time of the push, Unix milliseconds. */
  ts: number;
  payload: T;
}

/**
 * An entry before the store has stamped it. The stored text is `head + ts + tail`, so the store adds its own time
 * without ever parsing a payload.
 */
export interface EntryTemplate {
  id: string;
  head: string;
  tail: string;
}

/** What JSON writes as it is. */
const PLAIN = /^[\w-]+$/;

/** `payloadJson` must be JSON text already. */
export function entryTemplate(id: string, slotId: number | null, payloadJson: string): EntryTemplate {
  return {
    id,
    head: `{"id":${PLAIN.test(id) ? `"${id}"` : JSON.stringify(id)},"slot_id":${slotId},"ts":`,
    tail: `,"payload":${payloadJson}}`,
  };
}

export type Decoded = { ok: true; envelope: Envelope } | { ok: false; reason: string };

/** Reads a stored entry. Never throws: whatever is no envelope comes back with the reason. */
export function decodeEnvelope(raw: string): Decoded {
  let value: unknown;
  try {
    value = JSON.parse(raw);
  } catch {
    return { ok: false, reason: "not JSON" };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return { ok: false, reason: "not an envelope" };
  const { id, slot_id: slotId, ts, payload, enc } = value as Record<string, unknown>;
  if (typeof id !== "string") return { ok: false, reason: "envelope without a text `id`" };
  if (typeof ts !== "number") return { ok: false, reason: "envelope without a number `ts`" };
  if (slotId !== null && typeof slotId !== "number")
    return { ok: false, reason: "envelope whose `slot_id` is neither a number nor null" };
  if (!("payload" in value)) return { ok: false, reason: "envelope without `payload`" };
  if (enc !== undefined)
    return { ok: false, reason: `payload codec ${JSON.stringify(enc)} is unknown to this version` };
  return { ok: true, envelope: { id, slotId, ts, payload } };
}

/** A stored entry as JSON: byte for byte as it stands, or as a text where it is no JSON at all (some other program wrote it). */
export function entryAsJson(raw: string): string {
  try {
    JSON.parse(raw);
    return raw;
  } catch {
    return JSON.stringify(raw);
  }
}
