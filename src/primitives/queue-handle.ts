import { checkSize, encodePayload } from "../contracts/json.ts";
import { checkOptions, number, type OptionRules, refuse } from "../contracts/options.ts";
import type { QueueContract } from "../contracts/queue.ts";
import type { InferOutput, Schema } from "../contracts/schema/standard.ts";
import { check, payloadError } from "../contracts/validate.ts";
import { FleetError } from "../errors.ts";
import type { NewTask } from "../protocol/task.ts";
import type { QueueStore } from "../store/queue-store.ts";
import type { OnUse } from "./on-use.ts";
import type { CallOptions, QueueHandle, TaskHandle, WaitOptions } from "./queue.ts";
import { newTask, SUBMIT, type SubmitOptions } from "./queue-options.ts";
import type { QueueReader } from "./queue-reader.ts";
import { resultOf, taskView } from "./queue-results.ts";
import { settingsOf } from "./queue-settings.ts";
import type { QueueSubmitter } from "./queue-submitter.ts";
import { scheduleSpec } from "./schedule-spec.ts";

/** Most tasks, and most bytes of payloads, of one `submitMany`: it is one step of the store, which delays all others meanwhile. */
export const MAX_LIST = 1000;
const MAX_LIST_BYTES = 16 * 1024 * 1024;

const REMEDY = "send a reference to the data instead, or raise maxPayloadBytes in the contract";
const WAIT: OptionRules<Required<WaitOptions>> = {
  waitSeconds: (value, where) =>
    value === Number.POSITIVE_INFINITY ? value : number({ min: 0 })(value, where),
};
const CALL: OptionRules<Required<CallOptions>> = { ...SUBMIT, ...WAIT };

export interface QueueHandleParts<P extends Schema, R extends Schema> {
  contract: QueueContract<P, R>;
  store: QueueStore;
  submitter: QueueSubmitter;
  reader: QueueReader;
  signal: AbortSignal | undefined;
  /** Called when something was submitted or answered, and around waits on purpose. */
  activity?: { progress(): void; waiting(on: boolean): void } | undefined;
  /** Called before each effect; throws where this user of the queue must have none any more. */
  fence?: (() => void) | undefined;
  onUse?: OnUse | undefined;
}

export function queueHandle<P extends Schema, R extends Schema>(
  parts: QueueHandleParts<P, R>,
): QueueHandle<P, R> {
  const { contract, store, submitter, reader, signal, activity, fence, onUse } = parts;
  const queue = contract.name;
  const where = `queue "${queue}"`;

  const prepared = (payload: unknown, options: Given, what: string): NewTask | Promise<NewTask> => {
    const checking = check(contract.payload, payload);
    const finish = (checked: Awaited<typeof checking>) => {
      if (!checked.ok) throw payloadError(`${where}: ${what}`, checked.issues);
      const json = encodePayload(`${where}: ${what}`, payload);
      checkSize(`${where}: ${what}`, json, contract.options.maxPayloadBytes, REMEDY);
      return newTask(where, contract.options, json, options);
    };
    return checking instanceof Promise ? checking.then(finish) : finish(checking);
  };

  const accepted = async (tasks: readonly NewTask[]): Promise<TaskHandle<R>[]> => {
    fence?.();
    const answers = await submitter.submit(tasks, fence);
    activity?.progress();
    onUse?.("submit", queue, tasks.length);
    return answers.map(({ id, outcome }, at) => ({
      id,
      outcome,
      result: (options) => ended(id, waitOf(where, options, longestOf(tasks[at] as NewTask))),
    }));
  };

  const waiting = async <T>(waitSeconds: number, work: () => Promise<T>): Promise<T> => {
    if (waitSeconds > 0) activity?.waiting(true);
    try {
      return await work();
    } finally {
      if (waitSeconds > 0) activity?.waiting(false);
    }
  };

  const ended = async (id: string, waitSeconds: number): Promise<InferOutput<R>> => {
    const record = await waiting(waitSeconds, () => reader.end({ id, waitSeconds, signal }));
    activity?.progress();
    return resultOf(contract, record);
  };

  return {
    async submit(payload, options) {
      const given =
        options === undefined ? NOTHING : checkOptions<Required<SubmitOptions>>(where, options, SUBMIT);
      const preparing = prepared(payload, given, "payload");
      const [task] = await accepted([preparing instanceof Promise ? await preparing : preparing]);
      return task as TaskHandle<R>;
    },

    async submitMany(payloads, options) {
      const each = listOptions(where, payloads, options);
      const tasks: NewTask[] = [];
      for (const [at, payload] of payloads.entries()) {
        const preparing = prepared(payload, each(payload, at), `payload ${at}`);
        tasks.push(preparing instanceof Promise ? await preparing : preparing);
      }
      checkList(where, tasks);
      return tasks.length === 0 ? [] : accepted(tasks);
    },

    async call(payload, options) {
      const { waitSeconds: wait, ...given } = checkOptions<Required<CallOptions>>(
        `${where}: call`,
        options,
        CALL,
      );
      const task = { ...(await prepared(payload, given, "payload")), asked: true };
      const waitSeconds = wait ?? longestOf(task);
      const submit = async () => {
        const [{ id, outcome }] = (await accepted([task])) as [TaskHandle<R>];
        return { id, asked: outcome === "submitted" };
      };
      const record = await waiting(waitSeconds, () => reader.endOf(task.id, submit, { waitSeconds, signal }));
      activity?.progress();
      return resultOf(contract, record);
    },

    result: async (id, options) =>
      ended(taskId(where, id), waitOf(`${where}: result`, options, contractWait(contract))),

    async get(id) {
      const record = await store.get({ queue, id: taskId(where, id) });
      return record === undefined ? undefined : taskView(contract, record);
    },

    async cancel(id) {
      const ids = [taskId(where, id)];
      fence?.();
      const [outcome] = await store.cancel({ queue, ids });
      return outcome ?? "unknown";
    },

    async retry(id) {
      const ids = [taskId(where, id)];
      fence?.();
      const [outcome] = await store.retry({ queue, ids });
      return outcome ?? "unknown";
    },

    async length() {
      const stats = await store.stats({ queue });
      return stats === undefined ? 0 : stats.counts.waiting + stats.counts.scheduled;
    },

    async schedule(id, options) {
      const spec = await scheduleSpec(contract, id, options, "runtime");
      fence?.();
      // A queue that nobody has declared would be in no list, and the schedule never be looked at.
      await store.declare({ queue, settings: settingsOf(contract), as: "guest" });
      await store.putSchedule({ queue, spec });
      onUse?.("submit", queue, 0);
    },

    async unschedule(id) {
      fence?.();
      return store.removeSchedule({ queue, id: givenId(where, id, "schedule") });
    },
  };
}

