/**
 * Every call of the port that travels, with what its argument must look like. Nothing else can be called. The compiler sees to it that no
 * call of the port and no field of an argument is left out.
 */
import type { HolderChange } from "../pool-store.ts";
import type { CounterOp, LimitWindow } from "../state-store.ts";
import type { HeldLease, NewEvent, Store } from "../store.ts";
import type { NewItem } from "../../protocol/pool.ts";
import { integer } from "../../contracts/options.ts";
import type { EntryTemplate } from "../../protocol/envelope.ts";
import type { NewTask } from "../../protocol/task.ts";
import {
  amount,
  anything,
  atLeast,
  type Check,
  count,
  type Fields,
  flag,
  id,
  list,
  maybe,
  name,
  nothing,
  one,
  orNull,
  record,
  shape,
  topic,
  whole,
  words,
} from "../checks.ts";

type Callable<P> = Exclude<keyof P, "watch" | "subscribe">;
/** What a method is called with. */
type ArgsOf<M> = M extends () => unknown ? never : M extends (args: infer A) => unknown ? A : never;
/** Methods without an argument have null, those of several shapes a check, all others one check per field. */
type Door<M> = [ArgsOf<M>] extends [never] ? null : Fields<ArgsOf<M>> | Check;
export type Doors<P> = { readonly [K in Callable<P>]: Door<P[K]> };

const ids = list(id);
const as = one(["owner", "guest"]);
const tags = record(list(id));
const slot = { automation: name, slotId: count };
/** Each slot is walked through by whoever places slots or shows them. */
const slots = integer({ min: 0, max: 10_000 });
const leases = list(shape<HeldLease>({ ...slot, token: id }));
const windows = list(shape<LimitWindow>({ limit: amount, perMs: amount, burst: amount }), 100);
const op = shape<CounterOp>({ producer: id, seq: whole });
const ref = { name, key: id };
const patience = maybe(shape({ patienceMs: amount }));
const by = words;

const entry = shape<EntryTemplate>({ id, head: words, tail: words });
const task = shape<NewTask>({
  id,
  payload: words,
  delayMs: amount,
  runAt: maybe(amount),
  priority: amount,
  key: maybe(id),
  dedupe: maybe(shape({ key: id, onDuplicate: id, windowMs: amount })),
  maxAttempts: amount,
  timeoutMs: amount,
  ttlMs: amount,
  asked: maybe(flag),
  tick: maybe(shape({ schedule: id, at: amount, revision: maybe(amount) })),
  print: maybe(id),
});
const settlement = atLeast({ id, token: id, outcome: id });
const item = shape<NewItem>({ id, payload: words, tags, tagsJson: words, ttlMs: amount });
const CHANGES: Record<HolderChange["do"], true> = {
  release: true,
  cool: true,
  retire: true,
  extend: true,
  report: true,
  update: true,
};
const change = atLeast({ do: one(Object.keys(CHANGES)) });

const streams: Doors<Store["streams"]> = {
  declare: { stream: name, bounds: record(amount), as },
  push: { stream: name, entries: list(entry), op },
  pop: { stream: name, n: count },
  peek: { stream: name, n: count, after: maybe(id), newest: maybe(flag) },
  length: { stream: name },
  stats: { stream: name },
  list: null,
  quarantine: { stream: name, entries: list(shape({ raw: words, reason: words })) },
  quarantined: { stream: name, n: count },
  sweep: { stream: name },
};

const queues: Doors<Store["queues"]> = {
  declare: { queue: name, settings: atLeast({ maxLength: amount, maxPayloadBytes: amount }), as },
  list: null,
  submit: { queue: name, lists: list(list(task)) },
  turn: {
    queue: name,
    holder: id,
    worker: id,
    leaseMs: amount,
    settle: list(settlement),
    claim: count,
    idle: maybe(flag),
  },
  keep: { queue: name, holders: ids, leaseMs: amount, idle: maybe(ids) },
  lose: { queue: name, holders: ids, crashed: ids, error: words },
  cancel: { queue: name, ids },
  retry: { queue: name, ids },
  get: { queue: name, id },
  ask: { queue: name, id },
  ended: { queue: name, ids },
  page: { queue: name, state: id, n: count, cursor: maybe(words) },
  stats: { queue: name },
  sweep: { queue: name },
  putSchedule: { queue: name, spec: atLeast({ id, payload: words }) },
  removeSchedule: { queue: name, id, revision: maybe(amount) },
  pauseSchedule: { queue: name, id, paused: flag },
  schedules: { queue: name },
  ticked: { queue: name, id, tick: amount, revision: amount },
};

const pools: Doors<Store["pools"]> = {
  declare: { pool: name, settings: atLeast({ strategy: id }), as },
  list: null,
  put: { pool: name, items: list(item) },
  claim: {
    pool: name,
    where: tags,
    n: count,
    holdMs: amount,
    autoExtend: flag,
    request: id,
    holder: id,
    by,
    waitFor: patience,
  },
  leave: { pool: name, request: id },
  change: { pool: name, id, token: id, change },
  retire: { pool: name, id, note: words },
  remove: { pool: name, id },
  keep: { pool: name, holders: ids },
  lose: { pool: name, holders: ids },
  get: { pool: name, id },
  page: { pool: name, state: id, where: tags, n: count, cursor: maybe(words) },
  count: { pool: name, where: tags },
  stats: { pool: name },
  sweep: { pool: name },
  putRefill: { pool: name, refill: atLeast({ where: tags, below: amount, queue: name, payload: words }) },
  refills: { pool: name },
};

