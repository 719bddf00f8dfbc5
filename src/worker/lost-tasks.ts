/** What becomes of the tasks of a host that has ended. Pure. */
import { gotStuck, pauseAfter, settlementOf, timedOut } from "../automation/task-outcome.ts";
import type { StopReason } from "../automation/context.ts";
import type { Settlement } from "../protocol/task.ts";
import type { HostEnd } from "./hosts.ts";

const DEAF = "it did not end then, so its process was ended";

export interface LostTasks {
  queue: string;
  holder: string;
  /** What this supervisor ended because it ran on after its timeout, or got stuck: failed attempts. */
  settle: readonly Settlement[];
  /** Ids of the tasks to blame for the end. All others that had begun were interrupted. */
  crashed: readonly string[];
  /** Tokens of what had begun. What else that holder has claimed is given back as if it had not: it costs no task anything. */
  begun: readonly string[];
  error: string;
}

/** `guilty`: slots that were the cause; with none known, all that ran a task bear it. */
export function lostTasks(
  end: HostEnd,
  why: {
    guilty: readonly number[];
    error: string;
    draining: boolean;
    stopReasonOf: (slotId: number) => StopReason | null;
  },
): LostTasks | undefined {
  const { guilty, error, draining, stopReasonOf } = why;
  const { tasks, holder, exit, killedFor } = end;
  if (tasks === null) return undefined;
  const begun = exit.flight.tasks.flatMap(({ tasks: all }) => all.map(({ token }) => token));
  const lost: LostTasks = { queue: tasks.queue, holder, settle: [], crashed: [], begun, error };
  // A drain costs nothing, however it ends.
  if (end.orderly || (draining && killedFor === "would-not-stop")) return lost;
  const causes = exit.flight.tasks.filter(({ slotId }) => guilty.length === 0 || guilty.includes(slotId));
  if (killedFor === "task-timeout") {
    const { backoff } = tasks.options;
    const settle = causes.flatMap(({ timeoutMs, tasks: all }) =>
      all.map((task) => settlementOf(task, timedOut(timeoutMs, pauseAfter(task.attempts, backoff), DEAF))),
    );
    return { ...lost, settle };
  }
  const stuck = causes.filter(
    ({ slotId }) => killedFor === "would-not-stop" && stopReasonOf(slotId) === "stuck",
  );
  // Code that does not let go of a slot whose lease is lost has not broken anything.
  const broken = causes.filter((mark) => !stuck.includes(mark) && stopReasonOf(mark.slotId) !== "lease-lost");
  const { backoff } = tasks.options;
  return {
    ...lost,
    settle: stuck.flatMap(({ tasks: all }) =>
      all.map((task) => settlementOf(task, gotStuck(pauseAfter(task.attempts, backoff), DEAF))),
    ),
    crashed: broken.flatMap(({ tasks: all }) => all.map(({ id }) => id)),
  };
}
