import type { BusEvent } from "../../protocol/event.ts";
import type { ClaimedTask } from "../../protocol/task.ts";
import type { PoolStore } from "../pool-store.ts";
import type { QueueStore } from "../queue-store.ts";
import type { CounterStore, LimitStore, LockStore } from "../state-store.ts";
import type { EdgeStore } from "../edge-store.ts";
import type {
  EventStore,
  FleetView,
  Registry,
  Store,
  StoreOptions,
  StoreTraits,
  StreamStore,
} from "../store.ts";
import { FleetError } from "../../errors.ts";
import { byName } from "../../internal/by-name.ts";
import { callName, DOORS } from "./doors.ts";
import { RemoteLink } from "./link.ts";
import { parseTarget } from "./target.ts";
import type { Subscription } from "./watches.ts";
import type { QueueWatchArgs, WatchKind } from "./watch-doors.ts";

const DEFAULT_DEADLINE_SECONDS = 5;

/**
 * Opens the store that a master serves: `http(s)://host[:port]`, or `fleet+unix:/path` for one on this machine, with its token. All goes over
 * one WebSocket. Fails within the deadline with `FLEET_STORE_UNAVAILABLE`, or at once with `FLEET_TOKEN_REFUSED`,
 * `FLEET_STORE_INCOMPATIBLE` (another version or namespace, no master), `FLEET_STORE_URL_INVALID` or `FLEET_OPTION_INVALID`.
 */
export async function openRemoteStore(url: string, options: StoreOptions = {}): Promise<Store> {
  const { namespace, token, log, deadlineSeconds = DEFAULT_DEADLINE_SECONDS } = options;
  for (const name of ["clockOffsetMs", "frozenNow"] as const)
    if (options[name] !== undefined)
      throw new FleetError(
        "FLEET_OPTION_INVALID",
        `store: ${name} moves the clock of a store, not of a link to one`,
      );
  const target = parseTarget(url, token);
  const link = new RemoteLink({
    target,
    deadlineMs: deadlineSeconds * 1000,
    namespace,
    log: (level, message) => log?.(level, message),
  });
  try {
    await link.open();
  } catch (error) {
    await link.close();
    throw error;
  }
  const { kind, entriesPerPush } = link.welcome.traits;
  const traits: StoreTraits = { kind, multiProcess: true, multiHost: true, entriesPerPush };
  let closing: Promise<void> | undefined;
  return {
    ...callsOf(link, "own"),
    traits,
    namespace: link.welcome.namespace,
    get fleetId() {
      return link.fleetId;
    },
    streams: {
      ...callsOf(link, "streams"),
      watch: (args, onHint) => hints(link, "streams", args, onHint),
    },
    queues: {
      ...callsOf(link, "queues"),
      watch: (args, on) => watchQueue(link, args, on),
    },
    pools: {
      ...callsOf(link, "pools"),
      watch: (args, onHint) => hints(link, "pools", args, onHint),
    },
    state: {
      locks: {
        ...callsOf(link, "locks"),
        watch: (args, onHint) =>
          link.watch("locks" satisfies WatchKind, args, {
            deliver: ([key]) => onHint(key as string | undefined),
            onRestored: () => onHint(undefined),
          }),
      },
      counters: callsOf(link, "counters"),
      limits: limitsOf(callsOf(link, "limits")),
    },
    events: {
      ...callsOf(link, "events"),
      subscribe: (args, onEvent) => subscribe(link, args, onEvent),
    },
    edges: callsOf(link, "edges"),
    registry: {
      ...readBack(callsOf(link, "registry")),
      watch: (onHint) => hints(link, "registry", undefined, onHint),
    },
    letGo: () => link.letGo(),
    close: () => (closing ??= link.close()),
  };
}

/** What of each part of the port travels as calls. */
interface Ports {
  own: Pick<Store, "now" | "damaged" | "wipe">;
  streams: Omit<StreamStore, "watch">;
  queues: Omit<QueueStore, "watch">;
  pools: Omit<PoolStore, "watch">;
  locks: Omit<LockStore, "watch">;
  counters: CounterStore;
  limits: LimitStore;
  events: Omit<EventStore, "subscribe">;
  edges: EdgeStore;
  registry: Omit<Registry, "watch">;
}

/** The calls of one part of the port: what there are stands in the same table by which they are taken in on the other side. */
function callsOf<Part extends keyof Ports>(link: RemoteLink, port: Part): Ports[Part] {
  const calls = Object.keys(DOORS[port]).map((method) => {
    const name = callName(port, method);
    return [method, (args?: unknown) => link.call(name, args)] as const;
  });
  return Object.fromEntries(calls) as unknown as Ports[Part];
}

/** JSON has no infinity; the longest time that it has is as good. */
function limitsOf(limits: LimitStore): LimitStore {
  return {
    ...limits,
    take: (args) => limits.take({ ...args, withinMs: Math.min(args.withinMs, Number.MAX_VALUE) }),
  };
}

/** What is looked up by names comes back as such. */
function readBack(registry: Ports["registry"]): Ports["registry"] {
  return {
    ...registry,
    view: async () => {
      const view = await registry.view();
      const [desired, assignments] = [view.desired, view.assignments].map((one) =>
        byName(Object.entries(one)),
      );
      return { ...view, desired, assignments } as FleetView;
    },
    manifests: async () => byName(Object.entries(await registry.manifests())),
    slotHealth: async () => byName(Object.entries(await registry.slotHealth())),
  };
}

function hints(link: RemoteLink, kind: WatchKind, args: unknown, onHint: () => void): Subscription {
  return link.watch(kind, args, { deliver: () => onHint(), onRestored: () => onHint() });
}

function watchQueue(
  link: RemoteLink,
  args: Parameters<QueueStore["watch"]>[0],
  { onReady, onFinished, onTasks }: Parameters<QueueStore["watch"]>[1],
): Subscription {
  const asked: QueueWatchArgs = {
    ...args,
    ready: onReady !== undefined,
    finished: onFinished !== undefined,
    tasks: onTasks !== undefined,
  };
  return link.watch("queues" satisfies WatchKind, asked, {
    deliver: ([what, value]) => {
      if (what === "ready") onReady?.();
      else if (what === "finished") onFinished?.(value as string);
      else if (what === "tasks") onTasks?.(value as ClaimedTask[]);
    },
    onRestored: () => onReady?.(),
  });
}

/**
 * The baselines are those of the first time that it was ready. After a lost link it begins anew on the other side, and what was published in
 * between shows in the next event's `seq`.
 */
function subscribe(
  link: RemoteLink,
  args: { pattern: string },
  onEvent: (event: BusEvent) => void,
): ReturnType<EventStore["subscribe"]> {
  const watch = link.watch("events" satisfies WatchKind, args, {
    deliver: ([event]) => onEvent(event as BusEvent),
  });
  const baselines = watch.answer.then((entries) => new Map(entries as [string, number][]));
  baselines.catch(() => undefined);
  return { ready: watch.ready, close: () => watch.close(), baselines };
}
