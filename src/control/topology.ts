/**
 * The graph of a fleet: which automations there are, what they use, and which way data goes. Declared edges come from what workers have
 * published (contracts of definitions), observed ones from what processes have counted. Pure.
 */
import { matchesTopic } from "../protocol/event.ts";
import type { ContractUse, Manifest, UseDirection } from "../protocol/manifest.ts";
import { type WorkerRecord, workerState } from "../protocol/status.ts";
import {
  type Direction,
  KIND_OF_DIRECTION,
  type NodeKind,
  TAKING,
  type Topology,
  type TopologyEdge,
  type TopologyNode,
  type UsedKind,
  type User,
} from "../protocol/topology.ts";
import type { EdgeRecord } from "../store/edge-store.ts";
import type { FleetView } from "../store/store.ts";
import { automationNode, type Figures, usedNode } from "./topology-nodes.ts";

/** What was not seen in use for so long is not in the graph any more, and is forgotten by the leader's sweep. */
export const EDGE_AGED_OUT_MS = 86_400_000;

const FRAMEWORK = "fleet.";
const KINDS: readonly NodeKind[] = ["automation", "external", "stream", "queue", "pool", "topic"];

export interface TopologyInput {
  view: Pick<FleetView, "now" | "workers" | "desired">;
  /** By worker id. */
  manifests: Readonly<Record<string, readonly Manifest[]>>;
  observed: readonly EdgeRecord[];
  /** What is declared in the store, whether or not anybody uses it. */
  names: Readonly<Record<Exclude<UsedKind, "topic">, readonly string[]>>;
  /** Of those that were looked into. */
  figures: Figures;
  /** Also topics under `fleet.`, the framework's own; default they are left out. */
  framework?: boolean;
}

interface Node {
  kind: NodeKind;
  name: string;
}

export function topology(input: TopologyInput): Topology {
  const { view, figures } = input;
  const edges = edgesOf(input);
  const nodes = new Map<string, Node>();
  const enter = (node: Node) => nodes.set(nodeId(node), node);
  for (const { from, to } of edges.values()) for (const node of [from, to]) enter(node);
  const manifests = currentManifests(input);
  for (const name of [...manifests.keys(), ...Object.keys(view.desired)]) enter({ kind: "automation", name });
  for (const [kind, names] of Object.entries(input.names) as [UsedKind, readonly string[]][])
    for (const name of names) enter({ kind, name });
  const shown = [...edges.values()]
    .map(({ from, to, ...edge }): TopologyEdge => ({ from: nodeId(from), to: nodeId(to), ...edge }))
    .toSorted((a, b) => compare(a.from, b.from) || compare(a.to, b.to) || compare(a.direction, b.direction));
  const rates = ratesOf(shown);
  const all = [...nodes.values()]
    .toSorted((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind) || compare(a.name, b.name))
    .map((node): TopologyNode => {
      const { kind, name } = node;
      const id = nodeId(node);
      if (kind === "automation") return automationNode(id, name, manifests.get(name), view);
      if (kind === "external") return { id, kind, name };
      return usedNode({ id, kind, name, rates: rates.get(id), figures, now: view.now });
    });
  const looked = (kind: keyof TopologyInput["names"], name: string) => figures[kind].has(name);
  const without = (Object.keys(input.names) as (keyof TopologyInput["names"])[]).flatMap((kind) =>
    input.names[kind].filter((name) => !looked(kind, name)),
  );
  return { now: view.now, nodes: all, edges: shown, without_figures: without.length };
}

type Edge = Omit<TopologyEdge, "from" | "to"> & { from: Node; to: Node };

