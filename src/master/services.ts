import { PoolDesk } from "../control/pool-desk.ts";
import { VerdictAsker } from "../control/verdicts.ts";
import type { Log } from "../internal/log.ts";
import { Pools } from "../primitives/pools.ts";
import { Queues } from "../primitives/queues.ts";
import type { Store } from "../store/store.ts";

/** What handlers work with. */
export interface Services {
  store: Store;
  log: Log;
  /** Aborts when the master ends: long polls and streams of events end with it. */
  stopping: AbortSignal;
  /** Address of the store for workers that join; undefined: they go through the master. May hold a password. */
  workerStore?: string | undefined;
  /** What all requests share: one watch per queue or pool, whoever waits. */
  queues: Queues;
  pools: Pools;
  claims: PoolDesk;
  verdicts: VerdictAsker;
}

/** `close` waits until what the handlers share has let go of the store; after `stopping`, before the store is closed. */
export function openServices(given: Pick<Services, "store" | "log" | "stopping" | "workerStore">): {
  services: Services;
  close: () => Promise<void>;
} {
  const { store, log } = given;
  const queues = new Queues(store, { log });
  // Who asks by API has no say in the settings.
  const pools = new Pools(store, { log, declareAs: "guest" });
  const claims = new PoolDesk(store, log);
  const verdicts = new VerdictAsker(store, log);
  return {
    services: { ...given, queues, pools, claims, verdicts },
    close: async () => {
      await Promise.all([queues.close(), pools.close(), claims.close(), verdicts.close()]);
    },
  };
}
