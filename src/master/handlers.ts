import type { Handlers } from "./handler.ts";
import { AUTOMATION_HANDLERS } from "./handlers/automations.ts";
import { CONFIG_HANDLERS } from "./handlers/configs.ts";
import { EVENT_HANDLERS } from "./handlers/events.ts";
import { OUTPUT_HANDLERS } from "./handlers/output.ts";
import { POOL_HANDLERS } from "./handlers/pools.ts";
import { SCHEDULE_HANDLERS } from "./handlers/schedules.ts";
import { TASK_HANDLERS } from "./handlers/tasks.ts";
import { WORKER_HANDLERS } from "./handlers/workers.ts";

/** What answers each route of the table. */
export const HANDLERS: Handlers = {
  ...AUTOMATION_HANDLERS,
  ...CONFIG_HANDLERS,
  ...OUTPUT_HANDLERS,
  ...TASK_HANDLERS,
  ...SCHEDULE_HANDLERS,
  ...POOL_HANDLERS,
  ...EVENT_HANDLERS,
  ...WORKER_HANDLERS,
};
