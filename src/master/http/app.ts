import { setMaxListeners } from "node:events";
import { Hono, type Context } from "hono";
import { type Route, paramNames } from "../../client/route.ts";
import { API_ROOT, ROUTES } from "../../client/routes.ts";
import { checkName } from "../../contracts/name.ts";
import { isFleetError } from "../../errors.ts";
import { Throttle } from "../../internal/log.ts";
import { monotonicMs } from "../../internal/timers.ts";
import { type Asked, type EventSource, type Handlers, RawJson } from "../handler.ts";
import type { Services } from "../services.ts";
import type { Authority, Identity } from "./authorise.ts";
import { callerOf } from "./caller.ts";
import { checkedHeaders } from "./check-headers.ts";
import { checkedBody, checkedQuery, refuseQuery } from "./check-input.ts";
import { EVENT_STREAM_HEADERS, eventStream } from "./event-stream.ts";
import { readBody } from "./read-body.ts";
import { problemOf, RequestProblem } from "./request-problem.ts";

const MAX_BODY = 1024 * 1024;
const BODY_MS = 60_000;
const MAX_URL = 8192;
/** A claim's token bears the id of its item. */
const MAX_PARAM = 1024;

export interface AppParts {
  services: Services;
  handlers: Handlers;
  authority: Authority;
  /** So soon a body must be there as a whole; default 60 s. */
  bodyMs?: number | undefined;
  /** Routes outside the table, mounted before it. */
  extras?: (app: Hono, authorise: (c: Context) => Identity) => void;
}

type AnyHandler = (asked: Asked<Route>, services: Services) => unknown;

/**
 * The master's HTTP side: one route of the table after the other. Requests are authorised first, then checked, then handled; whatever is
 * thrown becomes a problem document. It knows nothing of sockets, so it can be called without any.
 */
export function buildApp({ services, handlers, authority, bodyMs = BODY_MS, extras }: AppParts): Hono {
  const app = new Hono({ strict: false });
  // Every request under way listens for the master's end.
  setMaxListeners(0, services.stopping);
  const authorise = (c: Context) =>
    authority.authorise(c.req.header("authorization"), addressOf(c), monotonicMs());

  app.use(async (c, next) => {
    await next();
    c.res.headers.set("x-content-type-options", "nosniff");
    c.res.headers.set("referrer-policy", "no-referrer");
    if (!c.res.headers.has("cache-control")) c.res.headers.set("cache-control", "no-store");
  });
  extras?.(app, authorise);
  for (const [name, route] of Object.entries(ROUTES as Record<string, Route>)) {
    const handler = (handlers as unknown as Record<string, AnyHandler>)[name] as AnyHandler;
    app.on(route.method, API_ROOT + route.path, async (c) => {
      if (c.req.url.length > MAX_URL)
        throw new RequestProblem(400, "FLEET_REQUEST_INVALID", "the address is too long");
      const by = authorise(c);
      const caller = callerOf(c.req.raw.signal, services.stopping);
      let streaming = false;
      let answer: unknown;
      try {
        const asked = await askedOf(c, route, by, { signal: caller.signal, withinMs: bodyMs });
        // Of GET it would be all but the body: a subscription that nobody reads, and nobody ends.
        if (route.events && c.req.method === "HEAD") return c.body(null, 200, EVENT_STREAM_HEADERS);
        answer = await handler(asked, services);
        if (route.events) {
          const source = answer as EventSource;
          await untilReady(source, caller.signal);
          streaming = true;
          return eventStream(source, caller);
        }
      } finally {
        if (!streaming) caller.letGo();
      }
      if (route.answer === null) return c.body(null, 204);
      const text = answer instanceof RawJson ? answer.text : JSON.stringify(answer);
      return c.body(text, route.status as 200, { "content-type": "application/json" });
    });
  }
  app.notFound((c) => {
    authorise(c);
    throw unknownRoute(app, c.req.method, c.req.path);
  });

  const quietly = new Throttle(1000);
  app.onError((error, c) => {
    const { problem, headers } = problemOf(error);
    if (problem.status === 500)
      quietly.pass(monotonicMs(), () =>
        services.log.error("a request failed", {
          method: c.req.method,
          path: c.req.path,
          error: isFleetError(error) ? error.message : (error.stack ?? error.message),
        }),
      );
    return c.body(JSON.stringify(problem), problem.status as 400, {
      ...headers,
      "content-type": "application/problem+json",
    });
  });
  return app;
}