type Given = Partial<Required<SubmitOptions>>;
const NOTHING: Given = {};

/** Options of each task of a list, checked. */
function listOptions<T>(
  where: string,
  payloads: readonly T[],
  options: SubmitOptions | ((payload: T, index: number) => SubmitOptions | undefined) | undefined,
): (payload: T, index: number) => Given {
  if (!Array.isArray(payloads))
    return refuse(`${where}: submitMany`, "called with an array of payloads", payloads);
  if (payloads.length > MAX_LIST)
    throw new FleetError(
      "FLEET_OPTION_INVALID",
      `${where}: submitMany takes at most ${MAX_LIST} payloads, got ${payloads.length}; each call is all or nothing, so send several`,
    );
  if (typeof options === "function")
    return (payload, index) =>
      checkOptions<Required<SubmitOptions>>(
        `${where}: options of payload ${index}`,
        options(payload, index),
        SUBMIT,
      );
  const shared = checkOptions<Required<SubmitOptions>>(where, options, SUBMIT);
  const own = (["id", "dedupeKey"] as const).find((name) => shared[name] !== undefined);
  if (own !== undefined && payloads.length > 1)
    throw new FleetError(
      "FLEET_OPTION_INVALID",
      `${where}: ${own} would be the same for ${payloads.length} tasks; give a function (payload, index) => options`,
    );
  return () => shared;
}

function checkList(where: string, tasks: readonly NewTask[]): void {
  let bytes = 0;
  for (const { payload } of tasks) bytes += payload.length;
  if (bytes > MAX_LIST_BYTES && tasks.length > 1)
    throw new FleetError(
      "FLEET_OPTION_INVALID",
      `${where}: submitMany takes at most ${MAX_LIST_BYTES} bytes of payloads, got ${bytes}; each call is all or nothing, so send several`,
    );
}

function waitOf(where: string, options: WaitOptions | undefined, otherwise: number): number {
  if (options === undefined) return otherwise;
  return checkOptions<Required<WaitOptions>>(where, options, WAIT).waitSeconds ?? otherwise;
}

/** The longest that a task takes that succeeds at once: until it is due, until it is started, and its first attempt. */
function longestOf({ delayMs, runAt, timeoutMs, ttlMs }: NewTask): number {
  if (timeoutMs === 0) return Number.POSITIVE_INFINITY;
  const delay = runAt === undefined ? delayMs : Math.max(0, runAt - Date.now());
  return (delay + ttlMs + timeoutMs) / 1000;
}

function contractWait({ options }: QueueContract): number {
  return options.timeoutSeconds === 0
    ? Number.POSITIVE_INFINITY
    : options.ttlSeconds + options.timeoutSeconds;
}

function taskId(where: string, id: unknown): string {
  return givenId(where, id, "task");
}

function givenId(where: string, id: unknown, what: string): string {
  return typeof id === "string" && id !== "" ? id : refuse(`${where}: id`, `the id of a ${what}`, id);
}
