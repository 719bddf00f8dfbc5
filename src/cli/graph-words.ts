// What a node and an edge of the graph say, whatever they are drawn with.
import type { Topology, TopologyEdge, TopologyNode } from "../protocol/topology.ts";
import { duration } from "./table.ts";

/** How an edge is drawn: as it is declared and seen, only declared, or seen without being declared. */
export type EdgeStyle = "both" | "declared" | "undeclared";

export const LEGEND =
  "solid: declared and in use; dashed: declared, not seen in use; thick: in use, not declared";

export function edgeStyle({ declared, observed, direction }: TopologyEdge): EdgeStyle {
  if (!declared) return "undeclared";
  return observed === null && direction !== "match" ? "declared" : "both";
}

/** `pop 12/min` */
export function edgeWords({ direction, observed }: TopologyEdge): string {
  const rate = observed?.per_minute ?? 0;
  return rate === 0
    ? direction
    : `${direction} ${rate < 10 ? Number(rate.toFixed(1)) : Math.round(rate)}/min`;
}

/** Lines: the name, and below it what it is and how it stands. */
export function nodeWords(node: TopologyNode): string[] {
  return [node.name, [node.kind === "automation" ? typeOf(node) : node.kind, ...stateOf(node)].join(", ")];
}

function typeOf({ type }: Extract<TopologyNode, { kind: "automation" }>): string {
  return type === null ? "automation" : `${type} automation`;
}

function stateOf(node: TopologyNode): string[] {
  switch (node.kind) {
    case "automation": {
      const { slots, running, paused } = node;
      if (slots === null) return ["not deployed"];
      return [...(paused ? ["paused"] : []), `${running} of ${slots} slots`];
    }
    case "stream":
      return node.figures === null ? [] : held(`${node.figures.depth} entries`, node.figures.oldest_seconds);
    case "queue": {
      if (node.figures === null) return [];
      const { depth, active, failed, oldest_seconds: oldest } = node.figures;
      const more = [...(active > 0 ? [`${active} active`] : []), ...(failed > 0 ? [`${failed} failed`] : [])];
      return [...held(`${depth} tasks`, oldest), ...more];
    }
    case "pool": {
      if (node.figures === null) return [];
      const { depth, held: lent, waiting } = node.figures;
      return [`${depth} free`, `${lent} held`, ...(waiting > 0 ? [`${waiting} wait`] : [])];
    }
    default:
      return [];
  }
}

function held(what: string, oldest: number | null): string[] {
  return oldest === null ? [what] : [what, `oldest ${duration(oldest * 1000)}`];
}

/** A short id for each node, in the graph's order: names may hold what a format does not take. */
export function shortIds({ nodes }: Topology): ReadonlyMap<string, string> {
  return new Map(nodes.map(({ id }, i) => [id, `n${i + 1}`]));
}
