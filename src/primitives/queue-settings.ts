import type { QueueContract } from "../contracts/queue.ts";
import type { QueueSettings } from "../store/queue-store.ts";
import { toMs } from "./queue-options.ts";

/** What a contract says of its queue as a whole: what the store goes by. */
export function settingsOf({ options }: Pick<QueueContract, "options">): QueueSettings {
  return {
    maxLength: options.maxLength,
    maxPayloadBytes: options.maxPayloadBytes,
    concurrency: options.concurrency,
    keyConcurrency: options.keyConcurrency,
    crashLimit: options.crashLimit,
    keepMs: toMs(options.keepSeconds),
    keepCount: options.keepCount,
    keepFailedMs: toMs(options.keepFailedSeconds),
    keepFailedCount: options.keepFailedCount,
  };
}
