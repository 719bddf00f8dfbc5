import type { PoolContract } from "../contracts/pool.ts";
import type { QueueContract } from "../contracts/queue.ts";
import type { ScheduleSpec } from "./task.ts";
import type { JsonSchema } from "../contracts/schema/standard.ts";

export type AutomationKind = "continuous" | "batch";

/** What a worker publishes about an automation it can run. Plain data: a master needs no user code to read it. */
export interface Manifest {
  name: string;
  kind: AutomationKind;
  /** Content hash of the built code: two hosts with different versions differ here. */
  version: string;
  configSchema: JsonSchema | null;
  output: {
    stream: string;
    schema: JsonSchema;
    maxLength: number;
    ttlSeconds: number;
    maxPayloadBytes: number;
  } | null;
  /** Of a batch automation: its queue. */
  tasks: {
    queue: string;
    schema: JsonSchema;
    resultSchema: JsonSchema | null;
    /** As in its contract, all filled in. */
    options: QueueContract["options"];
  } | null;
  stateSchema: JsonSchema | null;
  /** Declared contracts by direction, for the graph and the drift checks. */
  uses: Partial<Record<UseDirection, readonly ContractUse[]>>;
  /** Whether a new config is taken live by `onConfig`. */
  liveConfig: boolean;
  /** A slot without progress for so long is healed; left out: the worker's default, and for a batch automation none. */
  stuckSeconds?: number;
  /** What a batch automation declares to be submitted by itself; left out: nothing. */
  schedules?: readonly ScheduleSpec[];
  /** Labels that a worker must bear to run it, as text; left out: none. */
  labels?: Readonly<Record<string, string>>;
  /** When its process is replaced by a fresh one, besides on request. */
  recycle?: RecycleLimits;
}

export interface RecycleLimits {
  /** Age of the process. */
  afterSeconds?: number;
  /** Turns of all its slots together. */
  afterIterations?: number;
  /** Resident memory: above it the process is replaced slot by slot; above one and a half times as much, at once. */
  maxMemoryMb?: number;
}

export const USE_DIRECTIONS = ["pop", "submit", "claim", "put", "publish", "subscribe"] as const;
export type UseDirection = (typeof USE_DIRECTIONS)[number];

export interface ContractUse {
  kind: string;
  name: string;
  schema: JsonSchema | null;
  /** Of a pool: what else its contract says, all filled in. */
  pool?: {
    tagsSchema: JsonSchema | null;
    options: PoolContract["options"];
    /** The queue by which it is kept filled; left out: none. */
    refillQueue?: string;
  };
}
