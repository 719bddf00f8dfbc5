// The contract of a topic as workers have published it.
import { check, payloadError } from "../contracts/validate.ts";
import type { Store } from "../store/store.ts";
import { jsonSchemaValidator } from "./json-schema.ts";
import { publishedUse } from "./published-use.ts";

/**
 * Checks what is to be published against what a worker has published of the topic, if any has: by an automation that declares its use. Throws
 * `FLEET_PAYLOAD_INVALID`.
 */
export async function checkEvent(store: Store, topic: string, payload: unknown): Promise<void> {
  const schema = (await publishedUse(store, "topic", topic))?.schema;
  if (schema === undefined || schema === null) return;
  const where = `event "${topic}"`;
  const checked = await check(jsonSchemaValidator(where, schema), payload);
  if (!checked.ok) throw payloadError(where, checked.issues);
}
