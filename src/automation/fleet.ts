import { setMaxListeners } from "node:events";
import type { PoolContract } from "../contracts/pool.ts";
import type { QueueContract } from "../contracts/queue.ts";
import type { InferInput, InferOutput, Schema } from "../contracts/schema/standard.ts";
import type { StreamContract } from "../contracts/stream.ts";
import { checkNamespace } from "../contracts/name.ts";
import { checkOptions, logger, number, text, type OptionRules } from "../contracts/options.ts";
import { FleetError } from "../errors.ts";
import { SILENT, type Log } from "../internal/log.ts";
import { uuidv7 } from "../internal/uuid.ts";
import { publisherOf } from "../primitives/event-publisher.ts";
import { eventBus, type Events } from "../primitives/events.ts";
import { Pools } from "../primitives/pools.ts";
import type { PoolHandle } from "../primitives/pool.ts";
import type { CallOptions, QueueHandle, TaskHandle } from "../primitives/queue.ts";
import type { SubmitOptions } from "../primitives/queue-options.ts";
import { Queues } from "../primitives/queues.ts";
import type { Counter, CounterOptions } from "../primitives/counter.ts";
import type { LockLease, LockOptions } from "../primitives/lock.ts";
import type { RateLimitOptions } from "../contracts/rate-limit.ts";
import type { RateLimit } from "../primitives/rate-limit.ts";
import { SharedState } from "../primitives/state.ts";
import type { StreamHandle } from "../primitives/stream.ts";
import { Streams } from "../primitives/streams.ts";
import { openStore } from "../store/open.ts";
import type { Store } from "../store/store.ts";
import { ObservedUse } from "./observed-use.ts";

export interface FleetOptions {
  /** Address of the store: `sqlite:path`, `sqlite::memory:`, `redis://…`, `rediss://…`, `redis+cluster://…`, `redis+sentinel://…`, or of a master: `http://…`, `https://…`. */
  store: string;
  /** The master's token, where the store is a master's. */
  token?: string;
  /** Prefix that keeps fleets on one store apart; default none. */
  namespace?: string;
  /** Longest time that one store call may take, in seconds; 0.05 to 60, default 5. */
  deadlineSeconds?: number;
  /** How subscribers see who published, and the graph who uses what; default `client:` and a random id, which is in no graph. */
  source?: string;
  /** Where warnings go (entries put into quarantine, a store that is away); default nowhere. */
  log?: Log;
}

/** The same handles as in an automation, for scripts, web servers and tests. */
export interface Fleet extends AsyncDisposable {
  stream<S extends Schema>(contract: StreamContract<S>): StreamHandle<S>;
  queue<P extends Schema, R extends Schema>(contract: QueueContract<P, R>): QueueHandle<P, R>;
  /** `queue(contract).submit(…)` */
  submit<P extends Schema, R extends Schema>(
    contract: QueueContract<P, R>,
    payload: InferInput<P>,
    options?: SubmitOptions,
  ): Promise<TaskHandle<R>>;
  /** `queue(contract).call(…)` */
  call<P extends Schema, R extends Schema>(
    contract: QueueContract<P, R>,
    payload: InferInput<P>,
    options?: CallOptions,
  ): Promise<InferOutput<R>>;
  pool<P extends Schema, T extends Schema>(contract: PoolContract<P, T>): PoolHandle<P, T>;
  /** A lock that all automations and hosts share; null where somebody else has it for longer than it was waited for. */
  lock(name: string, options?: LockOptions): Promise<LockLease | null>;
  counter(name: string, options?: CounterOptions): Counter;
  rateLimit(name: string, options: RateLimitOptions): RateLimit;
  readonly events: Events;
  /** Waits until everything accepted is in the store, ends all waiting and subscriptions, releases what is held, closes the connection. Idempotent. */
  close(): Promise<void>;
}

const RULES: OptionRules<Required<FleetOptions>> = {
  store: text({ max: 4096 }),
  token: text({ max: 4096 }),
  namespace: checkNamespace,
  deadlineSeconds: number({ min: 0.05, max: 60 }),
  source: text({ max: 200 }),
  log: logger,
};

/** Connects. Throws `FLEET_STORE_URL_INVALID`, `FLEET_STORE_UNAVAILABLE`, `FLEET_STORE_AUTH` or `FLEET_STORE_INCOMPATIBLE`. */
export async function openFleet(options: FleetOptions): Promise<Fleet> {
  const {
    store: url,
    token,
    namespace,
    deadlineSeconds,
    source,
    log = SILENT,
  } = checkOptions<Required<FleetOptions>>("openFleet", options, RULES);
  if (url === undefined)
    throw new FleetError(
      "FLEET_OPTION_INVALID",
      'openFleet: store is missing, for example { store: "sqlite:.fleet/fleet.db" }',
    );
  const store = await openStore(url, {
    token,
    namespace,
    deadlineSeconds,
    log: (level, message, fields) => log[level](message, fields),
  });
  return fleetOn(store, { log, source, observedAs: source });
}

/** Handles on a store that is open already; closing the fleet closes it. `observedAs`: under which name its use is in the graph; default none. */
export function fleetOn(
  store: Store,
  {
    log,
    source = `client:${uuidv7()}`,
    observedAs,
  }: { log: Log; source?: string; observedAs?: string | undefined },
): Fleet {
  const use =
    observedAs === undefined
      ? undefined
      : new ObservedUse({ store: store.edges, from: { kind: "external", name: observedAs }, log });
  const onUse = use?.onUse;
  const streams = new Streams(store, { log, onUse });
  const queues = new Queues(store, { log, onUse });
  const pools = new Pools(store, { log, by: source, onUse });
  const shared = new SharedState(store, { log, by: source });
  const over = new AbortController();
  // Each subscription listens to it; there may be many.
  setMaxListeners(0, over.signal);
  let closed: Promise<void> | undefined;
  const close = () =>
    (closed ??= (async () => {
      await Promise.all([streams.close(), queues.close(), pools.close(), shared.close()]);
      await publisherOf(store.events).flushed();
      over.abort();
      await use?.close();
      await store.close();
    })());
  return {
    stream: (contract) => streams.handle(contract),
    queue: (contract) => queues.handle(contract),
    submit: async (contract, payload, options) => queues.handle(contract).submit(payload, options),
    call: async (contract, payload, options) => queues.handle(contract).call(payload, options),
    pool: (contract) => pools.handle(contract),
    lock: (name, options) => shared.lock(name, options),
    counter: (name, options) => shared.counter(name, options),
    rateLimit: (name, options) => shared.rateLimit(name, options),
    events: eventBus({ store: store.events, source, signal: over.signal, log, onUse }),
    close,
    [Symbol.asyncDispose]: close,
  };
}
