import type { QueueContract } from "../contracts/queue.ts";
import type { InferInput, InferOutput, Schema } from "../contracts/schema/standard.ts";
import { check, payloadError } from "../contracts/validate.ts";
import { FleetError } from "../errors.ts";
import type { TaskRecord } from "../protocol/task.ts";
import type { Task } from "./queue.ts";

/** The result of a task that has ended; throws where it has none. */
export async function resultOf<R extends Schema>(
  contract: QueueContract<Schema, R>,
  record: TaskRecord,
): Promise<InferOutput<R>> {
  switch (record.state) {
    case "completed":
      return parseResult(contract, record);
    case "failed":
      throw failure(record);
    case "cancelled":
      throw new FleetError("FLEET_TASK_CANCELLED", `${nameOf(record)} was cancelled`);
    default:
      throw pending(record, 0);
  }
}

export function pending(record: TaskRecord, waitedSeconds: number): FleetError {
  const waited = waitedSeconds > 0 ? ` within ${waitedSeconds} s` : "";
  return new FleetError(
    "FLEET_TASK_PENDING",
    `${nameOf(record)} has not ended${waited} (${record.state}); it goes on`,
    { retryable: true },
  );
}

export function unknown(queue: string, id: string): FleetError {
  return new FleetError(
    "FLEET_TASK_UNKNOWN",
    `queue "${queue}": there is no task ${id}; it was never submitted, or has ended and is not kept any more`,
  );
}

export async function taskView<P extends Schema, R extends Schema>(
  contract: QueueContract<P, R>,
  record: TaskRecord,
): Promise<Task<P, R>> {
  const { timeoutMs: _timeout, leaseUntil: _lease, ...facts } = record;
  return {
    ...facts,
    payload: JSON.parse(record.payload) as InferInput<P>,
    result: record.state === "completed" ? await parseResult(contract, record) : undefined,
  };
}

/** The consumer parses: what travels is the schema's input form. */
async function parseResult<R extends Schema>(
  { name, result: schema }: QueueContract<Schema, R>,
  { id, result }: TaskRecord,
): Promise<InferOutput<R>> {
  const value: unknown = result === null ? undefined : JSON.parse(result);
  if (schema === undefined) return value;
  const checked = await check(schema, value);
  if (checked.ok) return checked.value;
  throw payloadError(`queue "${name}": result of task ${id}`, checked.issues);
}

function failure(record: TaskRecord): FleetError {
  const { reason, error, attempts, crashes } = record;
  const runs = [
    ...(attempts > 0 ? [`${attempts} ${attempts === 1 ? "attempt" : "attempts"}`] : []),
    ...(crashes > 0 ? [`${crashes} ${crashes === 1 ? "crash" : "crashes"}`] : []),
  ].join(" and ");
  const last = error === null ? "" : `: ${error.split("\n", 1)[0]}`;
  return new FleetError(
    "FLEET_TASK_FAILED",
    `${nameOf(record)} failed (${reason})${runs === "" ? "" : ` after ${runs}`}${last}`,
    error === null ? {} : { cause: remote(error) },
  );
}

/** The error as it was thrown in the worker, told again. */
function remote(text: string): Error {
  const error = new Error(text.split("\n", 1)[0]);
  error.stack = text;
  return error;
}

function nameOf({ queue, id }: TaskRecord): string {
  return `queue "${queue}": task ${id}`;
}
