import type { z } from "zod";
import type { newTask, TASK_ROUTES, taskShape } from "../../client/routes/tasks.ts";
import { findQueue } from "../../control/known-queue.ts";
import { type PublishedTasks, uncheckedContract } from "../../control/published-tasks.ts";
import { FleetError, isFleetError } from "../../errors.ts";
import { encodePayload } from "../../contracts/json.ts";
import { checkOptions } from "../../contracts/options.ts";
import { unknown } from "../../primitives/queue-results.ts";
import { newTask as taskOfOptions, SUBMIT, type SubmitOptions } from "../../primitives/queue-options.ts";
import { QueueSubmitter } from "../../primitives/queue-submitter.ts";
import { isFinished, type TaskRecord } from "../../protocol/task.ts";
import type { Store } from "../../store/store.ts";
import { type Asked, type Handlers, RawJson } from "../handler.ts";
import { checkTasks, publishedOf } from "../payloads.ts";
import { jsonPage, jsonWith } from "../raw-json.ts";
import { findRepeat, idOfRepeat, otherBody, printOf } from "../repeats.ts";
import type { Services } from "../services.ts";
import { badCursor, knownOptions } from "../words.ts";

type Submission = Asked<(typeof TASK_ROUTES)["submitTasks"]>;

export const TASK_HANDLERS: Handlers<keyof typeof TASK_ROUTES> = {
  submitTasks: async (asked, services) => {
    const { name } = asked.params;
    const published = await publishedOf(services.store, name);
    const key = asked.idempotencyKey;
    const given = tasksOf(asked, name);
    const there =
      key === undefined
        ? new Set<number>()
        : await findRepeat(services.store, { queue: name, key, tasks: given });
    const missing = given.filter((_, at) => !there.has(at));
    let validated: "full" | "structural" = "structural";
    let submitted: Submitted[] = [];
    if (missing.length > 0) {
      const payloads = missing.map(({ payload, pointer }) => ({
        value: payload,
        pointer: `${pointer}/payload`,
      }));
      validated = await checkTasks(services, published, payloads, asked.signal);
      submitted = await (key === undefined ? submit : submitKnown)(services, published, missing);
      if (key !== undefined) await checkRaced(services.store, name, missing, submitted);
    }
    const answers = submitted.values();
    const tasks = given.map(({ id = "" }, at) =>
      there.has(at) ? { id, outcome: "repeated" } : (answers.next().value as Submitted),
    );
    return { tasks, ids: tasks.map(({ id }) => id), validated };
  },

  listTasks: async ({ params: { name }, query: { state, limit, cursor } }, { store }) => {
    await findQueue(store, name);
    const page = await store.queues
      .page({ queue: name, state, n: limit, ...(cursor === undefined ? {} : { cursor }) })
      .catch((error: unknown) => Promise.reject(badCursor(error)));
    return new RawJson(jsonPage(page.tasks.map(textOf), page.next ?? null));
  },

  getTask: async ({ params: { name, id } }, { store }) => new RawJson(textOf(await taskOf(store, name, id))),

  taskResult: async ({ params: { name, id }, query, signal }, { store, queues }) => {
    await findQueue(store, name);
    const record = await queues
      .end(name, { id, waitSeconds: query.wait_seconds, signal })
      .catch((error: unknown) => {
        // A long poll that has waited for long enough is no failure.
        if (isFleetError(error, "FLEET_TASK_PENDING")) return taskOf(store, name, id);
        throw error;
      });
    const { state, reason, error, result } = record;
    return new RawJson(
      jsonWith({ id, done: isFinished(state), state, reason, error }, { result: result ?? "null" }),
    );
  },

  retryTask: async ({ params: { name, id } }, { store }) => {
    await findQueue(store, name);
    const [outcome = "unknown"] = await store.queues.retry({ queue: name, ids: [id] });
    if (outcome === "unknown") throw unknown(name, id);
    if (outcome === "waiting") return { id, outcome };
    throw conflict(
      name,
      id,
      outcome === "completed"
        ? "has completed; submit it anew to run it again"
        : "has not ended, so there is nothing to retry",
    );
  },

  cancelTask: async ({ params: { name, id } }, { store }) => {
    await findQueue(store, name);
    const [outcome = "unknown"] = await store.queues.cancel({ queue: name, ids: [id] });
    if (outcome === "unknown") throw unknown(name, id);
    if (outcome === "finished") throw conflict(name, id, "has ended already");
    return { id, outcome };
  },
};

interface Submitted {
  id: string;
  outcome: string;
}

