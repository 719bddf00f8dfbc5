import type { NodeKind, Topology } from "../protocol/topology.ts";
import { edgeStyle, type EdgeStyle, edgeWords, LEGEND, nodeWords, shortIds } from "./graph-words.ts";

const SHAPES: Record<NodeKind, string> = {
  automation: "box",
  external: "plaintext",
  stream: "cylinder",
  queue: "box3d",
  pool: "hexagon",
  topic: "ellipse",
};
const STYLES: Record<EdgeStyle, string> = { both: "solid", declared: "dashed", undeclared: "bold" };

/** The graph in the language of Graphviz. */
export function dotGraph(topology: Topology): string {
  const ids = shortIds(topology);
  const nodes = topology.nodes.map(
    (node) => `  ${ids.get(node.id)} [shape=${SHAPES[node.kind]}, label=${quoted(nodeWords(node))}];`,
  );
  const edges = topology.edges.map(
    (edge) =>
      `  ${ids.get(edge.from)} -> ${ids.get(edge.to)} [style=${STYLES[edgeStyle(edge)]}, label=${quoted([edgeWords(edge)])}];`,
  );
  return ["digraph fleet {", `  // ${LEGEND}`, "  rankdir=LR;", ...nodes, ...edges, "}", ""].join("\n");
}

/** Lines as a quoted label, in which `\` begins a sequence of Graphviz's own and `&` an entity. */
function quoted(lines: readonly string[]): string {
  const escaped = lines.map((line) =>
    line
      .replaceAll("&", "&amp;")
      .replaceAll(/["\\]/g, "\\$&")
      .replaceAll(/\p{Cc}/gu, "\ufffd"),
  );
  return `"${escaped.join("\\n")}"`;
}
