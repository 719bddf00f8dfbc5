import { checkNamespace } from "../contracts/name.ts";
import { checkOptions, number, refuse, text, type OptionRules } from "../contracts/options.ts";
import { FleetError } from "../errors.ts";
import { redactUrl } from "../internal/redact.ts";
import type { Store, StoreOptions } from "./store.ts";

const FORMS =
  "sqlite:path/to/fleet.db, sqlite::memory:, redis://host[:port][/database] (where it wants them, user:password and an at sign before the host), rediss://…, redis+cluster://host:port, redis+sentinel://host:port/master-name, http://host:port or https://host:port of a master (its token by --token or FLEET_TOKEN)";

function isFunction(value: unknown): value is (...args: never[]) => unknown {
  return typeof value === "function";
}

const RULES: OptionRules<Required<StoreOptions>> = {
  namespace: checkNamespace,
  deadlineSeconds: number({ min: 0.05, max: 60 }),
  token: text({ max: 4096 }),
  clockOffsetMs: number(),
  frozenNow: (value, where) =>
    isFunction(value) ? (value as () => number) : refuse(where, "a function", value),
  log: (value, where) =>
    isFunction(value) ? (value as NonNullable<StoreOptions["log"]>) : refuse(where, "a function", value),
};

export type StoreKind = "sqlite" | "redis" | "remote";

/**
 * Which back end an address is for; `"remote"`: it is served by a master, or by a worker for its children. Throws
 * `FLEET_STORE_URL_INVALID` without ever repeating a password.
 */
export function storeKind(url: unknown): StoreKind {
  const scheme = typeof url === "string" ? /^([a-z+]+):./.exec(url)?.[1] : undefined;
  switch (scheme) {
    case "sqlite":
      return "sqlite";
    case "redis":
    case "rediss":
    case "redis+cluster":
    case "redis+sentinel":
    case "rediss+sentinel":
      return "redis";
    case "http":
    case "https":
      if (isPlainAddress(url as string)) return "remote";
      return refuseAddress(url);
    case "fleet+unix":
      return "remote";
    default:
      return refuseAddress(url);
  }
}

/** The token never stands in the address, so neither does anything else that could be one. */
function isPlainAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { username, password, search, hash } = new URL(text);
  return `${username}${password}${search}${hash}` === "" && !text.includes("@");
}

function refuseAddress(url: unknown): never {
  const given = typeof url === "string" ? JSON.stringify(redactUrl(url)) : `(${typeof url})`;
  throw new FleetError(
    "FLEET_STORE_URL_INVALID",
    `${given} is no address of a store; accepted forms: ${FORMS}`,
  );
}

/**
 * Opens the store at `url` and connects to it. The back end's code is loaded only when it is needed.
 * Throws `FLEET_STORE_URL_INVALID`, `FLEET_OPTION_INVALID`, `FLEET_NAME_INVALID` (namespace), and what the back end meets
 * while it connects: `FLEET_STORE_UNAVAILABLE`, `FLEET_STORE_AUTH`, `FLEET_TOKEN_REFUSED`, `FLEET_STORE_INCOMPATIBLE`.
 */
export async function openStore(url: string, options: StoreOptions = {}): Promise<Store> {
  const kind = storeKind(url);
  const checked = checkOptions<Required<StoreOptions>>("store", options, RULES);
  if (kind === "remote") {
    const { openRemoteStore } = await import("./remote/store.ts");
    return openRemoteStore(url, checked);
  }
  if (checked.token !== undefined)
    throw new FleetError(
      "FLEET_OPTION_INVALID",
      "store: token is for a master's address (http://…, https://…)",
    );
  if (kind === "sqlite") {
    const { openSqliteStore } = await import("./sqlite/store.ts");
    return openSqliteStore(url, checked);
  }
  const { openRedisStore } = await import("./redis/store.ts");
  return openRedisStore(url, checked);
}
