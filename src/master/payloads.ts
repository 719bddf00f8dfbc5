// Payloads of users in bodies of requests: checked, and complained of by where they stand.
import { checkSize, encodePayload } from "../contracts/json.ts";
import { check } from "../contracts/validate.ts";
import { findQueue } from "../control/known-queue.ts";
import { publishedContract, type PublishedTasks } from "../control/published-tasks.ts";
import type { Validated } from "../control/verdicts.ts";
import { FleetError, isFleetError, type PayloadIssue } from "../errors.ts";
import type { Store } from "../store/store.ts";
import { inWords } from "./http/check-input.ts";
import { MOST_ERRORS, RequestProblem } from "./http/request-problem.ts";
import type { Services } from "./services.ts";

export interface GivenPayload {
  value: unknown;
  /** Where it stands in the body, as JSON Pointer. */
  pointer: string;
}

/**
 * Checks payloads of tasks: first against the published JSON Schema, then, where all fit, by a live child of the automation. Throws 422 with a
 * pointer to each field that does not fit, or 413.
 */
export async function checkTasks(
  { verdicts }: Pick<Services, "verdicts">,
  published: PublishedTasks,
  given: readonly GivenPayload[],
  signal: AbortSignal,
): Promise<Validated> {
  const { payload: schema, options } = publishedContract(published);
  const where = `queue "${published.queue}"`;
  const issues: PayloadIssue[] = [];
  const texts: string[] = [];
  for (const { value, pointer } of given) {
    try {
      const text = encodePayload(where, value);
      checkSize(where, text, options.maxPayloadBytes, "send a reference to the data instead");
      texts.push(text);
    } catch (error) {
      throw inBody(error, pointer);
    }
    const checked = await check(schema, value);
    if (!checked.ok) for (const issue of below(pointer, checked.issues)) issues.push(issue);
    // Nobody would be told of more.
    if (issues.length > MOST_ERRORS) break;
  }
  refuse(where, issues);
  const answer = await verdicts.ask({ automation: published.queue }, texts, signal);
  if (answer === undefined) return "structural";
  refuse(
    where,
    answer.flatMap((verdict, at) => {
      const { pointer } = given[at] as GivenPayload;
      if (verdict === null) return [];
      return verdict.length === 0 ? [{ pointer, message: "does not fit" }] : below(pointer, verdict);
    }),
  );
  return "full";
}

/**
 * Has a live child judge an item of a pool, whose automation declares the pool's contract; what was published of it has been checked
 * already. Throws 422 with a pointer to each field that does not fit.
 */
export async function judgeItem(
  { verdicts }: Pick<Services, "verdicts">,
  pool: string,
  item: { payload: unknown; tags?: unknown },
  signal: AbortSignal,
): Promise<Validated> {
  const answer = await verdicts.ask({ pool }, [JSON.stringify(item)], signal);
  if (answer === undefined) return "structural";
  const where = `pool "${pool}"`;
  const [verdict = null] = answer;
  if (verdict?.length === 0) refuse(where, [{ pointer: "", message: "does not fit" }]);
  refuse(where, verdict ?? []);
  return "full";
}

/** The contract of a queue as its workers have published it. Throws `FLEET_NOT_FOUND`, or `FLEET_CONFLICT` where nobody has. */
export async function publishedOf(store: Store, name: string): Promise<PublishedTasks> {
  const { published } = await findQueue(store, name);
  if (published !== undefined) return published;
  throw new FleetError(
    "FLEET_CONFLICT",
    `no worker has published what tasks of "${name}" look like, so they cannot be checked; start a worker that runs "${name}"`,
  );
}

/** What a check below said of a payload, told of the body: its issues bear the payload's own pointers. */
export function inBody(error: unknown, pointer: string): unknown {
  if (!isFleetError(error) || !PAYLOAD_CODES.has(error.code)) return error;
  const issues = error.issues === undefined ? [{ pointer, message: error.message }] : error.issues;
  return new FleetError(error.code, error.message, {
    issues: error.issues === undefined ? issues : below(pointer, issues),
  });
}

const PAYLOAD_CODES = new Set(["FLEET_PAYLOAD_INVALID", "FLEET_PAYLOAD_TOO_LARGE"]);

function below(base: string, issues: readonly PayloadIssue[]): PayloadIssue[] {
  return issues.map(({ pointer, message }) => ({ pointer: base + pointer, message }));
}

function refuse(where: string, issues: readonly PayloadIssue[]): void {
  if (issues.length === 0) return;
  throw new RequestProblem(422, "FLEET_PAYLOAD_INVALID", `${where}: ${inWords(issues)}`, { issues });
}
