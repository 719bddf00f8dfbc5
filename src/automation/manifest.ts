import { checkLabels } from "../contracts/labels.ts";
import { isPoolContract, type PoolContract } from "../contracts/pool.ts";
import { inputJsonSchema } from "../contracts/schema/json-schema.ts";
import type { JsonSchema } from "../contracts/schema/standard.ts";
import type { ContractUse, Manifest, UseDirection } from "../protocol/manifest.ts";
import { declaredSpecs } from "../primitives/schedule-spec.ts";
import type { Automation } from "./definition.ts";
import type { Used } from "./definition-options.ts";

/** The manifest of a definition; `version` is the content hash of the code it came from. */
export function manifestOf(automation: Automation, version: string): Manifest {
  const { name, kind, output, options } = automation;
  const tasks = kind === "batch" ? automation.tasks : undefined;
  const where = `automation "${name}"`;
  return {
    name,
    kind,
    version,
    configSchema: options.config === undefined ? null : inputJsonSchema(`${where}: config`, options.config),
    stateSchema: options.state === undefined ? null : inputJsonSchema(`${where}: state`, options.state),
    output:
      output === undefined
        ? null
        : {
            stream: output.name,
            schema: output.jsonSchema,
            maxLength: output.options.maxLength,
            ttlSeconds: output.options.ttlSeconds,
            maxPayloadBytes: output.options.maxPayloadBytes,
          },
    tasks:
      tasks === undefined
        ? null
        : {
            queue: tasks.name,
            schema: tasks.jsonSchema,
            resultSchema: tasks.resultJsonSchema,
            options: tasks.options,
          },
    uses: Object.fromEntries(
      Object.entries(options.uses ?? {}).map(([direction, used]) => [
        direction as UseDirection,
        used.map(contractUse),
      ]),
    ),
    liveConfig: options.onConfig !== undefined,
    ...(options.stuckSeconds === undefined ? {} : { stuckSeconds: options.stuckSeconds }),
    ...(automation.kind === "batch" && automation.options.schedules !== undefined
      ? { schedules: declaredSpecs(automation.tasks, automation.options.schedules) }
      : {}),
    ...(options.labels === undefined ? {} : { labels: checkLabels(options.labels, `${where}: labels`) }),
    ...(options.recycle === undefined ? {} : { recycle: options.recycle }),
  };
}

function contractUse(used: Used): ContractUse {
  return {
    kind: used.kind,
    name: used.name,
    schema: "jsonSchema" in used ? (used.jsonSchema as JsonSchema) : null,
    ...(isPoolContract(used) ? { pool: poolUse(used) } : {}),
  };
}

function poolUse({ tagsJsonSchema, options, refill }: PoolContract): ContractUse["pool"] {
  const refillQueue = refill?.submit.name;
  return { tagsSchema: tagsJsonSchema, options, ...(refillQueue === undefined ? {} : { refillQueue }) };
}
