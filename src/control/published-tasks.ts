// The contract of a queue as its workers have published it.
import { QUEUE_DEFAULTS, type QueueContract } from "../contracts/queue.ts";
import type { Manifest } from "../protocol/manifest.ts";
import { workerState, type WorkerRecord } from "../protocol/status.ts";
import { asSchema, jsonSchemaValidator } from "./json-schema.ts";

export type PublishedTasks = NonNullable<Manifest["tasks"]>;

/** What workers have published of a queue: where they differ, live ones count before others, then those that started last. */
export function publishedTasks(
  queue: string,
  manifests: Readonly<Record<string, readonly Manifest[]>>,
  { workers, now }: { workers: readonly WorkerRecord[]; now: number },
): PublishedTasks | undefined {
  const live = (worker: WorkerRecord) => (workerState(worker, now) === "offline" ? 0 : 1);
  const found = workers
    .toSorted((a, b) => live(b) - live(a) || b.startedAt - a.startedAt)
    .flatMap(({ id }) => manifests[id] ?? [])
    .map(({ tasks }) => tasks)
    .find((tasks) => tasks?.queue === queue);
  return found ?? undefined;
}

/** A contract by which tasks can be submitted; results are not checked. */
export function publishedContract({ queue, schema, resultSchema, options }: PublishedTasks): QueueContract {
  return {
    kind: "queue",
    name: queue,
    payload: jsonSchemaValidator(`queue "${queue}"`, schema),
    result: undefined,
    jsonSchema: schema,
    resultJsonSchema: resultSchema,
    options,
  };
}

/** A contract that takes any payload, for a queue of which nothing is known but that it is there. */
export function uncheckedContract(
  queue: string,
  options: QueueContract["options"] = QUEUE_DEFAULTS,
): QueueContract {
  const payload = asSchema(() => []);
  return {
    kind: "queue",
    name: queue,
    payload,
    result: undefined,
    jsonSchema: {},
    resultJsonSchema: null,
    options,
  };
}
