/**
 * What a worker does while it cannot reach the store. Others take a slot only once its lease has ended by the store's clock, so until then
 * whatever runs here is right; the policies differ in what follows.
 *
 * - `finish`: what runs goes on for as long as its lease is sure, then it is told to stop, with the usual time to do so.
 * - `stop`: nothing of a slot goes on past its lease, also not what Fleet cannot refuse (a request to somebody else, a file). So slots are
 *   told a third of a lease ahead, and the processes of those that have not ended by then are killed.
 * - `exit`: as `finish`; after a set time the worker leaves, for whatever restarts it.
 *
 * Nothing new is started under any of them, as a start takes a lease that is sure.
 */
import { number, oneOf, refuse } from "../contracts/options.ts";
import { PARTITION_POLICIES, type PartitionPolicy, type WorkerPartition } from "../protocol/status.ts";
import type { WorkerTimings } from "./timings.ts";

/** Left out, a worker with `exit` leaves after so long; after its lease, where that is longer. */
export const EXIT_AFTER_SECONDS = 60;
/** How long slots may take to end when it leaves: they were told when their leases ended. */
export const LEAVE_SECONDS = 5;
export const MAX_PARTITION_SECONDS = 86_400;
/** What runs is looked at ten times a second: it must be gone when others may begin. */
const AHEAD_MS = 200;

export const partitionPolicy = oneOf(PARTITION_POLICIES);
export const partitionSeconds = number({ above: 0, max: MAX_PARTITION_SECONDS });

export interface PartitionOptions {
  /** What becomes of what runs while the store is away. Default `"finish"`. */
  partition?: PartitionPolicy | undefined;
  /** With `"exit"`: after how many seconds without the store the worker leaves; at least its lease. Default 60, or its lease where that is longer. */
  partitionSeconds?: number | undefined;
}

/** The policy as it counts. Throws `FLEET_OPTION_INVALID`. */
export function partitionOf(
  { partition = "finish", partitionSeconds: given }: PartitionOptions,
  { leaseMs }: Pick<WorkerTimings, "leaseMs">,
): WorkerPartition {
  const policy = partitionPolicy(partition, "partition");
  const lease = leaseMs / 1000;
  if (policy !== "exit") {
    if (given === undefined) return { policy, afterSeconds: null };
    return refuse(
      "partitionSeconds",
      `nothing, as it goes with partition "exit" only, not "${policy}"`,
      given,
    );
  }
  if (given === undefined) return { policy, afterSeconds: Math.max(EXIT_AFTER_SECONDS, lease) };
  const afterSeconds = partitionSeconds(given, "partitionSeconds");
  if (afterSeconds < lease)
    return refuse(
      "partitionSeconds",
      `at least the lease (leaseMs, ${lease} s), as slots go on until that has ended`,
      given,
    );
  return { policy, afterSeconds };
}

export interface PartitionState {
  /** Slots are to stop now. */
  stops: boolean;
  /** Whatever still runs is to be killed now. */
  kills: boolean;
  /** The worker is to leave. */
  leaves: boolean;
}

/** `realMs`: since the store last answered; `awayMs`: the same without times at which this process itself stood still. */
export function partitionState(
  { policy, afterSeconds }: WorkerPartition,
  { realMs, awayMs, leaseMs }: { realMs: number; awayMs: number; leaseMs: number },
): PartitionState {
  const kills = policy === "stop" && realMs >= leaseMs - AHEAD_MS;
  return {
    stops: kills || (policy === "stop" && awayMs >= (leaseMs * 2) / 3),
    kills,
    leaves: policy === "exit" && afterSeconds !== null && awayMs >= afterSeconds * 1000,
  };
}

/** For how long the store has not answered. Times are monotonic. */
export class StoreAbsence {
  #answeredAt: number;
  #stoodStillMs = 0;

  constructor(now: number) {
    this.#answeredAt = now;
  }

  /** A call that was made then has been answered. */
  answered(since: number): void {
    this.#answeredAt = since;
    this.#stoodStillMs = 0;
  }

  /** This process stood still for so long: whether the store would have answered nobody knows. */
  forgive(ms: number): void {
    this.#stoodStillMs += ms;
  }

  at(now: number): { realMs: number; awayMs: number } {
    const realMs = now - this.#answeredAt;
    return { realMs, awayMs: realMs - this.#stoodStillMs };
  }
}
