// Routes of a batch automation's tasks.
import { z } from "zod";
import { route } from "../route.ts";
import { json, pageOf, paging, time, waitSeconds } from "../shapes.ts";

const TAG = "Tasks";
/** Most tasks of one submission. */
const MOST = 1000;
const YEAR = 365 * 86_400;

const STATES = ["scheduled", "waiting", "active", "completed", "failed", "cancelled"] as const;

const options = {
  id: z.string().min(1).max(128).optional().describe("a repeat with the same id is the same task"),
  delay_seconds: z
    .number()
    .min(0)
    .max(10 * YEAR)
    .optional(),
  run_at: time.optional(),
  priority: z.int().min(-1000).max(1000).optional(),
  key: z.string().min(1).max(256).optional(),
  dedupe_key: z.string().min(1).max(256).optional(),
  on_duplicate: z.enum(["ignore", "replace", "throttle", "debounce", "supersede"]).optional(),
  dedupe_seconds: z.number().gt(0).max(YEAR).optional(),
  max_attempts: z.int().min(1).max(1000).optional(),
  timeout_seconds: z.number().min(0).optional(),
  ttl_seconds: z.number().min(0).optional(),
};

export const newTask = z.strictObject({ payload: json, ...options });

export const taskShape = z.object({
  id: z.string(),
  queue: z.string(),
  state: z.enum(STATES),
  payload: json,
  result: json.nullable(),
  reason: z.string().nullable().describe("why it is in the dead letter"),
  error: z.string().nullable(),
  attempts: z.number(),
  crashes: z.number(),
  interruptions: z.number(),
  max_attempts: z.number(),
  priority: z.number(),
  key: z.string().nullable(),
  dedupe_key: z.string().nullable(),
  submitted_at: time,
  due_at: time,
  expires_at: time.nullable(),
  started_at: time.nullable(),
  finished_at: time.nullable(),
  worker: z.string().nullable(),
  cancelling: z.boolean(),
});

export const TASK_ROUTES = {
  submitTasks: route({
    method: "POST",
    path: "/automations/:name/tasks",
    tag: TAG,
    summary: "Submits one task, or several as a whole",
    description:
      "Each payload is checked against the published JSON Schema, then by a live process of the automation, which knows what a JSON Schema cannot say. Where none is alive, `validated` is `structural`, and a task that does not fit goes to the dead letter when it is taken.",
    body: z.union([newTask, z.strictObject({ tasks: z.array(newTask).min(1).max(MOST) })]),
    maxBodyBytes: 16 * 1024 * 1024,
    headers: ["idempotencyKey"],
    status: 201,
    answer: z.object({
      tasks: z.array(z.object({ id: z.string(), outcome: z.string() })),
      ids: z.array(z.string()),
      validated: z.enum(["full", "structural"]),
    }),
  }),
  listTasks: route({
    method: "GET",
    path: "/automations/:name/tasks",
    tag: TAG,
    summary: "Tasks of one state",
    query: z.object({ state: z.enum(STATES).default("waiting"), ...paging }),
    status: 200,
    answer: pageOf(taskShape),
  }),
  getTask: route({
    method: "GET",
    path: "/automations/:name/tasks/:id",
    tag: TAG,
    summary: "One task as it stands",
    status: 200,
    answer: taskShape,
  }),
  taskResult: route({
    method: "GET",
    path: "/automations/:name/tasks/:id/result",
    tag: TAG,
    summary: "What became of a task; waits for its end",
    description: "`done` is false where it has not ended within `wait_seconds`: ask again.",
    query: z.object({ wait_seconds: waitSeconds(60) }),
    status: 200,
    answer: z.object({
      id: z.string(),
      done: z.boolean(),
      state: z.enum(STATES),
      result: json.nullable(),
      reason: z.string().nullable(),
      error: z.string().nullable(),
    }),
  }),
  retryTask: route({
    method: "POST",
    path: "/automations/:name/tasks/:id/retry",
    tag: TAG,
    summary: "Runs a failed or cancelled task again",
    status: 200,
    answer: z.object({ id: z.string(), outcome: z.string() }),
  }),
  cancelTask: route({
    method: "POST",
    path: "/automations/:name/tasks/:id/cancel",
    tag: TAG,
    summary: "Cancels a task; one that runs is asked to end",
    status: 200,
    answer: z.object({ id: z.string(), outcome: z.string() }),
  }),
};
