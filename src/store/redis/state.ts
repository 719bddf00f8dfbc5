import type { StateStore } from "../state-store.ts";
import type { RedisParts } from "./parts.ts";
import { redisCounters } from "./state-counters.ts";
import { redisLimits } from "./state-limits.ts";
import { redisLocks } from "./state-locks.ts";

export function redisState(parts: RedisParts): StateStore {
  return { locks: redisLocks(parts), counters: redisCounters(parts), limits: redisLimits(parts) };
}
