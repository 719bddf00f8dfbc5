import { Cron } from "croner";
import { encodePayload } from "../contracts/json.ts";
import {
  checkOptions,
  describe,
  integer,
  number,
  oneOf,
  refuse,
  text,
  type OptionRules,
} from "../contracts/options.ts";
import { maxAttempts, timeoutSeconds, ttlSeconds, type QueueContract } from "../contracts/queue.ts";
import type { InferInput, Schema } from "../contracts/schema/standard.ts";
import { check, payloadError } from "../contracts/validate.ts";
import { FleetError, messageOf } from "../errors.ts";
import type { ScheduleSpec } from "../protocol/task.ts";
import { pointInTime, toMs } from "./queue-options.ts";

/** When a task is submitted by itself, and what it is. Exactly one of `cron`, `everySeconds` and `at` says when. */
export interface ScheduleOptions<P extends Schema = Schema> {
  /** A cron pattern of five fields, or six with seconds first: `"0 3 * * *"`. */
  cron?: string;
  /** The time zone of `cron`, as `"Europe/Berlin"`; default `"UTC"`. */
  timezone?: string;
  /** An interval, 1 to 31 536 000 s. Its ticks lie at multiples of it since 1970, so they do not move with restarts. */
  everySeconds?: number;
  /** A single time: a `Date`, or Unix milliseconds. */
  at?: Date | number;
  /** The payload of each task, in the input form of the queue's schema. */
  payload: InferInput<P>;
  /** `"skip"` leaves a tick out while the task of an earlier one is unfinished; default `"allow"`. */
  overlap?: "allow" | "skip";
  /**
   * What to do about ticks at which nobody was there to submit: `"once"` (default) makes up for all of them with one task,
   * `"all"` with one each, `"skip"` with none.
   */
  missed?: "skip" | "once" | "all";
  /** Most tasks that `missed: "all"` makes up for, the newest. 1 to 1000, default 100. */
  missedCap?: number;
  /** Each task is delayed by up to so much, at random. 0 (default) to 86 400. */
  jitterSeconds?: number;
  /** Of each task; default those of the queue. */
  priority?: number;
  key?: string;
  maxAttempts?: number;
  timeoutSeconds?: number;
  ttlSeconds?: number;
}

const ID = /^[a-z0-9][a-z0-9._-]{0,63}$/;
const YEAR = 365 * 86_400;

const RULES: OptionRules<Required<ScheduleOptions>> = {
  cron: text({ max: 200 }),
  timezone: text({ max: 64 }),
  everySeconds: number({ min: 1, max: YEAR }),
  at: pointInTime,
  payload: (value) => value,
  overlap: oneOf(["allow", "skip"]),
  missed: oneOf(["skip", "once", "all"]),
  missedCap: integer({ min: 1, max: 1000 }),
  jitterSeconds: number({ min: 0, max: 86_400 }),
  priority: integer({ min: -1000, max: 1000 }),
  key: text({ max: 200 }),
  maxAttempts,
  timeoutSeconds,
  ttlSeconds,
};

/**
 * The stored form of a schedule of `contract`'s queue. Throws `FLEET_NAME_INVALID`, `FLEET_OPTION_INVALID` or, for a payload that does not fit,
 * the `TypeError` `FLEET_PAYLOAD_INVALID`.
 */
export async function scheduleSpec<P extends Schema>(
  contract: QueueContract<P>,
  id: string,
  options: ScheduleOptions<P>,
  origin: ScheduleSpec["origin"],
): Promise<ScheduleSpec> {
  const where = whereOf(contract, id);
  checkScheduleOptions(where, id, options);
  const payload: unknown = options.payload;
  const checked = await check(contract.payload, payload);
  if (!checked.ok) throw payloadError(`${where}: payload`, checked.issues);
  return uncheckedSpec(contract, id, options, origin);
}

/**
 * The schedules that a definition declares. As `scheduleSpec`, at once: a payload whose schema is asynchronous is not checked before a task
 * with it is taken.
 */
