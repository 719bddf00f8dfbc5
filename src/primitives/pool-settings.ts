import type { PoolContract } from "../contracts/pool.ts";
import type { PoolSettings } from "../store/pool-store.ts";
import { toMs } from "./queue-options.ts";

/** What a contract says of its pool as a whole: what the store goes by. */
export function poolSettings({ options }: Pick<PoolContract, "options">): PoolSettings {
  return {
    strategy: options.strategy,
    maxUses: options.maxUses,
    maxAgeMs: toMs(options.maxAgeSeconds),
    cooldownMs: toMs(options.cooldownSeconds),
    retireAtScore: options.retireAtScore,
    maxPayloadBytes: options.maxPayloadBytes,
    keepRetiredMs: toMs(options.keepRetiredSeconds),
    keepRetiredCount: options.keepRetiredCount,
  };
}
