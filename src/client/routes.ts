import { AUTOMATION_ROUTES } from "./routes/automations.ts";
import { EVENT_ROUTES } from "./routes/events.ts";
import { OUTPUT_ROUTES } from "./routes/output.ts";
import { POOL_ROUTES } from "./routes/pools.ts";
import { SCHEDULE_ROUTES } from "./routes/schedules.ts";
import { TASK_ROUTES } from "./routes/tasks.ts";
import { WORKER_ROUTES } from "./routes/workers.ts";

/** Where the API begins. */
export const API_ROOT = "/api/v1";

/** All routes of the API, by the name of their operation. */
export const ROUTES = {
  ...AUTOMATION_ROUTES,
  ...OUTPUT_ROUTES,
  ...TASK_ROUTES,
  ...SCHEDULE_ROUTES,
  ...POOL_ROUTES,
  ...EVENT_ROUTES,
  ...WORKER_ROUTES,
};

export type Routes = typeof ROUTES;
export type RouteName = keyof Routes;
