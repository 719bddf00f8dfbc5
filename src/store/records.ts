/**
 * What stands in the store, read back. Whoever wrote it may have been of another version, or none of ours: what does not look as it must is
 * refused here, one record at a time, so that nobody further in walks through what is not there. Fields that this version does not know
 * are kept; states that it does not know are shown as they are. Each reader throws, saying what is wrong.
 */
import { isName, NAME_PATTERN } from "../contracts/name.ts";
import { boolean, integer, refuse } from "../contracts/options.ts";
import type { ConfigVersion } from "../protocol/config.ts";
import type { SlotHealth } from "../protocol/health.ts";
import type { Manifest } from "../protocol/manifest.ts";
import type { Assignments, DesiredAutomation } from "../protocol/spec.ts";
import type { Cordon, DrainWish, SlotStatus, WorkerInfo } from "../protocol/status.ts";
import type { ScheduleSpec } from "../protocol/task.ts";
import {
  amount,
  anything,
  atLeast,
  type Check,
  count,
  id,
  list,
  maybe,
  name,
  orNull,
  record,
  words,
} from "./checks.ts";
import type { Refill } from "./pool-store.ts";

/** Longest text of one record, in characters: reading more would hold everything else up. */
const LONGEST = 8 * 1024 * 1024;
/** Nothing of ours is nested so deep: a payload or a schema may be 64, and stands a few below the top. */
const DEEPEST = 200;
const MOST_SLOTS = 10_000;

const labels = record(words);
const slotId: Check = integer({ min: 0, max: MOST_SLOTS });
const since = amount;

/** The value of a JSON text. Its error repeats nothing of it: that may be a secret. */
export function jsonOf(text: unknown): unknown {
  if (typeof text !== "string") throw new Error("it is no text");
  if (text.length > LONGEST) throw new Error(`it has ${text.length} characters, more than ${LONGEST}`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(text === "" ? "it is empty" : "it is no JSON");
  }
  if (isDeep(value)) throw new Error(`it is nested deeper than ${DEEPEST} levels`);
  return value;
}

/** Level by level, as walking down by recursion is what depth would break. */
function isDeep(root: unknown): boolean {
  let level = [root];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > DEEPEST) return true;
    const next: unknown[] = [];
    for (const value of level) {
      if (typeof value !== "object" || value === null) continue;
      for (const inner of Object.values(value))
        if (typeof inner === "object" && inner !== null) next.push(inner);
    }
    level = next;
  }
  return false;
}

type Reader<T> = (text: string) => T;

/** What it answers has been checked to be what its caller says. */
function reader(what: string, check: Check): Reader<never> {
  return (text) => {
    const value = jsonOf(text);
    check(value, what);
    return value as never;
  };
}

const drain = atLeast({ since, until: since, by: orNull(words), forced: boolean });
const known = record(atLeast({ version: words, labels }));

const workerShape: Reader<WorkerInfo> = reader(
  "worker",
  atLeast({
    id: name,
    incarnation: id,
    host: words,
    pid: amount,
    version: words,
    startedAt: since,
    capacity: count,
    labels,
    automations: list(name),
    known: maybe(known),
    draining: boolean,
    drain: maybe(drain),
    deaf: maybe(orNull(words)),
  }),
);
export function workerInfo(text: string, key: string): WorkerInfo {
  const info = workerShape(text);
  if (info.id === key) return info;
  throw new Error("it is of another worker than its key says");
}

const slotStatus = atLeast({
  automation: name,
  slotId,
  state: words,
  since,
  iterations: amount,
  restarts: amount,
  generation: amount,
  rejected: maybe(orNull(atLeast({ generation: amount, reason: words }))),
  lastError: orNull(words),
  lastCause: orNull(words),
  lastProgressAt: orNull(since),
  waiting: boolean,
  task: maybe(orNull(atLeast({ id, attempt: amount, count: amount, since }))),
  reason: orNull(words),
  pid: orNull(amount),
  memoryMb: amount,
  cpuPercent: amount,
  loopLagMs: amount,
});
export const slotReports: Reader<SlotStatus[]> = reader("slots", list(slotStatus));

const overrides = list(atLeast({ labels, config: anything }));
const size: Check = (value, where) =>
  atLeast(
    typeof value === "object" && value !== null && "share" in value ? { share: amount } : { slots: slotId },
  )(value, where);
const canary = orNull(atLeast({ size, config: anything, since, generation: amount, by: words }));

export const desiredAutomation: Reader<DesiredAutomation> = reader(
  "desired",
  atLeast({
    slots: slotId,
    config: anything,
    overrides: maybe(overrides),
    canary: maybe(canary),
    paused: boolean,
    recycles: maybe(count),
    slotRecycles: maybe(record(count)),
    generation: count,
    deployed: atLeast({ slots: maybe(words), config: maybe(words) }),
    changedBy: atLeast({ slots: words, config: words }),
  }),
);