const locks: Doors<Store["state"]["locks"]> = {
  acquire: { ...ref, request: id, holder: id, by, holdMs: amount, waitFor: patience },
  extend: { ...ref, token: id, holdMs: amount },
  release: { ...ref, token: id },
  leave: { ...ref, request: id },
  keep: { name, leases: list(shape({ key: id, token: id, holdMs: amount })) },
  lose: { name, holders: ids },
  list: null,
  show: { name },
};

const counters: Doors<Store["state"]["counters"]> = {
  add: { ...ref, by: whole, op },
  get: ref,
  set: { ...ref, value: whole, op },
  compareAndSet: { ...ref, expected: whole, value: whole, op },
  list: null,
  page: { name, n: count, after: maybe(id) },
  remove: ref,
};

const limits: Doors<Store["state"]["limits"]> = {
  take: { ...ref, windows, cost: amount, withinMs: amount, request: id },
  giveBack: { ...ref, windows, cost: amount, at: amount, request: id },
  list: null,
  show: { name, n: count },
  sweep: null,
};

const event = { topic, source: words, payload: words };
const events: Doors<Store["events"]> = {
  publish: event,
  publishMany: { events: list(shape<NewEvent>(event)) },
  sweep: { prefix: id, silentMs: amount },
};

const edges: Doors<Store["edges"]> = {
  observe: {
    from: shape({ kind: id, name: id }),
    edges: list(shape({ direction: id, name: id, count: amount })),
  },
  list: null,
  sweep: { unseenMs: amount },
};

const self = { workerId: id, incarnation: id };
const registry: Doors<Store["registry"]> = {
  register: {
    // What the leader and every status walk through: one record without it would stop them for all.
    worker: atLeast({ id: name, incarnation: id, automations: list(name), labels: record(id) }),
    manifests: list(atLeast({ name })),
    ttlMs: amount,
    replaces: maybe(id),
    generation: maybe(amount),
  },
  beat: { ...self, ttlMs: amount, leaseMs: amount, leases, slots: maybe(list(atLeast(slot))) },
  deregister: self,
  pruneWorkers: { offlineMs: amount },
  removeWorker: { workerId: id },
  setWish: atLeast({ workerId: id, kind: one(["cordon", "drain"]) }),
  claimSlots: { ...self, leaseMs: amount, slots: list(shape(slot)) },
  releaseSlots: { leases },
  view: null,
  revision: null,
  manifests: null,
  putDesired: {
    name,
    desired: atLeast({ slots, generation: whole }),
    expected: amount,
    record: maybe(shape({ by: words, note: orNull(words) })),
  },
  configHistory: { name, limit: amount, before: maybe(amount) },
  lead: { candidate: id, leaseMs: amount, rank: maybe(amount) },
  resign: { candidate: id },
  putAssignments: { assignments: record(record(id)), token: id },
  takeTurn: { automation: name, holder: id, most: amount, ttlMs: amount },
  endTurn: { automation: name, holder: id },
  getState: slot,
  setState: { ...slot, token: id, value: orNull(words) },
  slotHealth: null,
  setSlotHealth: { ...slot, token: id, health: atLeast({ history: anything, failures: amount }) },
};

/** The calls of the store itself. */
const own: Doors<Pick<Store, "now" | "damaged" | "wipe">> = { now: null, damaged: null, wipe: null };

export const DOORS = { own, streams, queues, pools, locks, counters, limits, events, edges, registry };

/** Whatever keeps leases goes before all else: a flood of payloads must not cost a worker its slots. */
const URGENT = /^(registry\.|now$)|\.(keep|extend)$/;

export function isUrgent(call: string): boolean {
  return URGENT.test(call);
}

/** One call, ready to be made by its name. */
export interface Call {
  readonly urgent: boolean;
  /** Throws where the argument does not fit; it is not called then. */
  run(store: Store, args: unknown): Promise<unknown>;
}

type Method = (args: unknown) => Promise<unknown>;

const PORTS: Record<keyof typeof DOORS, (store: Store) => object> = {
  own: (store) => store,
  streams: (store) => store.streams,
  queues: (store) => store.queues,
  pools: (store) => store.pools,
  locks: (store) => store.state.locks,
  counters: (store) => store.state.counters,
  limits: (store) => store.state.limits,
  events: (store) => store.events,
  edges: (store) => store.edges,
  registry: (store) => store.registry,
};

/** What a call is named on the wire. */
export function callName(port: keyof typeof DOORS, method: string): string {
  return port === "own" ? method : `${port}.${method}`;
}

export const CALLS: ReadonlyMap<string, Call> = new Map(
  (Object.keys(DOORS) as (keyof typeof DOORS)[]).flatMap((port) =>
    Object.entries<Fields<object> | Check | null>(DOORS[port]).map(([method, door]) => {
      const call = callName(port, method);
      const check = door === null ? nothing : typeof door === "function" ? door : shape(door);
      const run = (store: Store, args: unknown) => {
        check(args, call);
        return (PORTS[port](store) as Record<string, Method>)[method]!(args);
      };
      return [call, { urgent: isUrgent(call), run }] as const;
    }),
  ),
);
