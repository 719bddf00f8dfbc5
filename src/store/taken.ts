import type { WorkerInfo } from "../protocol/status.ts";
import { workerInfo } from "./records.ts";

/** Who bears an id by now; what it said of itself may be none that can be read. */
export function holderOf(text: string, id: string): WorkerInfo {
  try {
    return workerInfo(text, id);
  } catch {
    const unknown = "unknown";
    return {
      id,
      incarnation: unknown,
      host: unknown,
      pid: 0,
      version: unknown,
      startedAt: 0,
      capacity: 0,
      labels: {},
      automations: [],
      draining: false,
    };
  }
}
