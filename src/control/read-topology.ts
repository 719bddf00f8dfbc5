import { KIND_OF_DIRECTION, type Topology, type UsedKind } from "../protocol/topology.ts";
import type { EdgeRecord } from "../store/edge-store.ts";
import type { PoolStats } from "../store/pool-store.ts";
import type { QueueStats } from "../store/queue-store.ts";
import type { Store, StreamStats } from "../store/store.ts";
import { eachAlone } from "./damaged.ts";
import { topology, type TopologyInput } from "./topology.ts";

/** Most streams, queues and pools together that one reading looks into. */
const MOST_LOOKS = 300;

export interface ReadTopologyOptions {
  /** Also topics under `fleet.`, the framework's own; default false. */
  framework?: boolean;
  /** Most streams, queues and pools that are looked into; default 300. Those in use come first. */
  mostLooks?: number;
}

type Kind = Exclude<UsedKind, "topic">;

/** Reads all that the graph is made of, and makes it. What is read at different moments may not fit together to the last item. */
export async function readTopology(store: Store, options: ReadTopologyOptions = {}): Promise<Topology> {
  const [view, manifests, { edges: observed }, stream, queue, pool] = await Promise.all([
    store.registry.view(),
    store.registry.manifests(),
    store.edges.list(),
    store.streams.list(),
    store.queues.list(),
    store.pools.list(),
  ]);
  const names = { stream, queue, pool };
  const figures = await look(store, inUseFirst(names, observed), options.mostLooks ?? MOST_LOOKS);
  const { framework } = options;
  return topology({ view, manifests, observed, names, figures, framework });
}

function inUseFirst(
  names: TopologyInput["names"],
  observed: readonly EdgeRecord[],
): { kind: Kind; name: string }[] {
  const used = new Set(observed.map(({ direction, name }) => `${KIND_OF_DIRECTION[direction]} ${name}`));
  const all = (Object.keys(names) as Kind[]).flatMap((kind) => names[kind].map((name) => ({ kind, name })));
  const isUsed = ({ kind, name }: { kind: Kind; name: string }) => used.has(`${kind} ${name}`);
  return [...all.filter(isUsed), ...all.filter((one) => !isUsed(one))];
}

async function look(
  store: Store,
  wanted: readonly { kind: Kind; name: string }[],
  most: number,
): Promise<TopologyInput["figures"]> {
  const figures = {
    stream: new Map<string, StreamStats | undefined>(),
    queue: new Map<string, QueueStats | undefined>(),
    pool: new Map<string, PoolStats | undefined>(),
  };
  const looks: Record<Kind, (name: string) => Promise<unknown>> = {
    stream: async (name: string) => figures.stream.set(name, await store.streams.stats({ stream: name })),
    queue: async (name: string) => figures.queue.set(name, await store.queues.stats({ queue: name })),
    pool: async (name: string) => figures.pool.set(name, await store.pools.stats({ pool: name })),
  };
  // One that cannot be read has no figures.
  await eachAlone(
    wanted.slice(0, most),
    ({ kind, name }) => looks[kind](name),
    () => undefined,
  );
  return figures;
}
