// `Idempotency-Key`: a repeat of a submission finds the tasks of the first by their ids, which follow from the key.
import { createHash } from "node:crypto";
import { FleetError } from "../errors.ts";
import { canonicalJson } from "../internal/canonical.ts";
import type { SubmitOptions } from "../primitives/queue-options.ts";
import type { Store } from "../store/store.ts";

/** What a body says of one task. */
export interface Repeated {
  payload: unknown;
  options: SubmitOptions;
}

/**
 * The id of a submission's task: `ik-` and the first 40 hex digits of the SHA-256 of queue, key and index as a JSON array. So any master at
 * any time comes to the same, and nothing has to be kept but the tasks themselves.
 */
export function idOfRepeat(queue: string, key: string, index: number): string {
  return `ik-${digestOf(JSON.stringify([queue, key, index])).slice(0, 40)}`;
}

/**
 * What a task is known again by: equal where the body said the same of it, payload and every option. The order of fields counts for nothing,
 * and a priority or a delay of 0 is as good as none.
 */
export function printOf({ payload, options }: Repeated): string {
  const { priority = 0, delaySeconds = 0, ...rest } = options;
  return digestOf(canonicalJson([payload, { ...rest, priority, delaySeconds }])).slice(0, 32);
}

/**
 * Which of `tasks`, by their places, were submitted with this key and are kept. One that is missing beside others bears a `dedupeKey`: as a
 * duplicate it may have left no task of its own, and is to be submitted again. Throws `FLEET_CONFLICT` where those that are there are not
 * those of `tasks` (other payloads, options or another number of them), or another one is missing, which was there once.
 */
export async function findRepeat(
  store: Store,
  { queue, key, tasks }: { queue: string; key: string; tasks: readonly Repeated[] },
): Promise<ReadonlySet<number>> {
  // One more than there are: the first submission may have had more.
  const ids = Array.from({ length: tasks.length + 1 }, (_, at) => idOfRepeat(queue, key, at));
  const records = await Promise.all(ids.map((id) => store.queues.get({ queue, id })));
  const there = new Set(records.flatMap((record, at) => (record === undefined ? [] : [at])));
  if (there.size === 0) return there;
  const same = tasks.every((task, at) => {
    const record = records[at];
    return record === undefined ? task.options.dedupeKey !== undefined : record.print === printOf(task);
  });
  if (!same || there.has(tasks.length)) throw otherBody();
  return there;
}

/** `submitted`: tasks of this body that were new all the same, where that has come to light only after them. */
export function otherBody(submitted: readonly string[] = []): FleetError {
  const done =
    submitted.length === 0 ? "nothing was submitted" : `of this body there is now ${submitted.join(", ")}`;
  return new FleetError(
    "FLEET_CONFLICT",
    `this Idempotency-Key was used with another body (payload, delay, timeout or any other field), or not all of its tasks are kept any more; ${done}. Use a new key for a new submission`,
  );
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
