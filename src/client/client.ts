import { checkOptions, describe, type OptionRules, refuse } from "../contracts/options.ts";
import { FleetError, isFleetError, messageOf } from "../errors.ts";
import { redactUrl } from "../internal/redact.ts";
import { eventsOf } from "./event-stream.ts";
import { errorOf } from "./problem.ts";
import { type Route, ROUTE_HEADERS, type RouteAnswer, type RouteHeader, type RouteInput } from "./route.ts";
import { API_ROOT, ROUTES, type RouteName, type Routes } from "./routes.ts";

export interface ClientOptions {
  /** Address of a master, as in `http://127.0.0.1:4400`; behind a proxy with its path. */
  url: string;
  /** The master's token. */
  token: string;
  /** How requests are made; default the platform's `fetch`. */
  fetch?: (request: Request) => Response | Promise<Response>;
}

export interface CallOptions {
  signal?: AbortSignal;
  /**
   * Of `tailOutput`: told how many entries were left out at this place, because this reader is too slow. Events of `tailEvents` say so
   * themselves, by their `missed`.
   */
  onGap?: (missed: number) => void;
}

type Call<R extends Route> = R["events"] extends true
  ? (input: RouteInput<R>, options?: CallOptions) => AsyncGenerator<RouteAnswer<R>, void, void>
  : // oxlint-disable-next-line typescript/no-generated-empty-object-type -- "nothing has to be given" is what is asked.
    Record<never, never> extends RouteInput<R>
    ? (input?: RouteInput<R>, options?: CallOptions) => Promise<RouteAnswer<R>>
    : (input: RouteInput<R>, options?: CallOptions) => Promise<RouteAnswer<R>>;

/** One call per route of the API, by the name of its operation. */
export type Client = { readonly [Name in RouteName]: Call<Routes[Name]> };

interface AnyInput {
  [param: string]: unknown;
  query?: Record<string, string | number | boolean | undefined>;
  body?: unknown;
}

/**
 * A typed client of a master. Calls throw `FleetError`s with the master's code; `FLEET_STORE_UNAVAILABLE` (with `outcome: "unknown"` for
 * what changes something) where it cannot be reached. Nothing is sent twice by itself. Throws `FLEET_OPTION_INVALID`.
 */
export function createClient(given: ClientOptions): Client {
  const options = checkedOptions(given);
  const base = new URL(options.url);
  const entries = Object.entries(ROUTES as Record<string, Route>).map(([name, route]) => {
    const request = (input: AnyInput = {}, { signal }: CallOptions = {}) =>
      send(options, requestOf(base, route, input, options.token, signal));
    const call = route.events
      ? async function* (input?: AnyInput, how?: CallOptions) {
          yield* eventsOf(await request(input, how), how?.onGap);
        }
      : async (input?: AnyInput, how?: CallOptions) => {
          const response = await request(input, how);
          return response.status === 204 ? undefined : response.json();
        };
    return [name, call];
  });
  return Object.freeze(Object.fromEntries(entries)) as Client;
}

const RULES: OptionRules<Required<ClientOptions>> = {
  url: checkUrl,
  token: (value, where) => {
    if (typeof value === "string" && /^[\x21-\x7e]{1,512}$/.test(value)) return value;
    // Never repeats it.
    throw new FleetError(
      "FLEET_OPTION_INVALID",
      `${where} must be the master's token, 1 to 512 printable characters without blanks`,
    );
  },
  fetch: (value, where) =>
    typeof value === "function"
      ? (value as Required<ClientOptions>["fetch"])
      : refuse(where, "a function that makes a request, as the platform's fetch", value),
};

function checkedOptions(given: ClientOptions): ClientOptions {
  const { url, token, ...rest } = checkOptions<Required<ClientOptions>>("createClient", given, RULES);
  if (url === undefined)
    throw new FleetError(
      "FLEET_OPTION_INVALID",
      'createClient: url is missing, for example { url: "http://127.0.0.1:4400", token }',
    );
  if (token === undefined)
    throw new FleetError(
      "FLEET_OPTION_INVALID",
      "createClient: token is missing; it is the master's FLEET_TOKEN, or is kept in its .fleet/token",
    );
  return { url, token, ...rest };
}

function checkUrl(value: unknown, where: string): string {
  if (typeof value === "string" && URL.canParse(value)) {
    const { protocol, username, password } = new URL(value);
    if (/^https?:$/.test(protocol) && username === "" && password === "") return value;
  }
  const shown = typeof value === "string" ? describe(redactUrl(value)) : describe(value);
  throw new FleetError(
    "FLEET_OPTION_INVALID",
    `${where} must be the address of a master without a user or password, as in http://127.0.0.1:4400, got ${shown}`,
  );
}

function requestOf(
  base: URL,
  route: Route,
  input: AnyInput,
  token: string,
  signal: AbortSignal | undefined,
): Request {
  const path = route.path.replace(/:([a-z_]+)/g, (_, name: string) => {
    const value = input[name];
    // A part of an address that is one or two dots is no part of it: the request would go elsewhere.
    if (typeof value === "string" && /^\.{1,2}$/.test(value))
      throw new FleetError(
        "FLEET_OPTION_INVALID",
        `client: ${name} ${JSON.stringify(value)} can stand in no address`,
      );
    if (typeof value === "string" && value !== "") return encodeURIComponent(value);
    throw new FleetError("FLEET_OPTION_INVALID", `client: ${route.method} ${route.path}: ${name} is missing`);
  });
  const url = new URL(base.pathname.replace(/\/+$/, "") + API_ROOT + path, base.origin);
  for (const [key, value] of Object.entries(input.query ?? {}))
    if (value !== undefined) url.searchParams.set(key, String(value));
  const headers = new Headers({ authorization: `Bearer ${token}` });
  for (const header of Object.keys(ROUTE_HEADERS) as RouteHeader[]) {
    const value = input[header];
    if (typeof value === "string") headers.set(ROUTE_HEADERS[header].name, value);
  }
  const body = input.body === undefined ? undefined : JSON.stringify(input.body);
  if (body !== undefined) headers.set("content-type", "application/json");
  return new Request(url, {
    method: route.method,
    headers,
    ...(body === undefined ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
  });
}

async function send({ fetch: how = fetch, url }: ClientOptions, request: Request): Promise<Response> {
  let response: Response;
  try {
    response = await how(request);
  } catch (error) {
    if (isFleetError(error)) throw error;
    request.signal.throwIfAborted();
    throw new FleetError(
      "FLEET_STORE_UNAVAILABLE",
      `the master at ${url} cannot be reached: ${reasonOf(error)}`,
      {
        cause: error,
        retryable: true,
        ...(request.method === "GET" ? {} : { outcome: "unknown" as const }),
      },
    );
  }
  if (response.ok) return response;
  const body: unknown = await response.json().catch(() => undefined);
  throw errorOf(response.status, body);
}

/** `fetch` says "fetch failed" and hides the reason in its cause. */
function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: unknown };
  return messageOf(cause ?? error);
}
