// The nodes of the graph with their figures. Pure.
import type { Manifest } from "../protocol/manifest.ts";
import { workerState } from "../protocol/status.ts";
import type { AutomationNode, TopologyNode, UsedKind } from "../protocol/topology.ts";
import type { PoolStats } from "../store/pool-store.ts";
import type { QueueStats } from "../store/queue-store.ts";
import type { FleetView, StreamStats } from "../store/store.ts";

/** By name; undefined for one that was never declared. */
export interface Figures {
  stream: ReadonlyMap<string, StreamStats | undefined>;
  queue: ReadonlyMap<string, QueueStats | undefined>;
  pool: ReadonlyMap<string, PoolStats | undefined>;
}

export function automationNode(
  id: string,
  name: string,
  manifests: readonly Manifest[] | undefined,
  { workers, desired, now }: Pick<FleetView, "workers" | "desired" | "now">,
): AutomationNode {
  const wanted = desired[name];
  const running = workers
    .filter((worker) => workerState(worker, now) !== "offline")
    .flatMap(({ slots }) => slots)
    .filter(({ automation, state }) => automation === name && state === "running");
  return {
    id,
    kind: "automation",
    name,
    type: manifests?.[0]?.kind ?? null,
    slots: wanted?.slots ?? null,
    paused: wanted?.paused ?? false,
    running: new Set(running.map(({ slotId }) => slotId)).size,
  };
}

export function usedNode({
  id,
  kind,
  name,
  rates = { in: 0, out: 0 },
  figures,
  now,
}: {
  id: string;
  kind: UsedKind;
  name: string;
  rates: { in: number; out: number } | undefined;
  figures: Figures;
  now: number;
}): TopologyNode {
  const base = { id, name, in_per_minute: rates.in, out_per_minute: rates.out };
  const age = (since: number | null | undefined) =>
    since === null || since === undefined ? null : Math.max(0, now - since) / 1000;
  switch (kind) {
    case "stream":
      return { ...base, kind, figures: streamFigures(figures.stream.get(name), age) };
    case "queue":
      return { ...base, kind, figures: queueFigures(figures.queue.get(name), age) };
    case "pool":
      return { ...base, kind, figures: poolFigures(figures.pool.get(name), age) };
    default:
      return { ...base, kind };
  }
}

type Age = (since: number | null | undefined) => number | null;
type FiguresOf<K extends UsedKind> = Extract<TopologyNode, { kind: K; figures: unknown }>["figures"];

function streamFigures(stats: StreamStats | undefined, age: Age): FiguresOf<"stream"> {
  if (stats === undefined) return null;
  const { length, oldestTs, pushed, popped, trimmed, expired, invalid } = stats;
  const lost = trimmed + expired + invalid;
  return { depth: length, oldest_seconds: age(oldestTs), pushed, popped, lost };
}

function queueFigures(stats: QueueStats | undefined, age: Age): FiguresOf<"queue"> {
  if (stats === undefined) return null;
  const { counts, totals, oldestWaitingAt } = stats;
  return {
    depth: counts.waiting + counts.scheduled,
    active: counts.active,
    failed: counts.failed,
    oldest_seconds: age(oldestWaitingAt),
    submitted: totals.submitted,
    completed: totals.completed,
  };
}

function poolFigures(stats: PoolStats | undefined, age: Age): FiguresOf<"pool"> {
  if (stats === undefined) return null;
  const { counts, totals, waiting } = stats;
  const { free, held, cooling, retired } = counts;
  return {
    depth: free,
    held,
    cooling,
    retired,
    waiting: waiting.length,
    oldest_seconds: age(waiting[0]?.since),
    put: totals.put,
    claimed: totals.claimed,
  };
}
