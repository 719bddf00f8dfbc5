// The entry "fleet-framework": for authors of automations and for embedders.

// Automations
export {
  defineContinuous,
  type ContinuousAutomation,
  type ContinuousOptions,
} from "./automation/definition.ts";
export { defineBatch, type BatchAutomation, type BatchOptions } from "./automation/definition-batch.ts";
export type { ActiveTask } from "./automation/active-task.ts";
export { FatalError, RetryAfter } from "./automation/task-errors.ts";
export type { Context, LoopOptions, SlotStateValue, StopReason, Turn } from "./automation/context.ts";
export { defineConfig, type ProjectConfig } from "./project/config.ts";

// Contracts
export { defineStream, type StreamContract, type StreamOptions } from "./contracts/stream.ts";
export { defineQueue, type Backoff, type QueueContract, type QueueOptions } from "./contracts/queue.ts";
export {
  definePool,
  type PoolContract,
  type PoolDefinition,
  type PoolOptions,
  type RefillOptions,
} from "./contracts/pool.ts";
export type { Where } from "./contracts/pool-tags.ts";
export { defineTopic, type TopicContract, type TopicOptions } from "./contracts/topic.ts";
export { FLEET_TOPICS, type SlotEnded, type SlotOfEvent } from "./contracts/life-cycle.ts";
export type { InferInput, InferOutput, JsonSchema, Schema } from "./contracts/schema/standard.ts";

// Handles outside automations
export { openFleet, type Fleet, type FleetOptions } from "./automation/fleet.ts";
export type { ConsumerStream, PeekOptions, PopOptions, StreamHandle } from "./primitives/stream.ts";
export type { CallOptions, QueueHandle, Task, TaskHandle, WaitOptions } from "./primitives/queue.ts";
export type {
  ClaimOptions,
  ItemToPut,
  Lease,
  PeekItems,
  PoolHandle,
  PoolItem,
  PoolSelection,
} from "./primitives/pool.ts";
export type { SubmitOptions } from "./primitives/queue-options.ts";
export type { ScheduleOptions } from "./primitives/schedule-spec.ts";
export type { LockLease, LockOptions } from "./primitives/lock.ts";
export type { Counter, CounterOptions } from "./primitives/counter.ts";
export type { QueueRateLimit, RateLimitOptions, RateWindow } from "./contracts/rate-limit.ts";
export type { RateLimit, TakeOptions, TakeResult } from "./primitives/rate-limit.ts";
export type { PushOptions } from "./primitives/stream-emitter.ts";
export type { EventInput, EventOutput, Events } from "./primitives/events.ts";
export type { ReceivedEvent, SubscribeOptions, Subscription } from "./primitives/subscription.ts";
export type { Envelope } from "./protocol/envelope.ts";
export type { Log, LogFields, LogLevel } from "./internal/log.ts";
export type { FailureReason, OnDuplicate, TaskState } from "./protocol/task.ts";

export type { PoolStats } from "./store/pool-store.ts";
export type { ItemState, RetireReason } from "./protocol/pool.ts";

// The store port
export { openStore } from "./store/open.ts";
export type { Store, StoreOptions } from "./store/store.ts";

// Errors
export { FleetError, isFleetError, type ErrorCode } from "./errors.ts";