/** A caller that goes meanwhile waits for nothing. */
async function untilReady({ ready }: EventSource, signal: AbortSignal): Promise<void> {
  if (ready === undefined || signal.aborted) return;
  await new Promise<void>((resolve, reject) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
    ready.then(resolve, reject);
  });
}

async function askedOf(
  c: Context,
  route: Route,
  by: Asked<Route>["by"],
  { signal, withinMs }: { signal: AbortSignal; withinMs: number },
): Promise<Asked<Route>> {
  const request = c.req.raw;
  const params = Object.fromEntries(
    paramNames(route.path).map((name) => [name, checkedParam(name, c.req.param(name) ?? "")]),
  );
  const writes = route.method !== "GET";
  const maxBytes = route.maxBodyBytes ?? MAX_BODY;
  const given = writes ? await readBody(request, { maxBytes, withinMs }) : undefined;
  if (given === undefined && route.body !== undefined && route.bodyOptional !== true)
    throw new RequestProblem(400, "FLEET_REQUEST_INVALID", "the body is empty; it must be a JSON object");
  if (route.body === undefined && given !== undefined && Object.keys(given).length > 0)
    throw new RequestProblem(422, "FLEET_REQUEST_INVALID", "this route takes no body");
  const { searchParams } = new URL(request.url);
  if (route.query === undefined) refuseQuery(searchParams, route.body);
  return {
    ...checkedHeaders(route, (name) => c.req.header(name)),
    params,
    query: route.query === undefined ? undefined : checkedQuery(route.query, searchParams),
    body: route.body === undefined ? undefined : checkedBody(route.body, given ?? {}),
    signal,
    by,
  } as Asked<Route>;
}

/** Names follow the one grammar; ids and tokens are somebody's own texts. */
function checkedParam(name: string, value: string): string {
  if (name === "name") return checkName("name", value);
  if (value.length <= MAX_PARAM) return value;
  throw new RequestProblem(400, "FLEET_REQUEST_INVALID", `${name} is longer than ${MAX_PARAM} characters`);
}

function unknownRoute({ routes }: Hono, method: string, path: string): RequestProblem {
  const fitting = routes.filter((one) => one.method !== "ALL" && patternOf(one.path).test(path));
  const methods = [...new Set(fitting.map((one) => one.method))];
  // What takes that method all the same has nothing there: a file of the reference page.
  if (methods.length === 0 || methods.includes(method))
    return new RequestProblem(
      404,
      "FLEET_NOT_FOUND",
      `there is no route ${path}; ${API_ROOT}/openapi.json lists all`,
    );
  return new RequestProblem(
    405,
    "FLEET_REQUEST_INVALID",
    `${path} does not take ${method}, but ${methods.join(", ")}`,
    { headers: { allow: methods.join(", ") } },
  );
}

function patternOf(path: string): RegExp {
  const inner = path
    .split("/")
    .map((part) => (part.startsWith(":") ? "[^/]+" : part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")))
    .join("/");
  return new RegExp(`^${inner}/?$`);
}

/** Of the other end of the socket; empty where there is none. */
function addressOf(c: Context): string {
  const { incoming } = (c.env ?? {}) as { incoming?: { socket?: { remoteAddress?: string } } };
  return incoming?.socket?.remoteAddress ?? "";
}
