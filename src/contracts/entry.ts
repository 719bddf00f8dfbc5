// The entry "fleet-framework/contracts": contracts alone, no Node imports, for shared packages and browsers.
export { defineStream, type StreamContract, type StreamOptions } from "./stream.ts";
export { defineQueue, type Backoff, type QueueContract, type QueueOptions } from "./queue.ts";
export {
  definePool,
  type PoolContract,
  type PoolDefinition,
  type PoolOptions,
  type RefillOptions,
} from "./pool.ts";
export type { Where } from "./pool-tags.ts";
export { defineTopic, type TopicContract, type TopicOptions } from "./topic.ts";
export { FLEET_TOPICS, type SlotEnded, type SlotOfEvent } from "./life-cycle.ts";
export type { InferInput, InferOutput, JsonSchema, Schema } from "./schema/standard.ts";
export { FleetError, isFleetError, type ErrorCode } from "../errors.ts";
