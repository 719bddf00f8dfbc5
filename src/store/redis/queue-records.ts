/** How a queue's tasks, numbers and schedules are read. */
import { FleetError } from "../../errors.ts";
import type { FailureReason, ScheduleRecord, TaskRecord, TaskState } from "../../protocol/task.ts";
import type { QueueStats } from "../queue-store.ts";
import { schedule } from "../records.ts";
import { pairs } from "./parts.ts";
import { countersOf, fixedValues, keyOf, settingsIn, tickOf } from "./queue-wire.ts";

/** See `queue-record.lua`. */
export type RecordReply = [
  id: string,
  payload: string,
  fixed: string,
  state: string,
  lane: string | null,
  due: string | null,
  expires: string | null,
  dedupe: string | null,
  tick: string | null,
  counters: string | null,
  claim: string | null,
  finished: string | null,
  result: string | null,
  reason: string | null,
  error: string | null,
  print: string | null,
  lease?: string | null,
  cancelling?: number,
];

const STATES: Readonly<Record<string, TaskState>> = {
  s: "scheduled",
  w: "waiting",
  a: "active",
  c: "completed",
  f: "failed",
  x: "cancelled",
};

export function recordOf(queue: string, reply: RecordReply): TaskRecord {
  const [id, payload, fixed, state, lane, due, expires, dedupeKey, tick, counters, claim, ...rest] = reply;
  const [finished, result, reason, error, print, lease = null, cancelling = 0] = rest;
  const [attempts, crashes, interruptions] = countersOf(counters);
  const { priority, maxAttempts, timeoutMs, submittedAt } = fixedValues(fixed);
  const space = claim?.indexOf(" ") ?? -1;
  return {
    id,
    queue,
    state: STATES[state] as TaskState,
    payload,
    result,
    reason: reason as FailureReason | null,
    error,
    priority,
    key: keyOf(lane),
    dedupeKey,
    attempts,
    crashes,
    interruptions,
    maxAttempts,
    timeoutMs,
    submittedAt,
    dueAt: due === null ? submittedAt : Number(due),
    // Kept for as long as a first claim may yet be returned.
    expiresAt: state === "a" ? null : numberOf(expires),
    startedAt: claim === null ? null : Number(claim.slice(0, space)),
    finishedAt: numberOf(finished),
    worker: claim === null ? null : claim.slice(space + 1),
    leaseUntil: numberOf(lease),
    cancelling: cancelling === 1,
    tick: tickOf(tick),
    print,
  };
}

function numberOf(text: string | null): number | null {
  return text === null ? null : Number(text);
}

export type StatsReply = [] | [meta: string[], counts: number[], oldest: string, busy: (string | number)[]];

export function statsOf([metaFlat, counts, oldest, busy]: Exclude<StatsReply, []>): QueueStats {
  const meta = Object.fromEntries(pairs(metaFlat));
  const [scheduled, waiting, active, completed, failed, cancelled] = counts as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const total = (name: keyof QueueStats["totals"]) => Number(meta[`n:${name}`] ?? 0);
  const reasons: [string, number][] = [];
  for (const [field, value] of Object.entries(meta))
    if (field.startsWith("r:")) reasons.push([field.slice(2), Number(value)]);
  const busyKeys: QueueStats["busyKeys"] = [];
  for (let i = 0; i < busy.length; i += 3)
    busyKeys.push({
      key: keyOf(busy[i] as string) as string,
      active: busy[i + 1] as number,
      waiting: busy[i + 2] as number,
    });
  return {
    settings: settingsIn(meta),
    counts: { scheduled, waiting, active, completed, failed, cancelled },
    oldestWaitingAt: oldest === "" ? null : Number(oldest),
    totals: {
      submitted: total("submitted"),
      completed: total("completed"),
      failed: total("failed"),
      cancelled: total("cancelled"),
      retried: total("retried"),
      crashed: total("crashed"),
      interrupted: total("interrupted"),
      refused: total("refused"),
      duplicates: total("duplicates"),
    },
    reasons: Object.fromEntries(reasons) as QueueStats["reasons"],
    busyKeys,
  };
}

/** The sets in which tasks of a state stand, and in which order they are read; see `queue-page.lua`. */
export const PAGES: Readonly<Record<TaskState, { sets: readonly string[]; order: string }>> = {
  scheduled: { sets: ["delayed"], order: "ties" },
  waiting: { sets: ["lane:-", "keyed"], order: "rising" },
  active: { sets: ["active"], order: "rising" },
  completed: { sets: ["completed"], order: "falling" },
  failed: { sets: ["failed"], order: "falling" },
  cancelled: { sets: ["cancelled"], order: "falling" },
};

/** A cursor is `<number of the set>:<score>:<id>` of the last task of the page before. */
export interface Place {
  set: number;
  score: string;
  id: string;
}

export function placeOf(cursor: string | undefined, sets: readonly string[]): Place {
  if (cursor === undefined) return { set: 0, score: "", id: "" };
  const [, set, score, id] = /^(\d):(\d{1,17}|):(.*)$/s.exec(cursor) ?? [];
  if (set === undefined || score === undefined || id === undefined || Number(set) >= sets.length) {
    throw new FleetError(
      "FLEET_OPTION_INVALID",
      `cursor: ${JSON.stringify(cursor)} is none of this store; take \`next\` of the page before`,
    );
  }
  return { set: Number(set), score, id };
}

export function cursorOf({ set, score, id }: Place): string {
  return `${set}:${score}:${id}`;
}

/** See `queue-put-schedule.lua`. */
export function scheduleOf(stored: string): ScheduleRecord {
  const [, revision, since, paused, last, spec] =
    /^(\d+) (\d+) (\d) (-|\d+)\n[^\n]*\n(.*)$/s.exec(stored) ?? [];
  if (spec === undefined)
    throw new Error("it is not <revision> <since> <paused> <last tick>, its timing and its spec");
  return {
    spec: schedule(spec),
    paused: paused === "1",
    since: Number(since),
    lastTick: last === "-" ? null : Number(last),
    revision: Number(revision),
  };
}
