/**
 * Who was the cause when a host ended with slots on it. Pure.
 *
 * Sure are: what user code threw outside its handler (the child tells whose it was), `process.exit` (its exit hook does), a kill by this
 * supervisor because of a slot, and what happens while one task alone runs. After a native crash, a lack of memory, a signal or a blocked
 * loop any of the tasks that had begun can have been the cause. Then all of them bear it, and no slot: each task has its crash limit,
 * and before it reaches that it runs alone (`task-alone.ts`), where it is sure again.
 *
 * Slots of continuous automations have no limits but their own. There the one that said last that it gets on is taken for the cause.
 */
import { redactEnd } from "../internal/redact.ts";
import type { HealCause } from "../protocol/health.ts";
import type { SlotRef } from "../protocol/spec.ts";
import { endingOf, type HostEnd } from "./hosts.ts";

export interface Blame {
  cause: HealCause;
  error: string;
  /** Slots that caused it; the others of that host are collateral. Empty: nobody knows. */
  guilty: readonly number[];
  /** Nobody knows, and tasks had begun: these bear it, and all slots are collateral. Where it is not set, each slot bears it. */
  tasksBear: boolean;
}

/** Most characters of a process's standard error that its end is recorded with. */
const MAX_STDERR = 1500;
const OUT_OF_MEMORY = /heap out of memory|Allocation failed - JavaScript heap|ERR_WORKER_OUT_OF_MEMORY/;

/** `accused`: slots because of which the supervisor itself killed the host. */
export function blame(end: HostEnd, slots: readonly SlotRef[], accused: readonly number[]): Blame {
  const { killedFor } = end;
  const present = new Set(slots.map((slot) => slot.slotId));
  const begun = end.exit.flight.tasks.map(({ slotId }) => slotId).filter((slotId) => present.has(slotId));
  const cause = causeOf(end);
  const isKnown =
    killedFor === "would-not-stop" || killedFor === "task-timeout" || killedFor === "store-lost";
  const slot = isKnown ? null : causingSlot(end, begun);
  const guilty = isKnown ? accused : slot !== null && present.has(slot) ? [slot] : [];
  return { ...cause, guilty, tasksBear: guilty.length === 0 && begun.length > 0 };
}

/** `begun`: slots that run tasks. */
function causingSlot({ tasks, lastWords, exit }: HostEnd, begun: readonly number[]): number | null {
  const known = lastWords?.slotId ?? exit.flight.endedBy;
  if (known !== null) return known;
  if (tasks === null) return exit.flight.lastSlot;
  return begun.length === 1 ? (begun[0] as number) : null;
}

function causeOf({ exit, killedFor, lastWords }: HostEnd): Pick<Blame, "cause" | "error"> {
  if (killedFor === "would-not-stop") {
    return {
      cause: "would-not-stop",
      error: "it did not end in time when told to; its process was killed",
    };
  }
  if (killedFor === "task-timeout") {
    return {
      cause: "task-timeout",
      error: "its task did not end after its timeout, and its process was killed",
    };
  }
  if (killedFor === "store-lost") {
    return {
      cause: "store-lost",
      error:
        "the store was away for as long as its lease lasted, and it had not ended by then; its process was killed",
    };
  }
  if (killedFor === "loop-blocked") {
    return {
      cause: "loop-blocked",
      error: "its process's event loop was blocked for too long; the process was killed",
    };
  }
  if (killedFor === "memory") {
    return {
      cause: "out-of-memory",
      error: "its process grew far above maxMemoryMb; the process was killed",
    };
  }
  if (lastWords !== undefined && lastWords.uncaught !== null) {
    const cause = lastWords.uncaught === "store lost" ? "store-lost" : "uncaught";
    return { cause, error: lastWords.error };
  }
  if (OUT_OF_MEMORY.test(exit.stderr)) return { cause: "out-of-memory", error: tail(exit) };
  if (exit.signal !== null) return { cause: "killed", error: tail(exit) };
  return { cause: "exited", error: lastWords?.error ?? tail(exit) };
}

function tail(exit: HostEnd["exit"]): string {
  const text = endingOf(exit);
  const end = redactEnd(exit.stderr.trim(), MAX_STDERR, exit.stderrCut === true);
  return end === "" ? text : `${text}; the end of its standard error:\n${end}`;
}
