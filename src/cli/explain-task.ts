// Why a task is not done yet: in words. Pure.
import type { TaskRecord, TaskState } from "../protocol/task.ts";
import type { QueueStats } from "../store/queue-store.ts";
import { atLimit, count, type Finding, whyIdle } from "./explain-automation.ts";
import type { AutomationLine } from "../control/status-report.ts";
import { duration, firstLine } from "./table.ts";

export interface TaskFacts {
  task: TaskRecord;
  stats: QueueStats;
  /** The automation that runs the queue's tasks. */
  automation: AutomationLine;
  now: number;
  /** Tasks of the same key that run. */
  running: readonly TaskRecord[];
  /** That its queue waits for a rate limit. */
  permits?: Finding | undefined;
  ahead: Ahead;
}

/** Waiting tasks that stand before it. */
export interface Ahead {
  /** Of higher priority. */
  higher: number;
  /** Of the same priority and key (or without one, as it), submitted earlier. */
  earlier: number;
  /** There are more than were looked at. */
  more: boolean;
}

export function aheadOf(task: TaskRecord, waiting: readonly TaskRecord[]): Omit<Ahead, "more"> {
  const others = waiting.filter(({ id }) => id !== task.id);
  return {
    higher: others.filter(({ priority }) => priority > task.priority).length,
    earlier: others.filter(
      ({ priority, key, submittedAt }) =>
        priority === task.priority && key === task.key && submittedAt <= task.submittedAt,
    ).length,
  };
}

export function explainTask(facts: TaskFacts): Finding[] {
  return BY_STATE[facts.task.state](facts);
}

const BY_STATE: Readonly<Record<TaskState, (facts: TaskFacts) => Finding[]>> = {
  scheduled: (facts) => [...scheduled(facts), ...blocked(facts)],
  waiting,
  active,
  failed: ({ task, now }) => [
    {
      code: "failed",
      message: `it has been in the dead letter (${task.reason}) for ${ago(task.finishedAt, now)}, after ${runs(task)}`,
    },
    ...lastError(task),
    { code: "retry", message: `"fleet task retry ${task.queue} ${task.id}" puts it back` },
  ],
  cancelled: ({ task, now }) => [
    { code: "cancelled", message: `it was cancelled ${ago(task.finishedAt, now)} ago` },
  ],
  completed: ({ task, now }) => [
    { code: "completed", message: `it completed ${ago(task.finishedAt, now)} ago, after ${runs(task)}` },
  ],
};

function scheduled({ task, now }: TaskFacts): Finding[] {
  const when = new Date(task.dueAt).toISOString();
  if (task.dueAt <= now)
    return [
      {
        code: "due",
        message: `it was due ${ago(task.dueAt, now)} ago, and waits as soon as somebody claims`,
      },
    ];
  const due = `${when} (in ${duration(task.dueAt - now)})`;
  if (task.attempts === 0) return [{ code: "delayed", message: `it is not to be started before ${due}` }];
  return [
    { code: "retry-later", message: `${failures(task)}; the next attempt is due at ${due}` },
    ...lastError(task),
  ];
}

function waiting(facts: TaskFacts): Finding[] {
  const { task, stats, automation, ahead, now } = facts;
  const found = blocked(facts);
  if (facts.permits !== undefined) found.push(facts.permits);
  if (found.length === 0 && stats.counts.active >= automation.running)
    found.push({
      code: "slots-busy",
      message: `${automation.running === 1 ? "the slot is" : `all ${automation.running} slots are`} busy`,
    });
  const before = inFront(task, ahead);
  if (before !== undefined) found.push(before);
  if (found.length === 0)
    found.push({ code: "ready", message: "nothing is in its way: the next free slot claims it" });
  if (task.attempts + task.crashes + task.interruptions > 0)
    found.push({ code: "again", message: `it has been run before: ${runs(task)}` }, ...lastError(task));
  if (task.expiresAt !== null)
    found.push({
      code: "expires",
      message: `unless started, it expires in ${duration(task.expiresAt - now)}`,
    });
  return found;
}

/** What keeps it from running whichever place it has. */
function blocked({ task, stats, automation, running, now }: TaskFacts): Finding[] {
  const idle = whyIdle(automation);
  const found = idle === undefined ? [] : [idle];
  const limit = atLimit(stats);
  if (limit !== undefined) found.push(limit);
  const { keyConcurrency } = stats.settings;
  if (task.key !== null && keyConcurrency > 0 && running.length >= keyConcurrency) {
    const [first] = running as [TaskRecord];
    const others = running.length > 1 ? ` and ${running.length - 1} more` : "";
    found.push({
      code: "key-busy",
      message: `its key "${task.key}" is busy: task ${first.id} runs on ${first.worker ?? "a worker"} for ${ago(first.startedAt, now)}${others} (keyConcurrency ${keyConcurrency})`,
    });
  }
  return found;
}

function inFront({ key }: TaskRecord, { higher, earlier, more }: Ahead): Finding | undefined {
  if (higher + earlier === 0) return undefined;
  const kinds = [
    ...(higher > 0 ? [`${higher} of higher priority`] : []),
    ...(earlier > 0
      ? [`${earlier} submitted earlier ${key === null ? "without a key" : "with its key"}`]
      : []),
  ];
  return {
    code: "behind",
    message: `it is behind ${more ? "at least " : ""}${count(higher + earlier, "task")} (${kinds.join(", ")}); within a priority keys take turns`,
  };
}

function active({ task, now }: TaskFacts): Finding[] {
  const { worker, startedAt, timeoutMs, leaseUntil } = task;
  const nth = `attempt ${task.attempts + 1} of ${task.maxAttempts}`;
  const found: Finding[] = [
    { code: "active", message: `it runs on ${worker ?? "a worker"} for ${ago(startedAt, now)} (${nth})` },
  ];
  if (task.cancelling)
    found.push({ code: "cancelling", message: "it was asked to end, because somebody has cancelled it" });
  if (timeoutMs > 0 && startedAt !== null) {
    const left = startedAt + timeoutMs - now;
    found.push(
      left > 0
        ? { code: "timeout", message: `this attempt is timed out in ${duration(left)}` }
        : {
            code: "timed-out",
            message: `this attempt is over its timeout by ${duration(-left)}, and is being ended`,
          },
    );
  }
  if (leaseUntil !== null && leaseUntil <= now)
    found.push({
      code: "lease-over",
      message: `nothing was heard of ${worker ?? "its worker"} in time: whoever claims next takes it back`,
    });
  return [...found, ...lastError(task)];
}

function failures({ attempts, maxAttempts }: TaskRecord): string {
  return attempts === 1
    ? `its first attempt of ${maxAttempts} failed`
    : `${attempts} of ${maxAttempts} attempts failed`;
}

function runs({ attempts, crashes, interruptions }: TaskRecord): string {
  const said = [
    ...(attempts > 0 ? [count(attempts, "attempt")] : []),
    ...(crashes > 0 ? [crashes === 1 ? "1 crash" : `${crashes} crashes`] : []),
    ...(interruptions > 0 ? [count(interruptions, "interruption")] : []),
  ];
  return said.length === 0 ? "no run at all" : said.join(", ");
}

function lastError({ error }: TaskRecord): Finding[] {
  return error === null ? [] : [{ code: "last-error", message: `its last error: ${firstLine(error)}` }];
}

function ago(time: number | null, now: number): string {
  return duration(now - (time ?? now));
}
