import type { z } from "zod";
import type { SCHEDULE_ROUTES } from "../../client/routes/schedules.ts";
import { findQueue } from "../../control/known-queue.ts";
import { findSchedule, nextTickOf } from "../../control/known-schedule.ts";
import { publishedContract } from "../../control/published-tasks.ts";
import { runNow } from "../../control/schedules.ts";
import { settingsOf } from "../../primitives/queue-settings.ts";
import { type ScheduleOptions, scheduleSpec } from "../../primitives/schedule-spec.ts";
import type { ScheduleRecord, ScheduleSpec } from "../../protocol/task.ts";
import type { Store } from "../../store/store.ts";
import { type Handlers, RawJson } from "../handler.ts";
import { notFound } from "../../control/not-found.ts";
import { pageBy } from "../pages.ts";
import { checkTasks, inBody, publishedOf } from "../payloads.ts";
import { jsonPage, jsonWith } from "../raw-json.ts";
import { knownOptions } from "../words.ts";

type Routes = typeof SCHEDULE_ROUTES;

export const SCHEDULE_HANDLERS: Handlers<keyof Routes> = {
  listSchedules: async ({ params: { name }, query }, { store }) => {
    await findQueue(store, name);
    const { now, schedules } = await store.queues.schedules({ queue: name });
    const page = pageBy(schedules, ({ spec }) => spec.id, query);
    return new RawJson(
      jsonPage(
        page.items.map((record) => textOf(name, record, now)),
        page.next_cursor,
      ),
    );
  },

  putSchedule: async ({ params: { name }, body, signal }, services) => {
    const { store } = services;
    const published = await publishedOf(store, name);
    const contract = publishedContract(published);
    let spec: ScheduleSpec;
    try {
      spec = await scheduleSpec(contract, body.id, optionsOf(body), "runtime");
    } catch (error) {
      throw knownOptions(inBody(error, "/payload"));
    }
    await checkTasks(services, published, [{ value: body.payload, pointer: "/payload" }], signal);
    await store.queues.declare({ queue: name, settings: settingsOf(contract), as: "guest" });
    const record = await store.queues.putSchedule({ queue: name, spec });
    return new RawJson(textOf(name, record, await store.now()));
  },

  runSchedule: async ({ params: { name, id } }, { store }) => {
    const { spec } = await scheduleOf(store, name, id);
    return { task: await runNow(store.queues, name, spec) };
  },
  pauseSchedule: ({ params: { name, id } }, { store }) => pause(store, name, id, true),
  resumeSchedule: ({ params: { name, id } }, { store }) => pause(store, name, id, false),

  removeSchedule: async ({ params: { name, id } }, { store }) => {
    await scheduleOf(store, name, id);
    await store.queues.removeSchedule({ queue: name, id });
    return undefined;
  },
};

/** Of a queue that is there, and may have nothing in the store yet. */
async function scheduleOf(store: Store, queue: string, id: string): Promise<ScheduleRecord> {
  const { stats } = await findQueue(store, queue);
  if (stats === undefined) throw notFound(`schedule of "${queue}" named`, id, []);
  return findSchedule(store, queue, id);
}

async function pause(
  store: Store,
  queue: string,
  id: string,
  paused: boolean,
): Promise<{ id: string; paused: boolean; changed: boolean }> {
  const record = await scheduleOf(store, queue, id);
  const changed = record.paused !== paused;
  if (changed && (await store.queues.pauseSchedule({ queue, id, paused })) === "unknown")
    throw notFound(`schedule of "${queue}" named`, id, []);
  return { id, paused, changed };
}

function optionsOf(body: z.output<Routes["putSchedule"]["body"]>): ScheduleOptions {
  const { cron, timezone, at, payload, overlap, missed, priority, key } = body;
  const options: { [Name in keyof ScheduleOptions]?: ScheduleOptions[Name] | undefined } = {
    cron,
    timezone,
    everySeconds: body.every_seconds,
    at,
    payload,
    overlap,
    missed,
    missedCap: body.missed_cap,
    jitterSeconds: body.jitter_seconds,
    priority,
    key,
    maxAttempts: body.max_attempts,
    timeoutSeconds: body.timeout_seconds,
    ttlSeconds: body.ttl_seconds,
  };
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as unknown as ScheduleOptions;
}

function textOf(queue: string, record: ScheduleRecord, now: number): string {
  const { spec, paused, lastTick } = record;
  const facts: Omit<z.output<Routes["putSchedule"]["answer"]>, "payload"> = {
    id: spec.id,
    queue,
    timing: timingOf(spec.timing),
    paused,
    overlap: spec.overlap,
    missed: spec.missed,
    origin: spec.origin,
    next_at: nextTickOf(record, now),
    last_tick: lastTick,
  };
  return jsonWith(facts, { payload: spec.payload });
}

function timingOf(timing: ScheduleSpec["timing"]) {
  return "everyMs" in timing ? { every_seconds: timing.everyMs / 1000 } : { ...timing };
}
