import type { Schema } from "../contracts/schema/standard.ts";
import { isPoolContract, type PoolContract } from "../contracts/pool.ts";
import { check } from "../contracts/validate.ts";
import { messageOf, type PayloadIssue } from "../errors.ts";
import { type Judged, type JudgedItem, MAX_VERDICT_BYTES, type Verdict } from "../protocol/verdict.ts";
import { hideSecrets } from "./config-secrets.ts";
import type { Automation } from "./definition.ts";

/** Most characters of one pointer or message. */
const MAX_TEXT = 400;

/**
 * What the automation's own schema says to payloads of tasks, or the pool's contract that it declares to items: the same as they would when
 * they are taken. Null for an automation that has no such schema. Never fails: a schema that throws refuses the payload, as it does when a
 * task is taken.
 */
export async function judge(automation: Automation, judged: Judged): Promise<readonly Verdict[] | null> {
  if (judged.payloads !== undefined) {
    if (automation.kind !== "batch") return null;
    const { payload } = automation.tasks;
    return verdictsOn(judged.payloads, (value) => issuesOf(payload, value));
  }
  const contract = poolOf(automation, judged.pool);
  return contract === undefined ? null : verdictsOn(judged.items, (item) => issuesOfItem(contract, item));
}

function poolOf({ options: { uses = {} } }: Automation, pool: string): PoolContract | undefined {
  return Object.values(uses)
    .flat()
    .find((used): used is PoolContract => isPoolContract(used) && used.name === pool);
}

async function issuesOfItem(
  { payload, tags }: PoolContract,
  item: JudgedItem,
): Promise<readonly PayloadIssue[] | null> {
  const ofPayload = below("/payload", await issuesOf(payload, item.payload));
  const ofTags = tags === undefined ? [] : below("/tags", await issuesOf(tags, item.tags ?? {}));
  const all = [...ofPayload, ...ofTags];
  return all.length === 0 ? null : all;
}

function below(base: string, issues: readonly PayloadIssue[] | null): PayloadIssue[] {
  return (issues ?? []).map(({ pointer, message }) => ({ pointer: base + pointer, message }));
}

async function verdictsOn<T>(
  all: readonly T[],
  judgeOne: (one: T) => Promise<readonly PayloadIssue[] | null>,
): Promise<readonly Verdict[]> {
  const verdicts: Verdict[] = [];
  let room = MAX_VERDICT_BYTES - all.length * 5;
  for (const one of all) {
    const issues = await judgeOne(one);
    const told: PayloadIssue[] = [];
    for (const { pointer, message } of issues ?? []) {
      const issue = { pointer: pointer.slice(0, MAX_TEXT), message: hideSecrets(message).slice(0, MAX_TEXT) };
      room -= Buffer.byteLength(JSON.stringify(issue)) + 1;
      if (room < 0) break;
      told.push(issue);
    }
    verdicts.push(issues === null ? null : told);
  }
  return verdicts;
}

async function issuesOf(schema: Schema, payload: unknown): Promise<readonly PayloadIssue[] | null> {
  try {
    const checked = await check(patient(schema), payload);
    return checked.ok ? null : checked.issues;
  } catch (error) {
    return [{ pointer: "", message: messageOf(error) }];
  }
}

/** What zod offers beside the Standard Schema. */
interface Zod {
  safeParseAsync?: (
    value: unknown,
  ) => Promise<
    | { success: true; data: unknown }
    | { success: false; error: { issues: { path: PropertyKey[]; message: string }[] } }
  >;
}

/**
 * By its Standard Schema zod tries without waiting first, and lets go of what an asynchronous refinement makes of that: where it throws, nobody
 * catches it, and the process ends. A question must not cost that.
 */
function patient(schema: Schema): Schema {
  const { safeParseAsync } = schema as Zod;
  const { vendor } = schema["~standard"];
  if (vendor !== "zod" || safeParseAsync === undefined) return schema;
  const validate = async (value: unknown) => {
    const parsed = await safeParseAsync(value);
    return parsed.success ? { value: parsed.data } : { issues: parsed.error.issues };
  };
  return { "~standard": { version: 1, vendor, validate } };
}
