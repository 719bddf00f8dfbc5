import { checkSize, encodePayload } from "../contracts/json.ts";
import { checkOptions, chosenId, refuse, type OptionRules } from "../contracts/options.ts";
import type { PoolContract } from "../contracts/pool.ts";
import { tagTexts } from "../contracts/pool-tags.ts";
import { ttlSeconds } from "../contracts/queue.ts";
import type { InferInput, InferOutput, Schema } from "../contracts/schema/standard.ts";
import { check, payloadError } from "../contracts/validate.ts";
import { uuidv7 } from "../internal/uuid.ts";
import type { ItemRecord, ItemTags, NewItem } from "../protocol/pool.ts";
import type { PoolItem } from "./pool.ts";
import { toMs } from "./queue-options.ts";

const REMEDY = "put a reference to the data instead, or raise maxPayloadBytes in the contract";

interface Given {
  payload: unknown;
  tags: unknown;
  ttlSeconds: number;
  id: string;
}

const asGiven = (value: unknown): unknown => value;
const RULES: OptionRules<Given> = {
  payload: asGiven,
  tags: asGiven,
  ttlSeconds,
  id: chosenId,
};

/** An item as the store takes it: payload and tags checked, the tags' defaults filled in. */
export async function newItem(contract: PoolContract, where: string, given: unknown): Promise<NewItem> {
  if (typeof given !== "object" || given === null || Array.isArray(given))
    return refuse(where, "an object with `payload`", given);
  const item = checkOptions<Given>(where, given, RULES);
  return {
    id: item.id ?? uuidv7(),
    payload: await payloadText(contract, where, item.payload),
    ...(await tagsOf(contract, where, item.tags)),
    ttlMs: toMs(item.ttlSeconds ?? 0),
  };
}

export async function payloadText(contract: PoolContract, where: string, payload: unknown): Promise<string> {
  const what = `${where}: payload`;
  const json = encodePayload(what, payload);
  // First: what a schema has to say of one that is far too large may be far too much.
  checkSize(what, json, contract.options.maxPayloadBytes, REMEDY);
  const checked = await check(contract.payload, payload);
  if (!checked.ok) throw payloadError(what, checked.issues);
  return json;
}

/** Tags are kept in the schema's output form: what is matched must bear the defaults. */
export async function tagsOf(
  contract: PoolContract,
  where: string,
  given: unknown = {},
): Promise<{ tags: ItemTags; tagsJson: string }> {
  const what = `${where}: tags`;
  if (contract.tags === undefined) {
    if (typeof given !== "object" || given === null || Object.keys(given).length > 0)
      return refuse(what, "left out, as this pool's contract has no tags", given);
    return { tags: {}, tagsJson: "{}" };
  }
  const checked = await check(contract.tags, given);
  if (!checked.ok) throw payloadError(what, checked.issues);
  const value: unknown = checked.value;
  if (typeof value !== "object" || value === null) return refuse(what, "an object of tags", value);
  return { tags: tagTexts(where, value), tagsJson: encodePayload(what, value) };
}

export function itemView<P extends Schema, T extends Schema>(record: ItemRecord): PoolItem<P, T> {
  const { payload, tagsJson, ...facts } = record;
  return {
    ...facts,
    payload: JSON.parse(payload) as InferInput<P>,
    tags: JSON.parse(tagsJson) as InferOutput<T>,
  };
}
