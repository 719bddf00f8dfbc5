// Routes of automations: what there is, how it stands, and what people ask of it.
import { z } from "zod";
import { route } from "../route.ts";
import { json, jsonObject, pageOf, paging, time } from "../shapes.ts";

const TAG = "Automations";

const slot = z
  .object({
    slot_id: z.number(),
    state: z.string(),
    worker: z.string().nullable(),
    generation: z.number().nullable(),
    reason: z.string().nullable(),
    last_error: z.string().nullable(),
    restarts: z.number(),
    iterations: z.number(),
  })
  .loose();

const summary = z.object({
  name: z.string(),
  kind: z.enum(["continuous", "batch"]).nullable().describe("null while no worker has published it"),
  versions: z.array(z.object({ version: z.string(), workers: z.array(z.string()) })),
  slots: z.number().nullable().describe("how many are desired; null while nothing is deployed"),
  running: z.number(),
  paused: z.boolean(),
  generation: z.number().nullable(),
});

const schema = z.record(z.string(), z.unknown()).nullable();

const canary = z
  .object({
    size: z.union([z.object({ share: z.number() }), z.object({ slots: z.number() })]),
    config: json,
    since: time,
    generation: z.number().describe("with which it began"),
    by: z.string(),
  })
  .nullable()
  .describe("a config on trial in some of the slots; null where there is none");

const detail = summary.extend({
  config: json.nullable(),
  config_schema: schema,
  state_schema: schema,
  output: z
    .object({ stream: z.string(), schema, max_length: z.number(), ttl_seconds: z.number() })
    .nullable(),
  tasks: z.object({ queue: z.string(), payload_schema: schema, result_schema: schema }).nullable(),
  uses: z.array(z.object({ direction: z.string(), kind: z.string(), name: z.string() })),
  labels: z.record(z.string(), z.string()),
  overrides: z.array(z.object({ labels: z.record(z.string(), z.string()), config: json })),
  canary,
  canary_stopped: z
    .object({ at: time, seconds: z.number(), generation: z.number(), reason: z.string() })
    .nullable()
    .describe("a canary that was stopped by itself, until something of the config changes"),
  slot_list: z.array(slot),
});

const changed = z.object({
  automation: z.string(),
  changed: z.boolean(),
  generation: z.number(),
  slots: z.number(),
  paused: z.boolean(),
});

const configChange = z.object({
  automation: z.string(),
  changed: z.boolean(),
  generation: z.number(),
  config: json.nullable(),
  diff: z.array(z.object({ pointer: z.string(), before: json.optional(), after: json.optional() })),
  checked: z
    .array(z.string())
    .describe(
      "versions of the automation that it was checked against; none while no worker has published it",
    ),
  warnings: z
    .array(z.string())
    .describe("what may not be meant: an override for labels that no live worker bears"),
});

const historyEntry = z.object({
  generation: z.number(),
  config: json.nullable(),
  overrides: z.array(z.object({ labels: z.record(z.string(), z.string()), config: json })),
  canary,
  at: time,
  by: z.string(),
  note: z.string().nullable(),
});

export const AUTOMATION_ROUTES = {
  listAutomations: route({
    method: "GET",
    path: "/automations",
    tag: TAG,
    summary: "All automations, with what is desired and how many slots run",
    query: z.object(paging),
    status: 200,
    answer: pageOf(summary),
  }),
  getAutomation: route({
    method: "GET",
    path: "/automations/:name",
    tag: TAG,
    summary: "One automation: manifest, schemas, desired and observed state, slots",
    status: 200,
    answer: detail,
  }),
  patchConfig: route({
    method: "PATCH",
    path: "/automations/:name/config",
    tag: TAG,
    summary: "Changes the config",
    description:
      "The body is a JSON merge patch (RFC 7396) of the config, or with `replace` the whole config. It is checked before anything changes, and reaches all running slots within two seconds.",
    query: z.object({
      replace: z.stringbool().default(false).describe("the body is the whole config"),
      labels: z
        .string()
        .max(1000)
        .optional()
        .describe("an override for workers with these labels, as in `region=eu,gpu=true`"),
      canary: z.coerce
        .number()
        .gt(0)
        .max(1)
        .optional()
        .describe("only this share of the slots gets it, until it is promoted or stopped"),
      note: z.string().max(200).optional(),
    }),
    body: jsonObject,
    headers: ["ifMatch"],
    status: 200,
    answer: configChange,
  }),
  configHistory: route({
    method: "GET",
    path: "/automations/:name/config/history",
    tag: TAG,
    summary: "Configs that were, newest first",
    query: z.object(paging),
    status: 200,
    answer: pageOf(historyEntry),
  }),
  rollbackConfig: route({
    method: "POST",
    path: "/automations/:name/config/rollback",
    tag: TAG,
    summary: "Makes the config of an earlier generation the present one, as a new generation",
    body: z.strictObject({ generation: z.int().min(1) }),
    headers: ["ifMatch"],
    status: 200,
    answer: configChange,
  }),
  promoteCanary: route({
    method: "POST",
    path: "/automations/:name/config/canary/promote",
    tag: TAG,
    summary: "Gives the config of the canary to all slots",
    headers: ["ifMatch"],
    status: 200,
    answer: configChange,
  }),
  stopCanary: route({
    method: "POST",
    path: "/automations/:name/config/canary/stop",
    tag: TAG,
    summary: "Drops the config of the canary",
    headers: ["ifMatch"],
    status: 200,
    answer: configChange,
  }),
  setSlots: route({
    method: "PUT",
    path: "/automations/:name/slots",
    tag: TAG,
    summary: "Says how many slots there should be",
    body: z.strictObject({ count: z.int().min(0).max(10_000) }),
    status: 200,
    answer: changed.extend({ count: z.number().describe("how many are desired now; the same as `slots`") }),
  }),
  pauseAutomation: route({
    method: "POST",
    path: "/automations/:name/pause",
    tag: TAG,
    summary: "Ends all slots until it is resumed",
    status: 200,
    answer: changed,
  }),
  resumeAutomation: route({
    method: "POST",
    path: "/automations/:name/resume",
    tag: TAG,
    summary: "Runs a paused automation again",
    status: 200,
    answer: changed,
  }),
  recycleAutomation: route({
    method: "POST",
    path: "/automations/:name/recycle",
    tag: TAG,
    summary: "Moves slots to fresh processes, one by one; closes open circuits",
    body: z.strictObject({ slot_id: z.int().min(0).max(9999).optional() }),
    bodyOptional: true,
    status: 200,
    answer: changed,
  }),
};
