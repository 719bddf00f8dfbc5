import { FleetError } from "../../errors.ts";
import { DamageBook } from "../damage.ts";
import type { Store, StoreOptions, StoreTraits } from "../store.ts";
import { monotonicMs } from "../../internal/timers.ts";
import { clusterLink } from "./cluster.ts";
import { redisEdges } from "./edges.ts";
import { redisEvents } from "./events.ts";
import { openIdentity } from "./identity.ts";
import { redisKeys } from "./keys.ts";
import { type LinkOptions, singleLink } from "./link.ts";
import { redisPools } from "./pools.ts";
import { redisQueues } from "./queues.ts";
import { redisRegistry } from "./registry.ts";
import { clockArgument, scriptRunner } from "./scripts.ts";
import { redisState } from "./state.ts";
import { StoreClock } from "./store-clock.ts";
import { redisStreams } from "./streams.ts";
import { Subscriber } from "./subscriber.ts";
import { parseTarget } from "./target.ts";
import { wipe } from "./wipe.ts";

const TRAITS: StoreTraits = { kind: "redis", multiProcess: true, multiHost: true, entriesPerPush: 128 };
const DEFAULT_DEADLINE_SECONDS = 5;

/**
 * Opens a store on Redis or Valkey >= 7.0: `redis://`, `rediss://`, `redis+cluster://seed:port[,seed:port]` or `redis+sentinel://`
 * (over TLS `rediss+sentinel://`) `sentinel:port[,sentinel:port]/master-name`, with user, password and database in the address. The
 * sentinels' own user and password go into `?sentinel_username=…&sentinel_password=…`. Fails within the deadline with
 * `FLEET_STORE_UNAVAILABLE`, `FLEET_STORE_AUTH`, `FLEET_STORE_INCOMPATIBLE`, or at once with `FLEET_STORE_URL_INVALID` (also where the
 * sentinels do not know the master's name), `FLEET_OPTION_INVALID`, `FLEET_NAME_INVALID`. No error shows a password.
 */
export async function openRedisStore(url: string, options: StoreOptions = {}): Promise<Store> {
  const target = parseTarget(url);
  const { namespace = "", log } = options;
  const keys = redisKeys(namespace);
  const deadlineMs = deadlineOf(options);
  const linkOptions: LinkOptions = {
    target,
    deadlineMs,
    log: (level, message) => log?.(level, target.scrub(message)),
  };
  const link = target.cluster ? clusterLink(linkOptions) : singleLink(linkOptions);
  const run = scriptRunner(link, clockArgument(options));
  try {
    await link.ready();
    const identity = await openIdentity(run, keys, target.shown, log);
    link.onRestored(() => void identity.reseed());
    const subscriber = new Subscriber(link, linkOptions, keys.eventSeqs);
    const book = new DamageBook(log);
    const clock = new StoreClock();
    const parts = { link, run, keys, identity, subscriber, book, clock };
    let closing: Promise<void> | undefined;
    return {
      traits: TRAITS,
      namespace,
      get fleetId() {
        return identity.id;
      },
      streams: redisStreams(parts),
      queues: redisQueues(parts),
      pools: redisPools(parts),
      state: redisState(parts),
      events: redisEvents(parts),
      edges: redisEdges(parts),
      registry: redisRegistry(parts),
      damaged: () => Promise.resolve(book.all()),
      now: async () => {
        const sentAt = monotonicMs();
        const now = Number(await run<string>("now", { keys: { meta: keys.fleet.meta }, repeatable: true }));
        // So that no entry pushed from now on bears an earlier time.
        clock.learn(now, sentAt);
        return now;
      },
      letGo: () => link.letGo(),
      wipe: () => wipe(link, keys),
      close() {
        closing ??= Promise.resolve(subscriber.close()).then(() => link.close());
        return closing;
      },
    };
  } catch (error) {
    await link.close();
    throw error;
  }
}

function deadlineOf({ deadlineSeconds = DEFAULT_DEADLINE_SECONDS }: StoreOptions): number {
  if (deadlineSeconds >= 0.05 && deadlineSeconds <= 60) return deadlineSeconds * 1000;
  throw new FleetError(
    "FLEET_OPTION_INVALID",
    `deadlineSeconds: must be 0.05 to 60, is ${String(deadlineSeconds)}`,
  );
}