const assigned: Check = (value, where) => {
  record(record(words))(value, where);
  for (const automation of Object.keys(value as object)) name(automation, `${where}: automation`);
  for (const slots of Object.values(value as Assignments))
    for (const slot of Object.keys(slots))
      slotId(/^\d{1,5}$/.test(slot) ? Number(slot) : slot, `${where}: slot`);
  return value;
};
export const assignments: Reader<Assignments> = reader("assignments", assigned);

const schema = orNull(isSchema);
function isSchema(value: unknown, where: string): unknown {
  return typeof value === "boolean" ? value : atLeast({})(value, where);
}
const use = atLeast({
  kind: words,
  name,
  schema,
  pool: maybe(atLeast({ tagsSchema: schema, options: atLeast({}), refillQueue: maybe(name) })),
});

const scheduleShape = atLeast({
  id,
  timing: isTiming,
  payload: words,
  overlap: words,
  missed: words,
  missedCap: integer({ min: 0, max: 1_000_000 }),
  jitterMs: amount,
  task: atLeast({ priority: amount, key: maybe(id), maxAttempts: amount, timeoutMs: amount, ttlMs: amount }),
  origin: words,
});
function isTiming(value: unknown, where: string): unknown {
  const given = atLeast({})(value, where) as object;
  if ("cron" in given) return atLeast({ cron: words, timezone: words })(given, where);
  if ("everyMs" in given) return atLeast({ everyMs: integer({ min: 1 }), anchor: amount })(given, where);
  if ("at" in given) return atLeast({ at: amount })(given, where);
  return refuse(where, "cron, everyMs or at", value);
}

const manifest = atLeast({
  name,
  kind: words,
  version: words,
  configSchema: schema,
  output: orNull(
    atLeast({ stream: name, schema, maxLength: amount, ttlSeconds: amount, maxPayloadBytes: amount }),
  ),
  tasks: orNull(atLeast({ queue: name, schema, resultSchema: schema, options: atLeast({}) })),
  stateSchema: schema,
  uses: record(list(use)),
  schedules: maybe(list(scheduleShape)),
  labels: maybe(labels),
});
/** Of one worker: each is read by itself, with {@link manifestOf}. */
export const manifestList: Reader<unknown[]> = reader("manifests", list(anything));
export function manifestOf(value: unknown): Manifest {
  manifest(value, "manifest");
  return value as Manifest;
}

const heal = atLeast({
  at: since,
  cause: words,
  collateral: boolean,
  exitCode: orNull(amount),
  signal: orNull(words),
  error: orNull(words),
  livedMs: amount,
});
export const slotHealth: Reader<SlotHealth> = reader(
  "health",
  atLeast({
    history: list(heal, 1000),
    failures: amount,
    spent: list(amount, 10_000),
    circuit: orNull(atLeast({ since, reason: words, version: words, recycles: amount })),
  }),
);

export const configVersion: Reader<Omit<ConfigVersion, "at">> = reader(
  "config",
  atLeast({ generation: count, config: anything, overrides, canary, by: words, note: orNull(words) }),
);

export const cordonWish: Reader<Cordon> = reader("cordon", atLeast({ by: words, at: since }));
export const drainWish: Reader<DrainWish> = reader(
  "drain",
  atLeast({ by: words, at: since, incarnation: id, deadlineMs: amount }),
);

const scheduleSpec: Reader<ScheduleSpec> = reader("schedule", scheduleShape);
/** A payload that is no JSON would be a task that nobody can run. */
export function schedule(text: string): ScheduleSpec {
  const spec = scheduleSpec(text);
  jsonOf(spec.payload);
  return spec;
}

export function ofId<T extends { spec: ScheduleSpec }>(record: T, id: string): T {
  if (record.spec.id === id) return record;
  throw new Error("it is of another schedule than its key says");
}

export const refill: Reader<Refill> = reader(
  "refill",
  atLeast({
    where: record(list(words)),
    below: integer({ min: 0, max: 1000 }),
    queue: name,
    payload: words,
    maxAttempts: amount,
    timeoutMs: amount,
  }),
);

/** A number as it stands in a column: the column's type alone does not make it one. */
export function storedNumber(value: unknown, column: string): number {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw new Error(`${column} is no number`);
}

/** `<automation>/<slot>`, as slots are named in the store. */
export function slotName(text: string): { automation: string; slotId: number } {
  const [, automation = "", slot] = /^(.*)\/(\d{1,5})$/s.exec(text) ?? [];
  if (slot !== undefined && isName(automation) && Number(slot) <= MOST_SLOTS)
    return { automation, slotId: Number(slot) };
  throw new Error("its key names no slot");
}

export function automationName(text: string): string {
  if (NAME_PATTERN.test(text)) return text;
  throw new Error("its key is no name of an automation");
}
