import type { InferInput, InferOutput, Schema } from "../contracts/schema/standard.ts";
import type { StreamContract } from "../contracts/stream.ts";
import type { Log } from "../internal/log.ts";
import type { Events } from "../primitives/events.ts";
import type { ConsumerStream } from "../primitives/stream.ts";
import type { PushOptions } from "../primitives/stream-emitter.ts";

/** Why `ctx.signal` was aborted (its `reason`). `"ended"`: the run has returned or thrown, and what it left going ends too. */
export type StopReason =
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
  owns(key: string): boolean;
  /** Id of the worker that runs this slot. */
  readonly worker: string;
  /** Parsed config; live where the automation has `onConfig`. */
  readonly config: Config;
  /** Aborts when the slot is to end; `signal.reason` is a `StopReason`. */
  readonly signal: AbortSignal;
  readonly log: Log;
  /** Appends to the automation's own stream. Throws a `TypeError` for what the declared output does not accept. */
  emit(payload: Output, options?: PushOptions): Promise<{ id: string }>;
  /** As `emit`, for many: all are checked before the first is written. */
  emitMany(payloads: readonly Output[]): Promise<void>;
  /** Another automation's stream, for reading. */
  stream<S extends Schema>(contract: StreamContract<S>): ConsumerStream<S>;
  readonly events: Events;
  /** Turns until the slot is to end; each turn counts as an iteration. */
  loop(options?: LoopOptions): AsyncIterable<Turn>;
  /** Ends early, without an error, when the slot is to end. */
  sleep(seconds: number): Promise<void>;
  /** Says that this slot gets on, where neither a turn, an emit nor a pop shows it. */
  progress(): void;
  readonly state: SlotStateValue<State, StateInput>;
}

export type OutputSchema<O> = O extends StreamContract<infer S> ? S : O extends Schema ? O : never;
export type ContextOf<C extends Schema, O, St extends Schema> = Context<
  InferOutput<C>,
  InferInput<OutputSchema<O>>,
  InferOutput<St>,
  InferInput<St>
>;
