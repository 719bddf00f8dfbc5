import type { Context, Hono } from "hono";
import { API_ROOT } from "../../client/routes.ts";
import { openApiDocument } from "../openapi.ts";
import type { Services } from "../services.ts";
import { RequestProblem } from "./request-problem.ts";

export interface HealthParts {
  services: Services;
  /** Throws where the caller has no token. */
  authorise: (c: Context) => unknown;
  /** Why this master cannot take part in leading; undefined where it can. */
  trouble: () => string | undefined;
  /** The text of `/metrics`. */
  metrics: () => Promise<{ type: string; text: string }>;
}

/** Routes outside the table: whether it lives, whether it can work, what it counts, and what its routes are. */
export function addHealth(app: Hono, { services, authorise, trouble, metrics }: HealthParts): void {
  let document: string | undefined;
  app.get("/healthz", (c) => c.text("ok\n"));
  app.get("/readyz", async (c) => {
    authorise(c);
    await services.store.now();
    // A store that can be read but not written to: nobody can lead, and nothing goes on.
    const why = trouble();
    if (why !== undefined) throw new RequestProblem(503, "FLEET_STORE_UNAVAILABLE", why, { retryable: true });
    return c.text("ready\n");
  });
  app.get("/metrics", async (c) => {
    authorise(c);
    const { type, text } = await metrics();
    return c.body(text, 200, { "content-type": type });
  });
  app.get(`${API_ROOT}/openapi.json`, (c) => {
    authorise(c);
    document ??= JSON.stringify(openApiDocument());
    return c.body(document, 200, { "content-type": "application/json" });
  });
}
