// Which store and namespace a command works on: flag before environment before config file before default.
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { checkNamespace } from "../contracts/name.ts";
import { FleetError } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { redactUrl } from "../internal/redact.ts";
import { findConfig } from "../project/files.ts";
import { absoluteAddress, DEFAULT_STORE, sqliteFile } from "../project/store-address.ts";
import { openStore, storeKind } from "../store/open.ts";
import type { Store, StoreOptions } from "../store/store.ts";
import type { StoreFlags, TargetFlags } from "./options.ts";

/** A store, named but not opened. */
export interface Target {
  /** Address that is right in any folder; may hold a password. */
  url: string;
  /** The address as it was given, without user and password. */
  shown: string;
  /** Of a master: empty for whichever it serves. */
  namespace: string;
  /** Given where the store is served by a master. */
  token?: string | undefined;
}

/** What a project's config file says about its store. */
export interface Settings {
  /** The project's folder: what its relative addresses start from. */
  dir: string;
  store: string | undefined;
  namespace: string | undefined;
}

export function chooseTarget(flags: StoreFlags, settings: Settings): Target {
  const typed = typedAddress(flags);
  const given = typed ?? settings.store ?? defaultStore();
  const served = storeKind(given) === "remote";
  if (flags.token !== undefined && !served)
    throw new FleetError("FLEET_USAGE", "--token is for a master; name it by --master");
  if (given === "sqlite::memory:") {
    throw new FleetError(
      "FLEET_STORE_URL_INVALID",
      "sqlite::memory: lives and ends within one process, so no command can share it; use a file, as in sqlite:.fleet/fleet.db",
    );
  }
  return {
    url: absoluteAddress(given, typed === undefined ? settings.dir : process.cwd()),
    shown: redactUrl(given),
    namespace: checkNamespace(flags.namespace ?? process.env.FLEET_NAMESPACE ?? settings.namespace ?? ""),
    ...(served ? { token: flags.token ?? nonEmpty(process.env.FLEET_TOKEN) } : {}),
  };
}

/** The address that flags or environment name: of a store, or of a master whose store is meant. */
function typedAddress({ store, master }: StoreFlags): string | undefined {
  if (store !== undefined && master !== undefined)
    throw new FleetError("FLEET_USAGE", "--store and --master name two stores; leave one out");
  if (store !== undefined) return store;
  if (master !== undefined) return masterAddress(master, "--master");
  const [ownStore, ownMaster] = [nonEmpty(process.env.FLEET_STORE), nonEmpty(process.env.FLEET_MASTER)];
  if (ownStore !== undefined && ownMaster !== undefined)
    throw new FleetError(
      "FLEET_USAGE",
      "FLEET_STORE and FLEET_MASTER are both set and name two stores; say which by --store or --master",
    );
  return ownMaster === undefined ? ownStore : masterAddress(ownMaster, "FLEET_MASTER");
}

function masterAddress(url: string, where: string): string {
  if (/^https?:/i.test(url)) return url;
  throw new FleetError(
    "FLEET_STORE_URL_INVALID",
    `${where} is ${JSON.stringify(redactUrl(url))}, which is no address of a master; it looks like http://host:4400 or https://host`,
  );
}

/**
 * The target of a command that only needs a store. The config file is loaded only where flags and environment leave the
 * store or the namespace open: a namespace that it sets must count here just as it does for the workers. A master knows its own.
 */
export async function findTarget(flags: TargetFlags): Promise<Target> {
  const dir = process.cwd();
  const address = typedAddress(flags);
  const open =
    flags.config !== undefined ||
    address === undefined ||
    (!/^https?:/.test(address) && (flags.namespace ?? process.env.FLEET_NAMESPACE) === undefined);
  const settings = open ? await settingsIn(dir, flags.config) : undefined;
  return chooseTarget(flags, settings ?? { dir, store: undefined, namespace: undefined });
}

/** The compiler and all that reads a project is loaded only where there is a config file. */
async function settingsIn(dir: string, config?: string): Promise<Settings | undefined> {
  if (findConfig(dir, config) === undefined) return undefined;
  const { loadSettings } = await import("../project/project.ts");
  return loadSettings(dir, config);
}

/** Opens a store that must be there already: no SQLite file is made only to find it empty. */
export async function openExisting(target: Target): Promise<Store> {
  const file = sqliteFile(target.url, process.cwd());
  if (file !== undefined && !existsSync(file)) {
    throw new FleetError(
      "FLEET_STORE_UNAVAILABLE",
      `there is no store at ${target.shown} (${file} does not exist); start one with "fleet up", or name another with --store, or a master with --master`,
    );
  }
  return openStore(target.url, accessOf(target));
}

function accessOf({ url, namespace, token }: Target): StoreOptions {
  if (storeKind(url) !== "remote") return { namespace };
  return { token, ...(namespace === "" ? {} : { namespace }) };
}

/** Opens a store for workers and masters; a SQLite file is made where there is none. */
export function openForWorker(target: Target, log: Log, deadlineSeconds?: number): Promise<Store> {
  return openStore(target.url, {
    ...(deadlineSeconds === undefined ? {} : { deadlineSeconds }),
    ...accessOf(target),
    log: (level, message, fields) => log[level](message, fields),
  });
}

/** Opens the store of a command, hands it over, and closes it whatever happens. */
export async function withStore<T>(
  flags: TargetFlags,
  use: (store: Store, target: Target) => Promise<T>,
): Promise<T> {
  const target = await findTarget(flags);
  const store = await openExisting(target);
  try {
    return await use(store, { ...target, namespace: store.namespace });
  } finally {
    await store.close();
  }
}

/** The SQLite file in the data folder. */
function defaultStore(): string {
  const dataDir = nonEmpty(process.env.FLEET_DATA_DIR);
  return dataDir === undefined ? DEFAULT_STORE : `sqlite:${resolve(dataDir, "fleet.db")}`;
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === "" ? undefined : text;
}
