/** How tasks and settlements travel to the scripts of queues, and claims come back. */
import type { ClaimedTask, NewTask, Settlement } from "../../protocol/task.ts";
import type { QueueSettings, SubmitOutcome, SubmitResult } from "../queue-store.ts";

/** What `queue-submit.lua` takes: what all tasks have in common ("" where they are not alike), and the lists. */
export function wireOfLists(lists: readonly (readonly NewTask[])[]): { common: string; sent: string[] } {
  const sent: string[] = [];
  const first = lists.find((list) => list.length > 0)?.[0];
  if (first !== undefined && lists.every((list) => list.every((task) => isPlainAs(task, first)))) {
    for (const list of lists) {
      sent.push(String(list.length));
      for (const { id, payload } of list) sent.push(id, payload);
    }
    return { common: fixedOf(first), sent };
  }
  for (const list of lists) {
    sent.push(String(list.length));
    for (const task of list) {
      const more = pairsOf(task);
      sent.push(task.id, task.payload, fixedOf(task), more === undefined ? "0" : String(more.length / 2));
      if (more !== undefined) sent.push(...more);
    }
  }
  return { common: "", sent };
}

function isPlainAs(task: NewTask, { priority, maxAttempts, timeoutMs, ttlMs }: NewTask): boolean {
  return (
    task.priority === priority &&
    task.maxAttempts === maxAttempts &&
    task.timeoutMs === timeoutMs &&
    task.ttlMs === ttlMs &&
    !hasMore(task)
  );
}

function fixedOf({ priority, maxAttempts, timeoutMs, ttlMs }: NewTask): string {
  return `${priority} ${maxAttempts} ${Math.round(timeoutMs)} ${Math.round(ttlMs)}`;
}

/** What only some tasks have; undefined for those without any of it. */
function pairsOf(task: NewTask): string[] | undefined {
  if (!hasMore(task)) return undefined;
  const { key, dedupe, delayMs, runAt, asked, tick, print } = task;
  const more: string[] = [];
  if (key !== undefined) more.push("k", `=${key}`);
  if (runAt !== undefined) more.push("at", String(Math.ceil(runAt)));
  else if (delayMs > 0) more.push("delay", String(Math.ceil(delayMs)));
  if (asked === true) more.push("q", "1");
  if (tick !== undefined) more.push("j", tick.schedule, "tick", String(tick.at));
  if (tick?.revision !== undefined) more.push("rev", String(tick.revision));
  if (print !== undefined) more.push("i", print);
  if (dedupe !== undefined)
    more.push("dedupe", dedupe.key, "mode", dedupe.onDuplicate, "window", String(Math.ceil(dedupe.windowMs)));
  return more;
}

function hasMore({ key, dedupe, delayMs, runAt, asked, tick, print }: NewTask): boolean {
  if (key !== undefined || dedupe !== undefined || runAt !== undefined || tick !== undefined) return true;
  return delayMs > 0 || asked === true || print !== undefined;
}

/** Of one list: all were submitted, or what became of each task, or the length that was too much. */
export type ListReply = "new" | string[] | ["full", length: number, maxLength: number];

export function resultOf(reply: ListReply, list: readonly NewTask[]): SubmitResult {
  if (reply === "new")
    return { outcome: "accepted", tasks: list.map(({ id }) => ({ id, outcome: "submitted" })) };
  if (isFull(reply)) return { outcome: "full", length: reply[1], maxLength: reply[2] };
  const tasks: { id: string; outcome: SubmitOutcome }[] = [];
  for (let i = 0; i < reply.length; i += 2)
    tasks.push({ id: reply[i] as string, outcome: reply[i + 1] as SubmitOutcome });
  return { outcome: "accepted", tasks };
}

function isFull(reply: string[] | ["full", number, number]): reply is ["full", number, number] {
  return typeof reply[1] === "number";
}

