import type { InferInput, InferOutput, Schema } from "../contracts/schema/standard.ts";
import type { QueueContract } from "../contracts/queue.ts";
import type { PoolContract } from "../contracts/pool.ts";
import type { StreamContract } from "../contracts/stream.ts";
import type { Log } from "../internal/log.ts";
import type { Events } from "../primitives/events.ts";
import type { PoolHandle } from "../primitives/pool.ts";
import type { CallOptions, QueueHandle, TaskHandle } from "../primitives/queue.ts";
import type { SubmitOptions } from "../primitives/queue-options.ts";
import type { Counter, CounterOptions } from "../primitives/counter.ts";
import type { LockLease, LockOptions } from "../primitives/lock.ts";
import type { RateLimitOptions } from "../contracts/rate-limit.ts";
import type { RateLimit } from "../primitives/rate-limit.ts";
import type { ConsumerStream } from "../primitives/stream.ts";
import type { PushOptions } from "../primitives/stream-emitter.ts";

/**
 * Why `ctx.signal` was aborted (its `reason`). `"ended"`: the run has returned or thrown, and what it left going ends too. In a batch
 * automation the signal is the task's: `"timeout"` and `"cancelled"` are about it alone, `"drain"` comes when the drain's deadline has
 * passed, `"lease-lost"` when the task or the slot may run elsewhere by now.
 */
export type StopReason =
  | "timeout"
  | "cancelled"
  | "drain"
  | "scaled"
  | "config"
  | "reload"
  | "recycle"
  | "stuck"
  | "lease-lost"
  | "paused"
  | "ended";

export interface LoopOptions {
  /** Time from the start of one turn to the start of the next, in seconds; a turn that takes longer is followed at once. Default 0. */
  everySeconds?: number;
}

/** One turn of `ctx.loop`. */
export interface Turn {
  /** 0, 1, 2, … since this run of the slot began. */
  index: number;
}

/** A small durable value of one slot, for cursors: it outlives restarts and moves between workers. */
export interface SlotStateValue<T, Input = T> {
  /** The value kept last, or undefined. Throws `FLEET_PAYLOAD_INVALID` when it no longer fits the schema. */
  get(): Promise<T | undefined>;
  /** Keeps what the schema takes in, as JSON of at most 64 KiB. Throws `FLEET_LEASE_LOST` when the slot runs elsewhere by now. */
  set(value: Input): Promise<void>;
  clear(): Promise<void>;
}

/** What user code gets. Everything here is safe to use from several concurrent parts of one slot. */
export interface Context<Config = unknown, Output = unknown, State = unknown, StateInput = State> {
  /** Name of the automation. */
  readonly automation: string;
  /** Fleet-wide, `0..slotCount-1`. */
  readonly slotId: number;
  /** Live: changes when the automation is scaled, without a restart of this slot. */
  readonly slotCount: number;
  /** True in exactly one slot for each key; few keys move when the count changes. */
  owns(this: void, key: string): boolean;
  /** Id of the worker that runs this slot. */
  readonly worker: string;
  /** Parsed config; live where the automation has `onConfig`. */
  readonly config: Config;
  /** Aborts when the slot is to end; `signal.reason` is a `StopReason`. */
  readonly signal: AbortSignal;
  readonly log: Log;
  /** Appends to the automation's own stream. Throws a `TypeError` for what the declared output does not accept. */
  emit(this: void, payload: Output, options?: PushOptions): Promise<{ id: string }>;
  /** As `emit`, for many: all are checked before the first is written. */
  emitMany(this: void, payloads: readonly Output[]): Promise<void>;
  /** Another automation's stream, for reading. */
  stream<S extends Schema>(this: void, contract: StreamContract<S>): ConsumerStream<S>;
  /** A queue: somebody's, or its own. */
  queue<P extends Schema, R extends Schema>(this: void, contract: QueueContract<P, R>): QueueHandle<P, R>;
  /** `queue(contract).submit(…)`. */
  submit<P extends Schema, R extends Schema>(
    this: void,
    contract: QueueContract<P, R>,
    payload: InferInput<P>,
    options?: SubmitOptions,
  ): Promise<TaskHandle<R>>;
  /** `queue(contract).call(…)`: submits a task and waits for its result. */
  call<P extends Schema, R extends Schema>(
    this: void,
    contract: QueueContract<P, R>,
    payload: InferInput<P>,
    options?: CallOptions,
  ): Promise<InferOutput<R>>;
  /** A pool. What is still held when the run (or the task) ends is released. */
  pool<P extends Schema, T extends Schema>(this: void, contract: PoolContract<P, T>): PoolHandle<P, T>;
  /**
   * A lock that all automations and hosts share. Null where somebody else has it for longer than it was waited for, or where the run (or the
   * task) is to end meanwhile. What is still held when the run (or the task) ends is released.
   */
  lock(this: void, name: string, options?: LockOptions): Promise<LockLease | null>;
  /** A number that all automations and hosts share. */
  counter(this: void, name: string, options?: CounterOptions): Counter;
  /** A rate that all automations and hosts share. */
  rateLimit(this: void, name: string, options: RateLimitOptions): RateLimit;
  readonly events: Events;
  /** Turns until the slot is to end; each turn counts as an iteration. */
  loop(this: void, options?: LoopOptions): AsyncIterable<Turn>;
  /** Ends early, without an error, when the slot is to end. */
  sleep(this: void, seconds: number): Promise<void>;
  /** Says that this slot gets on, where neither a turn, an emit nor a pop shows it. */
  progress(this: void): void;
  readonly state: SlotStateValue<State, StateInput>;
}

export type OutputSchema<O> = O extends StreamContract<infer S> ? S : O extends Schema ? O : never;
/** The contract behind a definition's `output`: none where there is none, and either where it is not known. */
export type OutputOf<O> = [O] extends [Schema<never>]
  ? undefined
  : Schema extends O
    ? StreamContract | undefined
    : StreamContract<OutputSchema<O>>;
export type ContextOf<C extends Schema, O, St extends Schema> = Context<
  InferOutput<C>,
  InferInput<OutputSchema<O>>,
  InferOutput<St>,
  InferInput<St>
>;
