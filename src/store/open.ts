import { checkNamespace } from "../contracts/name.ts";
import { checkOptions, number, refuse, type OptionRules } from "../contracts/options.ts";
import { FleetError } from "../errors.ts";
import { redactUrl } from "../internal/redact.ts";
import type { Store, StoreOptions } from "./store.ts";

const FORMS =
  "sqlite:path/to/fleet.db, sqlite::memory:, redis://[user:password@]host[:port][/database], rediss://…, redis+cluster://host:port, redis+sentinel://host:port/master-name";

function isFunction(value: unknown): value is (...args: never[]) => unknown {
  return typeof value === "function";
}

const RULES: OptionRules<Required<StoreOptions>> = {
  namespace: checkNamespace,
  deadlineSeconds: number({ min: 0.05, max: 60 }),
  clockOffsetMs: number(),
  frozenNow: (value, where) =>
    isFunction(value) ? (value as () => number) : refuse(where, "a function", value),
  log: (value, where) =>
    isFunction(value) ? (value as NonNullable<StoreOptions["log"]>) : refuse(where, "a function", value),
};

export type StoreKind = "sqlite" | "redis";

/** Which back end an address is for. Throws `FLEET_STORE_URL_INVALID` without ever repeating a password. */
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
    default: {
      const given = typeof url === "string" ? JSON.stringify(redactUrl(url)) : `(${typeof url})`;
      throw new FleetError(
        "FLEET_STORE_URL_INVALID",
        `${given} is no address of a store; accepted forms: ${FORMS}`,
      );
    }
  }
}

/**
 * Opens the store at `url` and connects to it. The back end's code is loaded only when it is needed.
 * Throws `FLEET_STORE_URL_INVALID`, `FLEET_OPTION_INVALID`, `FLEET_NAME_INVALID` (namespace), and what the back end meets
 * while it connects: `FLEET_STORE_UNAVAILABLE`, `FLEET_STORE_AUTH`, `FLEET_STORE_INCOMPATIBLE`.
 */
export async function openStore(url: string, options: StoreOptions = {}): Promise<Store> {
  const kind = storeKind(url);
  const checked = checkOptions<Required<StoreOptions>>("store", options, RULES);
  if (kind === "sqlite") {
    const { openSqliteStore } = await import("./sqlite/store.ts");
    return openSqliteStore(url, checked);
  }
  const { openRedisStore } = await import("./redis/store.ts");
  return openRedisStore(url, checked);
}
