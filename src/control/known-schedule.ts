// Finds schedules by queue and id, and says what is there instead.
import { checkName } from "../contracts/name.ts";
import type { ScheduleRecord } from "../protocol/task.ts";
import type { Store } from "../store/store.ts";
import { notFound } from "./not-found.ts";
import { tellableTick } from "./ticks.ts";

/** Throws `FLEET_NOT_FOUND` where there is no such queue, or no such schedule of it. */
export async function findSchedule(store: Store, queue: string, id: string): Promise<ScheduleRecord> {
  await scheduledQueue(store, queue);
  const { schedules } = await store.queues.schedules({ queue });
  const record = schedules.find(({ spec }) => spec.id === id);
  if (record !== undefined) return record;
  const ids = schedules.map(({ spec }) => spec.id);
  throw notFound(`schedule of queue "${queue}"`, id, ids);
}

/** Throws `FLEET_NOT_FOUND` where there is no such queue. */
export async function scheduledQueue(store: Store, queue: string): Promise<void> {
  checkName("queue", queue);
  const names = await store.queues.list();
  if (!names.includes(queue)) throw notFound("queue", queue, names);
}

/** Nominal time of its next tick; null when there is none, while it is paused, and where it cannot be told. `now` is store time. */
export function nextTickOf({ spec, paused, since, lastTick }: ScheduleRecord, now: number): number | null {
  return paused ? null : tellableTick(spec.timing, Math.max(lastTick ?? since, since, now));
}
