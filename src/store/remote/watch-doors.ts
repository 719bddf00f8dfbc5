/** Every watch of the port that travels: what its argument must look like, and what its listener's calls are as plain values. */
import type { QueueStore } from "../queue-store.ts";
import type { Store } from "../store.ts";
import type { Watch } from "../watch.ts";
import { flag, id, maybe, name, nothing, pattern, shape } from "../checks.ts";

export type WatchKind = "streams" | "queues" | "pools" | "locks" | "events" | "registry";

/** A watch that has begun. */
export interface Started {
  watch: Watch;
  /** What else its starter is told once it is ready. */
  answer?: () => Promise<unknown>;
}

export interface WatchDoor {
  /** Throws where the argument does not fit. */
  start(store: Store, args: unknown, push: (values: readonly unknown[]) => void): Started;
}

type Args<F> = F extends (args: infer A, ...rest: never[]) => unknown ? A : never;

/** Which of a queue's hints are asked for travels with the argument, as functions do not. */
export type QueueWatchArgs = Args<QueueStore["watch"]> & {
  ready?: boolean;
  finished?: boolean;
  tasks?: boolean;
};

function door<A, W extends Watch>(
  check: (value: unknown, where: string) => A,
  start: (store: Store, args: A, push: (values: readonly unknown[]) => void) => W,
  answer?: (watch: W) => Promise<unknown>,
): WatchDoor {
  return {
    start: (store, args, push) => {
      const watch = start(store, check(args, "watch"), push);
      return { watch, ...(answer === undefined ? {} : { answer: () => answer(watch) }) };
    },
  };
}

const DOORS: Record<WatchKind, WatchDoor> = {
  streams: door(shape<{ stream: string }>({ stream: name }), (store, args, push) =>
    store.streams.watch(args, () => push([])),
  ),
  queues: door(
    shape<QueueWatchArgs>({
      queue: name,
      taker: maybe(id),
      ready: maybe(flag),
      finished: maybe(flag),
      tasks: maybe(flag),
    }),
    (store, { queue, taker, ready, finished, tasks }, push) =>
      store.queues.watch(
        { queue, ...(taker === undefined ? {} : { taker }) },
        {
          ...(ready === true ? { onReady: () => push(["ready"]) } : {}),
          ...(finished === true ? { onFinished: (task) => push(["finished", task]) } : {}),
          ...(tasks === true ? { onTasks: (handed) => push(["tasks", handed]) } : {}),
        },
      ),
  ),
  pools: door(shape<{ pool: string }>({ pool: name }), (store, args, push) =>
    store.pools.watch(args, () => push([])),
  ),
  locks: door(shape<{ name: string }>({ name }), (store, args, push) =>
    store.state.locks.watch(args, (key) => push(key === undefined ? [] : [key])),
  ),
  events: door(
    shape<{ pattern: string }>({ pattern }),
    (store, args, push) => store.events.subscribe(args, (event) => push([event])),
    async ({ baselines }) => [...(await baselines)],
  ),
  registry: door(nothing, (store, _, push) => store.registry.watch(() => push([]))),
};

export const WATCHES: ReadonlyMap<string, WatchDoor> = new Map(Object.entries(DOORS));