/** One task of a body, and where it stands in it. */
interface Placed {
  id: string | undefined;
  payload: unknown;
  options: SubmitOptions;
  pointer: string;
}

function tasksOf({ body, idempotencyKey: key }: Submission, queue: string): Placed[] {
  const list = "tasks" in body ? body.tasks : [body];
  return list.map((task, at) => {
    const pointer = "tasks" in body ? `/tasks/${at}` : "";
    if (key !== undefined && task.id !== undefined)
      throw new FleetError(
        "FLEET_OPTION_INVALID",
        "with Idempotency-Key tasks get their ids from that key; leave the header out, or id",
        { issues: [{ pointer: `${pointer}/id`, message: "is not to be given with Idempotency-Key" }] },
      );
    const id = key === undefined ? task.id : idOfRepeat(queue, key, at);
    return { id, payload: task.payload, options: optionsOf(task), pointer };
  });
}

function optionsOf(given: z.output<typeof newTask>): SubmitOptions {
  const options = {
    delaySeconds: given.delay_seconds,
    runAt: given.run_at,
    priority: given.priority,
    key: given.key,
    dedupeKey: given.dedupe_key,
    onDuplicate: given.on_duplicate,
    dedupeSeconds: given.dedupe_seconds,
    maxAttempts: given.max_attempts,
    timeoutSeconds: given.timeout_seconds,
    ttlSeconds: given.ttl_seconds,
  };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/** Payloads have been checked already. */
async function submit(
  { queues }: Services,
  { queue, options }: PublishedTasks,
  given: readonly Placed[],
): Promise<Submitted[]> {
  const handle = queues.handle(uncheckedContract(queue, options));
  try {
    const tasks = await handle.submitMany(
      given.map(({ payload }) => payload),
      (_payload, at) => {
        const { id, options: own } = given[at] as Placed;
        return id === undefined ? own : { ...own, id };
      },
    );
    return tasks.map(({ id, outcome }) => ({ id, outcome }));
  } catch (error) {
    throw knownOptions(error);
  }
}

/** The same with what each is to be known again by. */
async function submitKnown(
  { store }: Services,
  { queue, options }: PublishedTasks,
  given: readonly Placed[],
): Promise<Submitted[]> {
  const where = `queue "${queue}"`;
  try {
    const tasks = given.map(({ id, payload, options: own }) => {
      const checked = checkOptions<Required<SubmitOptions>>(where, { ...own, id }, SUBMIT);
      const print = printOf({ payload, options: own });
      return { ...taskOfOptions(where, options, encodePayload(where, payload), checked), print };
    });
    return await new QueueSubmitter(store.queues, uncheckedContract(queue, options)).submit(tasks);
  } catch (error) {
    throw knownOptions(error);
  }
}

/** Somebody may have used the key at the same moment: what stands there then must be the same. */
async function checkRaced(
  store: Store,
  queue: string,
  given: readonly Placed[],
  tasks: readonly Submitted[],
): Promise<void> {
  const fresh = tasks.filter(({ outcome }) => outcome === "submitted").map(({ id }) => id);
  for (const [at, { id, outcome }] of tasks.entries()) {
    if (outcome !== "repeated") continue;
    const record = await store.queues.get({ queue, id });
    if (record !== undefined && record.print !== printOf(given[at] as Placed)) throw otherBody(fresh);
  }
}

async function taskOf(store: Store, queue: string, id: string): Promise<TaskRecord> {
  await findQueue(store, queue);
  const record = await store.queues.get({ queue, id });
  if (record === undefined) throw unknown(queue, id);
  return record;
}

function conflict(queue: string, id: string, why: string): FleetError {
  return new FleetError("FLEET_CONFLICT", `queue "${queue}": task ${id} ${why}`);
}

function textOf(task: TaskRecord): string {
  const facts: Omit<z.output<typeof taskShape>, "payload" | "result"> = {
    id: task.id,
    queue: task.queue,
    state: task.state,
    reason: task.reason,
    error: task.error,
    attempts: task.attempts,
    crashes: task.crashes,
    interruptions: task.interruptions,
    max_attempts: task.maxAttempts,
    priority: task.priority,
    key: task.key,
    dedupe_key: task.dedupeKey,
    submitted_at: task.submittedAt,
    due_at: task.dueAt,
    expires_at: task.expiresAt,
    started_at: task.startedAt,
    finished_at: task.finishedAt,
    worker: task.worker,
    cancelling: task.cancelling,
  };
  return jsonWith(facts, { payload: task.payload, result: task.result ?? "null" });
}
