// The contract of a topic as workers have published it.
import { checkSize, encodePayload } from "../contracts/json.ts";
import { check, payloadError } from "../contracts/validate.ts";
import { MAX_EVENT_BYTES } from "../protocol/event.ts";
import type { Store } from "../store/store.ts";
import { jsonSchemaValidator } from "./json-schema.ts";
import { publishedUse } from "./published-use.ts";

/**
 * Checks what is to be published against what a worker has published of the topic, if any has: by an automation that declares its use. Throws
 * `FLEET_PAYLOAD_INVALID`, and first `FLEET_PAYLOAD_TOO_LARGE`: what a schema has to say of one that is far too large may be far too much.
 */
export async function checkEvent(store: Store, topic: string, payload: unknown): Promise<void> {
  const where = `event "${topic}"`;
  checkSize(where, encodePayload(where, payload), MAX_EVENT_BYTES);
  const schema = (await publishedUse(store, "topic", topic))?.schema;
  if (schema === undefined || schema === null) return;
  const checked = await check(jsonSchemaValidator(where, schema), payload);
  if (!checked.ok) throw payloadError(where, checked.issues);
}
