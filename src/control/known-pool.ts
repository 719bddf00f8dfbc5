// The contract of a pool as workers have published it: what is put is checked against that, without any user code.
import { checkName } from "../contracts/name.ts";
import { POOL_DEFAULTS, type PoolContract } from "../contracts/pool.ts";
import type { JsonSchema, Schema } from "../contracts/schema/standard.ts";
import { check } from "../contracts/validate.ts";
import { FleetError } from "../errors.ts";
import type { ContractUse } from "../protocol/manifest.ts";
import type { PoolStats } from "../store/pool-store.ts";
import type { Store } from "../store/store.ts";
import { jsonSchemaValidator } from "./json-schema.ts";
import { notFound } from "./not-found.ts";
import { publishedUse } from "./published-use.ts";

export interface KnownPool {
  name: string;
  /** Undefined where nobody has used it yet. */
  stats: PoolStats | undefined;
  /** Undefined where no worker is known that declares its use. */
  published: ContractUse | undefined;
}

export async function findPool(store: Store, name: string): Promise<KnownPool> {
  checkName("pool", name);
  const [stats, published] = await Promise.all([
    store.pools.stats({ pool: name }),
    publishedUse(store, "pool", name),
  ]);
  if (stats !== undefined || published !== undefined) return { name, stats, published };
  throw notFound("pool", name, await store.pools.list(), { others: '"fleet pool ls" lists all' });
}

/** A contract by which items can be put. */
export function contractOf({ name, stats, published }: KnownPool, unchecked: boolean): PoolContract {
  const options = published?.pool?.options ?? {
    ...POOL_DEFAULTS,
    maxPayloadBytes: stats?.settings.maxPayloadBytes ?? POOL_DEFAULTS.maxPayloadBytes,
  };
  const shared = { kind: "pool", name, options, refill: undefined } as const;
  if (unchecked)
    return { ...shared, payload: ANY, tags: ANY, jsonSchema: {}, tagsJsonSchema: { type: "object" } };
  if (published?.schema === undefined || published.schema === null)
    throw new FleetError(
      "FLEET_USAGE",
      `no worker has published what items of "${name}" look like, so they cannot be checked; start a worker with an automation that declares uses: { put: [CONTRACT] } or { claim: [CONTRACT] }, or say --unchecked`,
    );
  const tagsSchema = published.pool?.tagsSchema ?? null;
  return {
    ...shared,
    payload: jsonSchemaValidator(`pool "${name}"`, published.schema),
    tags: tagsSchema === null ? undefined : tagsOf(name, tagsSchema),
    jsonSchema: published.schema,
    tagsJsonSchema: tagsSchema,
  };
}

const ANY: Schema = {
  "~standard": { version: 1, vendor: "fleet", validate: (value) => ({ value }) },
};

/** Checks tags and fills in their defaults, as the schema itself would. */
function tagsOf(pool: string, json: JsonSchema): Schema {
  const inner = jsonSchemaValidator(`pool "${pool}": tags`, json);
  const properties = (json["properties"] ?? {}) as Record<string, { default?: unknown }>;
  const validate = async (value: unknown) => {
    const checked = await check(inner, value);
    if (!checked.ok)
      return {
        issues: checked.issues.map(({ pointer, message }) => ({
          path: pointer.split("/").slice(1),
          message,
        })),
      };
    const filled: Record<string, unknown> = { ...(value as object) };
    for (const [tag, { default: otherwise }] of Object.entries(properties))
      if (filled[tag] === undefined && otherwise !== undefined) filled[tag] = otherwise;
    return { value: filled };
  };
  return { "~standard": { version: 1, vendor: "fleet", validate } };
}
