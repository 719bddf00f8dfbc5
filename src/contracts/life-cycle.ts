import { describe } from "./options.ts";
import type { JsonSchema, Schema } from "./schema/standard.ts";
import { topicContract, type TopicContract } from "./topic.ts";

/** Whom an event is about. */
export interface SlotOfEvent {
  automation: string;
  slot: number;
  worker: string;
}

export interface ContractBroken {
  /** `"stream"`, `"queue"`, `"pool"` or `"topic"`, and its name. */
  kind: string;
  name: string;
  /** The automation that gives, and the content hash of its code. */
  giver: string;
  giverVersion: string;
  taker: string;
  takerVersion: string;
  /** JSON Pointer into the payload; `*` stands for any element or key. */
  pointer: string;
  reason: string;
}

export interface SlotEnded extends SlotOfEvent {
  /** How the run ended: `"stopped"`, `"returned"`, `"failed"`, `"store-lost"`, `"config-invalid"`, … */
  outcome: string;
  cause: string | null;
  error: string | null;
}

type Field = "text" | "number" | "text or null" | "list of texts";
type Fields<T> = { readonly [K in keyof T]-?: Field };

const TYPES: Record<Field, object> = {
  text: { type: "string" },
  number: { type: "number" },
  "text or null": { type: ["string", "null"] },
  "list of texts": { type: "array", items: { type: "string" } },
};

const SLOT: Fields<SlotOfEvent> = { automation: "text", slot: "number", worker: "text" };
const ENDED: Fields<SlotEnded> = {
  ...SLOT,
  outcome: "text",
  cause: "text or null",
  error: "text or null",
};

/** What the framework itself publishes. For people and dashboards: nothing in Fleet depends on them. */
export const FLEET_TOPICS = Object.freeze({
  /** A worker has started. */
  workerOnline: own<{ worker: string; host: string }>("fleet.worker.online", {
    worker: "text",
    host: "text",
  }),
  /** A worker has signed off (`reason` is `"drain"`), or was lost (`"lost"`): it is not heard of any more. */
  workerOffline: own<{ worker: string; reason: string }>("fleet.worker.offline", {
    worker: "text",
    reason: "text",
  }),
  /** User code of a slot starts. */
  slotStarted: own<SlotOfEvent>("fleet.slot.started", SLOT),
  /** A run ended in order. */
  slotStopped: own<SlotEnded>("fleet.slot.stopped", ENDED),
  /** A run failed, its process died, or its config does not fit. */
  slotCrashed: own<SlotEnded>("fleet.slot.crashed", ENDED),
  /** A slot's restart budget is spent; it stays down. */
  slotCircuitOpened: own<SlotOfEvent & { reason: string }>("fleet.slot.circuit-opened", {
    ...SLOT,
    reason: "text",
  }),
  /** Somebody has changed an automation's config. */
  configPatched: own<{ automation: string; generation: number; by: string; note: string | null }>(
    "fleet.config.patched",
    { automation: "text", generation: "number", by: "text", note: "text or null" },
  ),
  /** A slot has refused a new config and goes on with the one that it has. */
  configRejected: own<SlotOfEvent & { generation: number; reason: string }>("fleet.config.rejected", {
    ...SLOT,
    generation: "number",
    reason: "text",
  }),
  /** A config on trial was taken back: its slots crash more than the others, refuse it or are blocked by it. */
  configCanaryStopped: own<{ automation: string; generation: number; reason: string }>(
    "fleet.config.canary-stopped",
    { automation: "text", generation: "number", reason: "text" },
  ),
  /** What one automation gives through a contract may be nothing that another one takes. */
  contractBroken: own<ContractBroken>("fleet.contract.broken", {
    kind: "text",
    name: "text",
    giver: "text",
    giverVersion: "text",
    taker: "text",
    takerVersion: "text",
    pointer: "text",
    reason: "text",
  }),
  /** Workers have different versions of an automation. */
  versionDrift: own<{ automation: string; versions: string[]; workers: string[] }>("fleet.version.drift", {
    automation: "text",
    versions: "list of texts",
    workers: "list of texts",
  }),
});

function own<T extends object>(name: string, fields: Fields<T>): TopicContract<Schema<T>> {
  return topicContract(name, fieldsSchema(fields), jsonOf(fields), {});
}

function jsonOf(fields: Readonly<Record<string, Field>>): JsonSchema {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, TYPES[field]])),
    required: Object.keys(fields),
  };
}

/** A schema of plain fields; others are let through, so that what a later version adds breaks no subscriber. */
function fieldsSchema<T extends object>(fields: Fields<T>): Schema<T> {
  const validate = (value: unknown) => {
    if (typeof value !== "object" || value === null)
      return { issues: [{ message: `must be an object, got ${describe(value)}` }] };
    const issues = Object.entries<Field>(fields).flatMap(([name, field]) => {
      const got = (value as Record<string, unknown>)[name];
      return fits(field, got) ? [] : [{ path: [name], message: `must be a ${field}, got ${describe(got)}` }];
    });
    return issues.length > 0 ? { issues } : { value: value as T };
  };
  return { "~standard": { version: 1, vendor: "fleet", validate } };
}

function fits(field: Field, value: unknown): boolean {
  if (field === "number") return typeof value === "number";
  if (field === "list of texts") return Array.isArray(value) && value.every((one) => typeof one === "string");
  return typeof value === "string" || (field === "text or null" && value === null);
}
