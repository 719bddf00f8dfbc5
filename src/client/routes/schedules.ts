// Routes of what submits tasks by itself.
import { z } from "zod";
import { route } from "../route.ts";
import { json, pageOf, paging, time } from "../shapes.ts";

const TAG = "Schedules";

const schedule = z
  .object({
    id: z.string(),
    queue: z.string(),
    timing: z
      .object({
        cron: z.string().optional(),
        timezone: z.string().optional(),
        every_seconds: z.number().optional(),
        at: time.optional(),
      })
      .describe("exactly one of `cron` (with its time zone), `every_seconds` and `at`"),
    payload: json,
    paused: z.boolean(),
    overlap: z.enum(["allow", "skip"]),
    missed: z.enum(["skip", "once", "all"]),
    origin: z
      .enum(["definition", "runtime"])
      .describe("who made it: the automation, or somebody at run time"),
    next_at: time.nullable(),
    last_tick: time.nullable(),
  })
  .loose();

const done = z.object({ id: z.string(), paused: z.boolean(), changed: z.boolean() });

export const SCHEDULE_ROUTES = {
  listSchedules: route({
    method: "GET",
    path: "/automations/:name/schedules",
    tag: TAG,
    summary: "Schedules of an automation, with their next tick",
    query: z.object(paging),
    status: 200,
    answer: pageOf(schedule),
  }),
  putSchedule: route({
    method: "POST",
    path: "/automations/:name/schedules",
    tag: TAG,
    summary: "Makes a schedule, or changes the one of that id",
    description:
      "Exactly one of `cron`, `every_seconds` and `at` says when. The payload is checked as that of a task. One that a definition declares is its owner's no more.",
    body: z.strictObject({
      id: z.string().min(1).max(128),
      cron: z.string().max(128).optional(),
      timezone: z.string().max(64).optional(),
      every_seconds: z.number().gt(0).optional(),
      at: time.optional(),
      payload: json,
      overlap: z.enum(["allow", "skip"]).optional(),
      missed: z.enum(["skip", "once", "all"]).optional(),
      missed_cap: z.int().min(1).max(1000).optional().describe("most ticks that `all` makes up for"),
      jitter_seconds: z.number().min(0).optional(),
      priority: z.int().min(-1000).max(1000).optional(),
      key: z.string().min(1).max(200).optional(),
      max_attempts: z.int().min(1).max(1000).optional(),
      timeout_seconds: z.number().min(0).optional(),
      ttl_seconds: z.number().min(0).optional(),
    }),
    status: 201,
    answer: schedule,
  }),
  runSchedule: route({
    method: "POST",
    path: "/automations/:name/schedules/:id/run",
    tag: TAG,
    summary: "Submits a task of it now; its ticks go on as they are",
    status: 201,
    answer: z.object({ task: z.string() }),
  }),
  pauseSchedule: route({
    method: "POST",
    path: "/automations/:name/schedules/:id/pause",
    tag: TAG,
    summary: "Lets its ticks pass by until it is resumed",
    status: 200,
    answer: done,
  }),
  resumeSchedule: route({
    method: "POST",
    path: "/automations/:name/schedules/:id/resume",
    tag: TAG,
    summary: "Counts its ticks again, from now on",
    status: 200,
    answer: done,
  }),
  removeSchedule: route({
    method: "DELETE",
    path: "/automations/:name/schedules/:id",
    tag: TAG,
    summary: "Removes it; one that a definition declares comes back with its worker",
    status: 204,
    answer: null,
  }),
};
