import type { StateStore } from "../state-store.ts";
import type { Clock } from "./clock.ts";
import type { Database } from "./database.ts";
import type { Notifier } from "./notify.ts";
import { createCounters } from "./state-counters.ts";
import { createLimits } from "./state-limits.ts";
import { createLocks } from "./state-locks.ts";
import type { Writer } from "./writer.ts";

export function createState(parts: {
  db: Database;
  ns: string;
  fleetId: string;
  clock: Clock;
  writer: Writer;
  notifier: Notifier;
}): StateStore {
  return { locks: createLocks(parts), counters: createCounters(parts), limits: createLimits(parts) };
}
