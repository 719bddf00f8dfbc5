import {
  chosenId,
  describe,
  integer,
  number,
  oneOf,
  refuse,
  text,
  type OptionRules,
} from "../contracts/options.ts";
import { maxAttempts, timeoutSeconds, ttlSeconds, type QueueContract } from "../contracts/queue.ts";
import { FleetError } from "../errors.ts";
import { uuidv7 } from "../internal/uuid.ts";
import { type NewTask, ON_DUPLICATE, type OnDuplicate } from "../protocol/task.ts";

/** How one task is to be run. What is left out follows from the queue's contract. */
export interface SubmitOptions {
  /** The task's id, 1 to 128 characters, neither "." nor ".."; default a new UUIDv7. Submitting the same id again is harmless: it is the same task. */
  id?: string;
  /** Not to be started before so long from now, in seconds; 0 (default) to ten years. */
  delaySeconds?: number;
  /** Not to be started before then: a `Date`, or Unix milliseconds; up to the year 9999. Not together with `delaySeconds`. */
  runAt?: Date | number;
  /** -1000 to 1000, higher goes first; default 0. */
  priority?: number;
  /** Tasks of one key run one after the other (`keyConcurrency` of the queue), and keys take turns. 1 to 256 characters. */
  key?: string;
  /** A submission whose `dedupeKey` belongs to an unfinished task is a duplicate. 1 to 256 characters. */
  dedupeKey?: string;
  /**
   * What becomes of a duplicate: `"ignore"` (default) leaves the first as it is, `"replace"` gives it this payload and these options,
   * `"supersede"` cancels it and submits this one; `"throttle"` ignores all within `dedupeSeconds`, also after the first has finished;
   * `"debounce"` replaces, and starts when nothing came for `dedupeSeconds`.
   */
  onDuplicate?: OnDuplicate;
  /** Window of `"throttle"` and `"debounce"`, which need it; above 0 to a year. */
  dedupeSeconds?: number;
  /** Attempts that may fail before it goes to the dead letter; 1 to 1000. */
  maxAttempts?: number;
  /** Longest time that one attempt may run, in seconds; 0 for no limit. */
  timeoutSeconds?: number;
  /** Longest time between its due time and its first start, in seconds; then it goes to the dead letter as `expired`. 0 for no limit. */
  ttlSeconds?: number;
}

const NEED_A_KEY = ["onDuplicate", "dedupeSeconds"] as const;
const YEAR = 365 * 86_400;
/** In Unix milliseconds 1973; in Unix seconds a time far ahead. So what is below was meant as seconds. */
const EARLIEST = 100_000_000_000;
const LATEST = Date.UTC(9999, 11, 31);
const key = text({ max: 256 });

export const SUBMIT: OptionRules<Required<SubmitOptions>> = {
  id: chosenId,
  delaySeconds: number({ min: 0, max: 10 * YEAR }),
  runAt: pointInTime,
  priority: integer({ min: -1000, max: 1000 }),
  key,
  dedupeKey: key,
  onDuplicate: oneOf(ON_DUPLICATE),
  dedupeSeconds: number({ above: 0, max: YEAR }),
  maxAttempts,
  timeoutSeconds,
  ttlSeconds,
};

/** The task as the store takes it. `where` names the queue. Throws `FLEET_OPTION_INVALID` for options that contradict each other. */
export function newTask(
  where: string,
  defaults: QueueContract["options"],
  payload: string,
  given: Partial<Required<SubmitOptions>>,
): NewTask {
  const { id = uuidv7(), delaySeconds = 0, runAt, priority = 0, key } = given;
  const task: NewTask = {
    id,
    payload,
    delayMs: toMs(delaySeconds),
    priority,
    maxAttempts: given.maxAttempts ?? defaults.maxAttempts,
    timeoutMs: toMs(given.timeoutSeconds ?? defaults.timeoutSeconds),
    ttlMs: toMs(given.ttlSeconds ?? defaults.ttlSeconds),
  };
  if (runAt !== undefined) {
    if (given.delaySeconds !== undefined)
      throw new FleetError("FLEET_OPTION_INVALID", `${where}: give delaySeconds or runAt, not both`);
    task.runAt = Number(runAt);
  }
  if (key !== undefined) task.key = key;
  const dedupe = dedupeOf(where, given);
  if (dedupe !== undefined) task.dedupe = dedupe;
  return task;
}

function dedupeOf(where: string, given: Partial<Required<SubmitOptions>>): NewTask["dedupe"] {
  const { dedupeKey, onDuplicate = "ignore", dedupeSeconds } = given;
  const refused = (message: string) => new FleetError("FLEET_OPTION_INVALID", `${where}: ${message}`);
  if (dedupeKey === undefined) {
    const lone = NEED_A_KEY.find((name) => given[name] !== undefined);
    if (lone !== undefined) throw refused(`${lone} needs a dedupeKey`);
    return undefined;
  }
  const windowed = onDuplicate === "throttle" || onDuplicate === "debounce";
  if (windowed && dedupeSeconds === undefined)
    throw refused(`onDuplicate: "${onDuplicate}" needs dedupeSeconds, its window`);
  if (!windowed && dedupeSeconds !== undefined)
    throw refused(`dedupeSeconds is for onDuplicate: "throttle" or "debounce", got "${onDuplicate}"`);
  return { key: dedupeKey, onDuplicate, windowMs: toMs(dedupeSeconds ?? 0) };
}

/** A `Date` or Unix milliseconds, as whole milliseconds. */
export function pointInTime(value: unknown, where: string): number {
  if (value instanceof Date && Number.isNaN(value.getTime()))
    return refuse(where, "a valid Date", new Error("an invalid Date"));
  const ms = value instanceof Date ? value.getTime() : value;
  if (typeof ms !== "number" || !Number.isFinite(ms))
    return refuse(where, "a Date or a time in Unix milliseconds", value);
  if (ms < EARLIEST)
    throw new FleetError(
      "FLEET_OPTION_INVALID",
      `${where} must be a Date or a time in Unix milliseconds, got ${describe(ms)} (seconds? multiply by 1000)`,
    );
  if (ms > LATEST) return refuse(where, "a time before the year 10000", ms);
  return Math.round(ms);
}

/** Whole milliseconds; what is more than nothing stays so, because 0 has a meaning of its own. */
export function toMs(seconds: number): number {
  return seconds === 0 ? 0 : Math.max(1, Math.round(seconds * 1000));
}