/** What `queue-turn.lua` takes. */
export function wireOfSettlements(settle: readonly Settlement[]): string[] {
  const sent: string[] = [];
  for (const one of settle) {
    switch (one.outcome) {
      case "completed":
        if (one.result === null) sent.push(one.id, one.token, "completed", "0");
        else sent.push(one.id, one.token, "completed", "1", one.result);
        break;
      case "failed":
        sent.push(one.id, one.token, "failed", "4", one.error, one.reason);
        sent.push(String(Math.ceil(one.retryInMs)), one.final ? "1" : "0");
        break;
      case "crashed":
        sent.push(one.id, one.token, "crashed", "1", one.error);
        break;
      default:
        sent.push(one.id, one.token, one.outcome, "0");
    }
  }
  return sent;
}

export type ClaimReply = [
  payload: string,
  fixed: string,
  counters: string | null,
  id: string,
  token: string,
  lane?: string | null,
  tick?: string | null,
];

export function claimedOf(reply: ClaimReply): ClaimedTask {
  const [payload, fixed, counters, id, token, lane = null, tick = null] = reply;
  const [attempts, crashes, interruptions] = countersOf(counters);
  const { maxAttempts, timeoutMs, submittedAt } = fixedValues(fixed);
  const key = keyOf(lane);
  return {
    id,
    payload,
    token,
    attempts,
    crashes,
    interruptions,
    maxAttempts,
    timeoutMs,
    key,
    submittedAt,
    tick: tickOf(tick),
  };
}

/** Tasks of a message of `queue-hand.lua`, behind the fleet's id. Lengths are in bytes. */
export function handedOf(text: string): ClaimedTask[] {
  const bytes = Buffer.from(text);
  const values: (string | null)[] = [];
  for (let at = 0; at < bytes.length;) {
    const colon = bytes.indexOf(":", at);
    const length = bytes.toString("latin1", at, colon);
    const end = length === "-" ? colon + 1 : colon + 1 + Number(length);
    values.push(length === "-" ? null : bytes.toString("utf8", colon + 1, end));
    at = end;
  }
  const tasks: ClaimedTask[] = [];
  for (let i = 0; i + 7 <= values.length; i += 7)
    tasks.push(claimedOf(values.slice(i, i + 7) as unknown as ClaimReply));
  return tasks;
}

export function fixedValues(fixed: string) {
  const [, priority, maxAttempts, timeoutMs, , submittedAt] = fixed.split(" ").map(Number);
  return { priority, maxAttempts, timeoutMs, submittedAt } as {
    priority: number;
    maxAttempts: number;
    timeoutMs: number;
    submittedAt: number;
  };
}

export function countersOf(text: string | null): [attempts: number, crashes: number, interruptions: number] {
  return text === null ? [0, 0, 0] : (text.split(" ").map(Number) as [number, number, number]);
}

/** `<at> <schedule>` */
export function tickOf(text: string | null): { schedule: string; at: number } | null {
  if (text === null) return null;
  const space = text.indexOf(" ");
  return { schedule: text.slice(space + 1), at: Number(text.slice(0, space)) };
}

/** The key of a lane: lanes of keys bear `=` before it. */
export function keyOf(lane: string | null): string | null {
  return lane === null ? null : lane.slice(1);
}

const SETTING_NAMES: readonly (keyof QueueSettings)[] = [
  "maxLength",
  "maxPayloadBytes",
  "concurrency",
  "keyConcurrency",
  "crashLimit",
  "keepMs",
  "keepCount",
  "keepFailedMs",
  "keepFailedCount",
];

export function wireOfSettings(settings: QueueSettings): string[] {
  return SETTING_NAMES.flatMap((name) => [name, String(Math.round(settings[name]))]);
}

/** From the values in the order in which `wireOfSettings` gives them. */
export function settingsOf(values: readonly string[]): QueueSettings {
  return Object.fromEntries(
    SETTING_NAMES.map((name, i) => [name, Number(values[i])]),
  ) as unknown as QueueSettings;
}

/** From a hash that has them among others. */
export function settingsIn(meta: Readonly<Record<string, string>>): QueueSettings {
  return settingsOf(SETTING_NAMES.map((name) => meta[name] as string));
}
