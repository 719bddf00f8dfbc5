/** Who was the cause when a host ended with slots on it. Pure. */
import type { HealCause } from "../protocol/health.ts";
import type { SlotRef } from "../protocol/spec.ts";
import { endingOf, type HostEnd } from "./hosts.ts";

export interface Blame {
  cause: HealCause;
  error: string;
  /** Slots that caused it; the others of that host are collateral. Empty: nobody knows, so each bears it. */
  guilty: readonly number[];
}

const OUT_OF_MEMORY = /heap out of memory|Allocation failed - JavaScript heap|ERR_WORKER_OUT_OF_MEMORY/;

/** `accused`: slots because of which the supervisor itself killed the host. */
export function blame(end: HostEnd, slots: readonly SlotRef[], accused: readonly number[]): Blame {
  const { exit, killedFor, lastWords } = end;
  const present = new Set(slots.map((slot) => slot.slotId));
  const last = lastWords?.slotId ?? exit.flight.lastSlot;
  const known = last !== null && present.has(last) ? [last] : [];
  if (killedFor === "would-not-stop") {
    return {
      cause: "would-not-stop",
      error: "it did not end in time when told to; its process was killed",
      guilty: accused,
    };
  }
  if (killedFor === "task-timeout") {
    return {
      cause: "task-timeout",
      error: "its task did not end after its timeout, and its process was killed",
      guilty: accused,
    };
  }
  if (killedFor === "loop-blocked") {
    return {
      cause: "loop-blocked",
      error: "its process's event loop was blocked for too long; the process was killed",
      guilty: known,
    };
  }
  if (killedFor === "memory") {
    return {
      cause: "out-of-memory",
      error: "its process grew far above maxMemoryMb; the process was killed",
      guilty: known,
    };
  }
  if (lastWords !== undefined && lastWords.uncaught !== null) {
    const cause = lastWords.uncaught === "store lost" ? "store-lost" : "uncaught";
    return { cause, error: lastWords.error, guilty: known };
  }
  if (OUT_OF_MEMORY.test(exit.stderr))
    return { cause: "out-of-memory", error: tail(endingOf(exit), exit.stderr), guilty: known };
  if (exit.signal !== null)
    return { cause: "killed", error: tail(endingOf(exit), exit.stderr), guilty: known };
  return { cause: "exited", error: lastWords?.error ?? tail(endingOf(exit), exit.stderr), guilty: known };
}

function tail(text: string, stderr: string): string {
  const end = stderr.trim().slice(-1500);
  return end === "" ? text : `${text}; the end of its standard error:\n${end}`;
}