function edgesOf(input: TopologyInput): Map<string, Edge> {
  const { view, observed, framework = false } = input;
  const edges = new Map<string, Edge>();
  const enter = (user: User, direction: Direction, used: Node): Edge | undefined => {
    if (used.kind === "topic" && used.name.startsWith(FRAMEWORK) && !framework) return undefined;
    const [from, to] = TAKING.has(direction) ? [used, user] : [user, used];
    const key = `${direction} ${nodeId(from)} ${nodeId(to)}`;
    const known = edges.get(key);
    if (known !== undefined) return known;
    const edge: Edge = { from, to, direction, declared: false, observed: null };
    edges.set(key, edge);
    return edge;
  };
  for (const { user, direction, used } of declaredUses(input)) {
    const edge = enter(user, direction, used);
    if (edge !== undefined) edge.declared = true;
  }
  for (const { from, direction, name, count, firstSeenAt, lastSeenAt, perMinute } of observed) {
    if (view.now - lastSeenAt >= EDGE_AGED_OUT_MS || !isKnown(direction)) continue;
    const edge = enter(from, direction, { kind: KIND_OF_DIRECTION[direction], name });
    if (edge === undefined) continue;
    edge.observed = {
      count,
      first_seen_at: firstSeenAt,
      last_seen_at: lastSeenAt,
      per_minute: perMinute,
    };
  }
  for (const match of matches(edges.values())) edges.set(`match ${match.from.name} ${match.to.name}`, match);
  return edges;
}

/** From each topic to the patterns that take it in. */
function matches(edges: Iterable<Edge>): Edge[] {
  const names = new Set<string>();
  for (const { from, to } of edges)
    for (const { kind, name } of [from, to]) if (kind === "topic") names.add(name);
  const plain = [...names].filter((name) => !name.includes("*"));
  return [...names]
    .filter((name) => name.includes("*"))
    .flatMap((pattern) =>
      plain
        .filter((name) => matchesTopic(pattern, name))
        .map((name): Edge => ({
          from: { kind: "topic", name },
          to: { kind: "topic", name: pattern },
          direction: "match",
          declared: true,
          observed: null,
        })),
    );
}

interface Use {
  user: User;
  direction: Direction;
  used: Node;
}

/** All that published definitions say. Versions that run side by side may differ: then the graph shows what any of them uses. */
function declaredUses(input: TopologyInput): Use[] {
  const uses: Use[] = [];
  for (const [name, manifests] of currentManifests(input)) {
    const user: User = { kind: "automation", name };
    for (const { output, tasks, uses: declared } of manifests) {
      if (output !== null)
        uses.push({ user, direction: "emit", used: { kind: "stream", name: output.stream } });
      if (tasks !== null) uses.push({ user, direction: "run", used: { kind: "queue", name: tasks.queue } });
      for (const [direction, contracts] of Object.entries(declared) as [UseDirection, ContractUse[]][]) {
        if (!isKnown(direction)) continue;
        const kind = KIND_OF_DIRECTION[direction];
        for (const { name: used, pool } of contracts) {
          uses.push({ user, direction, used: { kind, name: used } });
          const queue = pool?.refillQueue;
          if (queue === undefined) continue;
          const refilled: User = { kind: "pool", name: used };
          uses.push({ user: refilled, direction: "refill", used: { kind: "queue", name: queue } });
        }
      }
    }
  }
  return uses;
}

/** A newer version may know more of them than this one. */
function isKnown(direction: string): direction is Direction {
  return Object.hasOwn(KIND_OF_DIRECTION, direction);
}

/** Manifests by automation: of live workers, and of others only where no live one has it. */
function currentManifests({ manifests, view }: TopologyInput): Map<string, Manifest[]> {
  const live = new Map<string, Manifest[]>();
  const gone = new Map<string, Manifest[]>();
  const workers = new Map<string, WorkerRecord>(view.workers.map((worker) => [worker.id, worker]));
  for (const [id, published] of Object.entries(manifests)) {
    const worker = workers.get(id);
    const alive = worker !== undefined && workerState(worker, view.now) !== "offline";
    const into = alive ? live : gone;
    for (const manifest of published) into.set(manifest.name, [...(into.get(manifest.name) ?? []), manifest]);
  }
  return new Map([...gone, ...live]);
}

/** What goes in and out of each node of those that are used. */
function ratesOf(edges: readonly TopologyEdge[]): Map<string, { in: number; out: number }> {
  const rates = new Map<string, { in: number; out: number }>();
  for (const { from, to, direction, observed } of edges) {
    if (observed === null || direction === "match") continue;
    const side = TAKING.has(direction) ? "out" : "in";
    const id = side === "out" ? from : to;
    const rate = rates.get(id) ?? { in: 0, out: 0 };
    rates.set(id, { ...rate, [side]: Math.round((rate[side] + observed.per_minute) * 100) / 100 });
  }
  return rates;
}

function nodeId({ kind, name }: Node): string {
  return `${kind}:${name}`;
}

/** By code units: the same order everywhere. */
function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
