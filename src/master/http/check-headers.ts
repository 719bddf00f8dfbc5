import { type Route, ROUTE_HEADERS, type RouteHeader } from "../../client/route.ts";
import { hasField } from "./check-input.ts";
import { RequestProblem } from "./request-problem.ts";

/** What a route that does not go by a header says of it. */
const REMEDIES: Record<RouteHeader, (route: Route) => string> = {
  ifMatch: () => "only the routes that change a config compare generations; leave it out",
  idempotencyKey: ({ body }) =>
    hasField(body, "id")
      ? "only submissions of tasks take it; leave it out, and give an `id` of your own in the body"
      : "only submissions of tasks take it; leave it out, and look how things stand before you repeat this",
};

/**
 * The headers that mean something to the route. Throws 400 for one that would mean something to another: who sends it relies on it. Headers by
 * which browsers and proxies ask whether something has changed are none of these.
 */
export function checkedHeaders(
  route: Route,
  valueOf: (name: string) => string | undefined,
): Record<RouteHeader, string | undefined> {
  const values = { ifMatch: undefined, idempotencyKey: undefined } as Record<RouteHeader, string | undefined>;
  for (const key of Object.keys(values) as RouteHeader[]) {
    const { name } = ROUTE_HEADERS[key];
    const value = valueOf(name);
    if (value !== undefined && route.headers?.includes(key) !== true)
      throw new RequestProblem(
        400,
        "FLEET_REQUEST_INVALID",
        `this route takes no ${name}: ${REMEDIES[key](route)}`,
      );
    values[key] = value;
  }
  checkKey(values.idempotencyKey);
  return values;
}

function checkKey(key: string | undefined): void {
  if (key === undefined || /^[\x20-\x7e]{1,128}$/.test(key)) return;
  throw new RequestProblem(
    400,
    "FLEET_REQUEST_INVALID",
    "Idempotency-Key must be 1 to 128 printable characters",
  );
}
