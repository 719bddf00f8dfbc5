import type { NodeKind, Topology } from "../protocol/topology.ts";
import { edgeStyle, type EdgeStyle, edgeWords, LEGEND, nodeWords, shortIds } from "./graph-words.ts";

/** What stands around a label: the shape. */
const SHAPES: Record<NodeKind, readonly [string, string]> = {
  automation: ["[", "]"],
  external: ["([", "])"],
  stream: ["[(", ")]"],
  queue: ["[[", "]]"],
  pool: ["{{", "}}"],
  topic: ["((", "))"],
};
const ARROWS: Record<EdgeStyle, string> = { both: "-->", declared: "-.->", undeclared: "==>" };

/** The graph as a Mermaid flowchart, which Markdown pages show as a picture. */
export function mermaidGraph(topology: Topology): string {
  const ids = shortIds(topology);
  const nodes = topology.nodes.map((node) => {
    const [open, close] = SHAPES[node.kind];
    return `  ${ids.get(node.id)}${open}"${nodeWords(node).map(plain).join("<br/>")}"${close}`;
  });
  const edges = topology.edges.map(
    (edge) =>
      `  ${ids.get(edge.from)} ${ARROWS[edgeStyle(edge)]}|"${plain(edgeWords(edge))}"| ${ids.get(edge.to)}`,
  );
  return ["flowchart LR", `  %% ${LEGEND}`, ...nodes, ...edges, ""].join("\n");
}

/** As a label that means nothing but itself: what Mermaid, HTML or Markdown might take for more is written as its number. */
function plain(text: string): string {
  const number = (char: string) => `#${char.codePointAt(0)};`;
  return (
    text
      .replaceAll(/[^A-Za-z0-9 ,./-]/gu, number)
      // What begins like an item of a list.
      .replace(/^(\d*)([.-])(?= )/, (_, digits: string, mark: string) => digits + number(mark))
  );
}
