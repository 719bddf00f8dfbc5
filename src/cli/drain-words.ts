// What there is to say of a worker that is to leave and has not left yet. Pure.
import type { DrainLine } from "../control/drain-report.ts";
import type { WorkerRecord } from "../protocol/status.ts";
import { duration } from "./table.ts";

/** So many slots are named. */
const NAMED = 5;

/** Why the worker has not left yet. */
export function drainWords(id: string, line: DrainLine): string {
  const ago = duration(line.seconds * 1000);
  if (!line.begun)
    return `${id} was asked to drain by ${line.by ?? "nobody"} ${ago} ago and has not begun: it may not be receiving, be frozen or cut off from the store`;
  const left = line.left_seconds;
  const until =
    left === null
      ? ""
      : left > 0
        ? `, by force in ${duration(left * 1000)}`
        : `, its deadline passed ${duration(-left * 1000)} ago`;
  const asked = line.by === null ? "" : ` (asked by ${line.by})`;
  const named = line.waits_for.slice(0, NAMED).map((slot) => {
    const task = slot.task === null ? "" : `, task ${slot.task.id} for ${duration(slot.task.seconds * 1000)}`;
    return `${slot.automation}/${slot.slot_id} (${slot.state} for ${duration(slot.seconds * 1000)}${task})`;
  });
  if (line.waits_for.length > NAMED) named.push(`${line.waits_for.length - NAMED} more`);
  const waits = named.length === 0 ? "no slot runs any more" : `it waits for ${named.join(", ")}`;
  return `${id} drains for ${ago}${asked}${until}; ${waits}`;
}

/** Why a request to drain has changed nothing of a worker that drains already. `deadline` is what was asked for, in seconds. */
export function drainsAlready(worker: WorkerRecord, deadline: number | undefined, now: number): string {
  const { id, drain: own, wish } = worker;
  if (own?.forced === true) return `${id} drains already, and its end is being forced; nothing was changed.`;
  const until = own?.until ?? (wish?.drain === undefined ? undefined : wish.drain.at + wish.drain.deadlineMs);
  const left = until === undefined ? "" : ` (${duration(Math.max(0, until - now))} left)`;
  if (deadline === undefined)
    return `${id} drains already${left}; nothing was changed. --deadline gives it another deadline.`;
  if (until === undefined) return `${id} drains already, and does not say until when; nothing was changed.`;
  return `${id} drains already, with that very deadline${left}; nothing was changed. Another number moves it, counted from then on.`;
}
