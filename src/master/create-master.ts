import { checkNamespace } from "../contracts/name.ts";
import { checkOptions, integer, logger, refuse, text, type OptionRules } from "../contracts/options.ts";
import { FleetError } from "../errors.ts";
import { SILENT, type Log } from "../internal/log.ts";
import { redactUrl } from "../internal/redact.ts";
import { openStore, storeKind } from "../store/open.ts";
import { DEFAULT_HOST, DEFAULT_PORT, type Master, startMaster } from "./master.ts";
import { checkToken } from "./token.ts";

export interface CreateMasterOptions {
  /** Address of the store. */
  store: string;
  namespace?: string;
  /** The admin token, 16 to 512 printable characters: whoever has it may do everything. */
  token: string;
  /** Where it listens; default `127.0.0.1`, which only this machine can reach. */
  host?: string;
  /** Default 4400; 0 for any that is free. */
  port?: number;
  /** Redis address that workers get when they join, as their hosts see it; default: they go through the master. */
  workerStore?: string;
  /** A leader not heard of for so long is replaced, in milliseconds; 500 to 600 000, default 10 000. */
  leaseMs?: number;
  /** How often the leader clears what has expired, in milliseconds; 100 to 600 000, default 20 000. */
  sweepMs?: number;
  log?: Log;
}

const RULES: OptionRules<Required<CreateMasterOptions>> = {
  store: text({ max: 4096 }),
  namespace: checkNamespace,
  token: (value, where) =>
    typeof value === "string" ? checkToken(value, where) : refuse(where, "a text", value),
  host: text({ max: 255 }),
  port: integer({ min: 0, max: 65_535 }),
  workerStore: (value, where) => {
    if (isRedis(value)) return value;
    const shown = typeof value === "string" ? redactUrl(value) : value;
    return refuse(where, "a Redis address as other hosts see it, or left out", shown);
  },
  leaseMs: integer({ min: 500, max: 600_000 }),
  sweepMs: integer({ min: 100, max: 600_000 }),
  log: logger,
};

function isRedis(value: unknown): value is string {
  try {
    return typeof value === "string" && storeKind(value) === "redis";
  } catch {
    return false;
  }
}

/**
 * Runs a master inside this process: the REST API, the store for workers of other hosts, and its part in leading the fleet. Closing it
 * closes its connection to the store. Throws `FLEET_OPTION_INVALID` or `FLEET_NAME_INVALID` before it connects, and what `openFleet` does.
 */
export async function createMaster(options: CreateMasterOptions): Promise<Master & AsyncDisposable> {
  const given = checkOptions<Required<CreateMasterOptions>>("createMaster", options, RULES);
  const { store: url, token, log = SILENT } = given;
  if (url === undefined)
    throw new FleetError(
      "FLEET_OPTION_INVALID",
      'createMaster: store is missing, for example { store: "redis://127.0.0.1:6379" }',
    );
  if (token === undefined)
    throw new FleetError(
      "FLEET_OPTION_INVALID",
      "createMaster: token is missing; whoever has it may do everything, so make it long and random",
    );
  const store = await openStore(url, {
    namespace: given.namespace,
    log: (level, message, fields) => log[level](message, fields),
  });
  try {
    const master = await startMaster({
      store,
      token,
      host: given.host ?? DEFAULT_HOST,
      port: given.port ?? DEFAULT_PORT,
      leaseMs: given.leaseMs ?? 10_000,
      sweepMs: given.sweepMs ?? 20_000,
      workerStore: given.workerStore,
      log,
    });
    let over: Promise<void> | undefined;
    const close = () =>
      (over ??= (async () => {
        try {
          await master.close();
        } finally {
          await store.close();
        }
      })());
    return {
      url: master.url,
      get leading() {
        return master.leading;
      },
      close,
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}
