import { checkNamespace } from "../../contracts/name.ts";
import { checkOptions, number } from "../../contracts/options.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { DamageBook } from "../damage.ts";
import type { Store, StoreOptions } from "../store.ts";
import { createCheckpointer } from "./checkpoint.ts";
import { storeClock } from "./clock.ts";
import { type Database, openFile, openMemory } from "./database.ts";
import { createEdges } from "./edges.ts";
import { createEvents } from "./events.ts";
import { ensureFleet, readFleetId } from "./fleet-row.ts";
import { sqlitePath } from "./location.ts";
import { createNotifier } from "./notify.ts";
import { createPools } from "./pools.ts";
import { createQueues } from "./queues.ts";
import { createRegistry } from "./registry.ts";
import { createState } from "./state.ts";
import { createStreams } from "./streams.ts";
import { wipeNamespace } from "./wipe.ts";
import { createWriter } from "./writer.ts";

const DEFAULT_DEADLINE_SECONDS = 5;

/**
 * Opens the embedded store: `sqlite:path` (one machine, any number of processes) or `sqlite::memory:` (this handle alone).
 * Makes the file, and the directories to it, where there are none. Throws `FLEET_STORE_URL_INVALID`,
 * `FLEET_STORE_UNAVAILABLE` or `FLEET_STORE_INCOMPATIBLE`.
 */
export async function openSqliteStore(url: string, options: StoreOptions = {}): Promise<Store> {
  const namespace = checkNamespace(options.namespace ?? "");
  const { deadlineSeconds = DEFAULT_DEADLINE_SECONDS } = checkOptions(
    "openStore",
    { deadlineSeconds: options.deadlineSeconds },
    { deadlineSeconds: number({ min: 0.05, max: 60 }) },
  );
  const deadlineMs = deadlineSeconds * 1000;
  const path = sqlitePath(url);
  const db = path === undefined ? await openMemory() : await openFile(path, deadlineMs);
  return assemble(db, namespace, deadlineMs, options);
}

async function assemble(
  db: Database,
  namespace: string,
  deadlineMs: number,
  options: StoreOptions,
): Promise<Store> {
  const clock = storeClock(options);
  const checkpointer = createCheckpointer(db);
  const writer = createWriter(db, { deadlineMs, afterCommit: () => checkpointer.committed() });
  const notifier = createNotifier(db, options.log ?? (() => {}));

  let fleetId: string;
  try {
    fleetId = await writer.write(() => ensureFleet(db, namespace, uuidv7(), clock()), {
      shortcut: () => readFleetId(db, namespace),
    });
  } catch (error) {
    db.close();
    throw error;
  }

  const damage = new DamageBook(options.log);
  const parts = { db, ns: namespace, fleetId, clock, writer, notifier, damage };
  const streams = createStreams(parts);
  const events = createEvents(parts);
  const registry = createRegistry(parts);

  let closing: Promise<void> | undefined;
  async function close(): Promise<void> {
    await writer.close();
    notifier.close();
    checkpointer.close();
    db.close();
  }

  return {
    traits: { kind: "sqlite", multiProcess: db.path !== undefined, multiHost: false, entriesPerPush: 500 },
    namespace,
    fleetId,
    streams,
    queues: createQueues(parts),
    pools: createPools(parts),
    state: createState(parts),
    events,
    edges: createEdges(parts),
    registry,
    now: () => writer.read(clock),
    damaged: () => Promise.resolve(damage.all()),
    wipe: () => writer.write(() => ({ deleted: wipeNamespace(db, namespace) })),
    close: () => (closing ??= close()),
  };
}