export function declaredSpecs(
  contract: QueueContract,
  declared: Readonly<Record<string, ScheduleOptions>> | undefined,
): ScheduleSpec[] {
  return Object.entries(declared ?? {}).map(([id, options]) => {
    const where = whereOf(contract, id);
    checkScheduleOptions(where, id, options);
    const checked = check(contract.payload, options.payload);
    if (!(checked instanceof Promise) && !checked.ok) throw payloadError(`${where}: payload`, checked.issues);
    return uncheckedSpec(contract, id, options, "definition");
  });
}

function whereOf({ name }: QueueContract, id: string): string {
  return `schedule "${id}" of queue "${name}"`;
}

function uncheckedSpec<P extends Schema>(
  contract: QueueContract<P>,
  id: string,
  options: ScheduleOptions<P>,
  origin: ScheduleSpec["origin"],
): ScheduleSpec {
  const where = whereOf(contract, id);
  const given = checkScheduleOptions(where, id, options);
  const { overlap = "allow", missed = "once", missedCap = 100, jitterSeconds = 0, priority = 0, key } = given;
  const ms = (own: number | undefined, ofQueue: number) => toMs(own ?? ofQueue);
  return {
    id,
    timing: timingOf(where, given),
    payload: encodePayload(`${where}: payload`, options.payload),
    overlap,
    missed,
    missedCap,
    jitterMs: toMs(jitterSeconds),
    task: {
      priority,
      ...(key === undefined ? {} : { key }),
      maxAttempts: given.maxAttempts ?? contract.options.maxAttempts,
      timeoutMs: ms(given.timeoutSeconds, contract.options.timeoutSeconds),
      ttlMs: ms(given.ttlSeconds, contract.options.ttlSeconds),
    },
    origin,
  };
}

/** All that can be checked without the payload's schema. Also for definitions, which are checked before anything runs. */
export function checkScheduleOptions(where: string, id: string, options: unknown): Partial<ScheduleOptions> {
  if (!ID.test(id)) {
    throw new FleetError(
      "FLEET_NAME_INVALID",
      `${where}: ${describe(id)} is not a valid name for a schedule: use 1 to 64 characters: lower-case letters, digits, '.', '_' or '-', starting with a letter or digit`,
    );
  }
  const given = checkOptions<Required<ScheduleOptions>>(where, options, RULES);
  timingOf(where, given);
  return given;
}

function timingOf(where: string, given: Partial<ScheduleOptions>): ScheduleSpec["timing"] {
  const { cron, everySeconds, at, timezone } = given;
  const named = [cron, everySeconds, at].filter((value) => value !== undefined).length;
  if (named !== 1)
    throw new FleetError(
      "FLEET_OPTION_INVALID",
      `${where}: exactly one of cron, everySeconds and at says when; got ${named === 0 ? "none" : named}`,
    );
  if (timezone !== undefined && cron === undefined)
    throw new FleetError("FLEET_OPTION_INVALID", `${where}: timezone goes with cron alone`);
  if (everySeconds !== undefined) return { everyMs: Math.round(everySeconds * 1000), anchor: 0 };
  if (at !== undefined) return { at: Number(at) };
  const timing = { cron: cron as string, timezone: timezone ?? "UTC" };
  checkTimezone(where, timing.timezone);
  let next: Date | null;
  try {
    next = new Cron(timing.cron, { timezone: timing.timezone, paused: true }).nextRun();
  } catch (error) {
    throw new FleetError(
      "FLEET_OPTION_INVALID",
      `${where}: cron: ${describe(timing.cron)} is not a pattern (${messageOf(error)}); five fields, as in "0 3 * * *"`,
      { cause: error },
    );
  }
  if (next === null)
    throw new FleetError("FLEET_OPTION_INVALID", `${where}: cron: ${describe(timing.cron)} never comes`);
  return timing;
}

function checkTimezone(where: string, timezone: string): void {
  try {
    Intl.DateTimeFormat("en", { timeZone: timezone });
  } catch {
    refuse(`${where}: timezone`, 'an IANA time zone, as "Europe/Berlin"', timezone);
  }
}
