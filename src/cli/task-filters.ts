// Which tasks a command means: ids, or what a task must be like. Selection goes through the pages of the store.
import { type Command, InvalidArgumentError, Option } from "commander";
import {
  FAILURE_REASONS,
  type FailureReason,
  TASK_STATES,
  type TaskRecord,
  type TaskState,
} from "../protocol/task.ts";
import type { QueueStore } from "../store/queue-store.ts";
import { span, wholeNumber } from "./options.ts";

const PAGE = 500;

export interface FilterFlags {
  state?: TaskState[];
  key?: string;
  reason?: FailureReason;
  older?: number;
  newer?: number;
  limit?: number;
}

export function addFilters(command: Command, limit?: number): Command {
  return command
    .option("--state <states>", `in these states, as in waiting,active: ${TASK_STATES.join(", ")}`, stateList)
    .option("--key <key>", "of this key")
    .addOption(new Option("--reason <reason>", "in the dead letter for this reason").choices(FAILURE_REASONS))
    .option("--older <age>", "in their state for longer than so, as in 10m (ms, s, m, h, d)", span)
    .option("--newer <age>", "in their state for less than so", span)
    .option("--limit <count>", "at most so many", wholeNumber(1), limit);
}

function stateList(text: string): TaskState[] {
  const states = text.split(",").map((state) => state.trim());
  const wrong = states.find((state) => !TASK_STATES.includes(state as TaskState));
  if (wrong === undefined) return states as TaskState[];
  throw new InvalidArgumentError(`"${wrong}" is no state; there are ${TASK_STATES.join(", ")}.`);
}

/** Since when a task is in its state. */
export function sinceOf({ state, submittedAt, dueAt, startedAt, finishedAt }: TaskRecord): number {
  switch (state) {
    case "scheduled":
      return submittedAt;
    case "waiting":
      return dueAt;
    case "active":
      return startedAt ?? dueAt;
    default:
      return finishedAt ?? dueAt;
  }
}

export function matches(task: TaskRecord, filters: FilterFlags, now: number): boolean {
  const age = now - sinceOf(task);
  return (
    (filters.key === undefined || task.key === filters.key) &&
    (filters.reason === undefined || task.reason === filters.reason) &&
    (filters.older === undefined || age > filters.older) &&
    (filters.newer === undefined || age < filters.newer)
  );
}

/** States in which a task can be what the filters ask for, of those that `among` allows. */
export function statesOf({ state, reason }: FilterFlags, among: readonly TaskState[]): readonly TaskState[] {
  const asked = among.filter((one) => state === undefined || state.includes(one));
  return reason === undefined ? asked : asked.filter((one) => one === "failed");
}

export interface Selection {
  queue: string;
  states: readonly TaskState[];
  filters: FilterFlags;
  now: number;
}

/** Tasks that fit, state by state in the order of `states`, at most `filters.limit`. */
export async function selectTasks(store: QueueStore, selection: Selection): Promise<TaskRecord[]> {
  const found: TaskRecord[] = [];
  for await (const task of tasksThatFit(store, selection)) found.push(task);
  return found;
}

/** Their ids alone: of any number of tasks no more than a page is in memory with its payloads. */
export async function selectIds(store: QueueStore, selection: Selection): Promise<string[]> {
  const found: string[] = [];
  for await (const { id } of tasksThatFit(store, selection)) found.push(id);
  return found;
}

async function* tasksThatFit(
  store: QueueStore,
  { queue, states, filters, now }: Selection,
): AsyncGenerator<TaskRecord> {
  const limit = filters.limit ?? Number.POSITIVE_INFINITY;
  // A task that moves meanwhile can be on two pages.
  const seen = new Set<string>();
  for (const state of states) {
    let cursor: string | undefined;
    do {
      const page = await store.page({ queue, state, n: PAGE, ...(cursor === undefined ? {} : { cursor }) });
      for (const task of page.tasks) {
        if (seen.has(task.id) || !matches(task, filters, now)) continue;
        seen.add(task.id);
        yield task;
        if (seen.size >= limit) return;
      }
      cursor = page.next;
    } while (cursor !== undefined);
  }
}
