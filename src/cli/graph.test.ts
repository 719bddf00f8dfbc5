// What is drawn says what the graph says, whatever the names: read back by a parser of each language.
import parseDot, { type EdgeStmt, type NodeId, type NodeStmt } from "dotparser";
import { describe, expect, it } from "vitest";
import type { Topology, TopologyEdge, TopologyNode } from "../protocol/topology.ts";
import { dotGraph } from "./graph-dot.ts";
import { mermaidGraph } from "./graph-mermaid.ts";

const NASTY = [
  "a.b-c_d",
  "end",
  "subgraph",
  "1. list",
  "- item",
  "-- > |x|",
  '"quoted" [x](y) {z} <b>bold</b> &amp; #35;',
  "`code` **b** _c_ ~d~",
  "\\N \\",
  "%%{init: {}}%%",
  "ü 🚀",
  "a;b",
  "fa:fa-car",
];
const rates = { in_per_minute: 0, out_per_minute: 0 };
const external = (name: string): TopologyNode => ({ id: `external:${name}`, kind: "external", name });
const observed = (per_minute: number) => ({ count: 1, first_seen_at: 0, last_seen_at: 0, per_minute });

const NODES: TopologyNode[] = [
  {
    id: "automation:end",
    kind: "automation",
    name: "end",
    type: "batch",
    slots: 3,
    paused: true,
    running: 2,
  },
  { id: "automation:x", kind: "automation", name: "x", type: null, slots: null, paused: false, running: 0 },
  ...NASTY.map(external),
  {
    id: "stream:end",
    kind: "stream",
    name: "end",
    ...rates,
    figures: { depth: 7, oldest_seconds: 61, pushed: 9, popped: 2, lost: 0 },
  },
  {
    id: "queue:end",
    kind: "queue",
    name: "end",
    ...rates,
    figures: { depth: 4, active: 2, failed: 1, oldest_seconds: null, submitted: 9, completed: 2 },
  },
  {
    id: "pool:end",
    kind: "pool",
    name: "end",
    ...rates,
    figures: { depth: 1, held: 2, cooling: 0, retired: 0, waiting: 3, oldest_seconds: 5, put: 3, claimed: 9 },
  },
  { id: "topic:a.*", kind: "topic", name: "a.*", ...rates },
];
const EDGES: TopologyEdge[] = [
  { from: "automation:end", to: "stream:end", direction: "emit", declared: true, observed: observed(1234.5) },
  { from: "stream:end", to: "automation:x", direction: "pop", declared: false, observed: observed(0) },
  { from: "pool:end", to: "queue:end", direction: "refill", declared: true, observed: null },
  ...NASTY.map((name): TopologyEdge => ({
    from: `external:${name}`,
    to: "queue:end",
    direction: "submit",
    declared: false,
    observed: observed(2.25),
  })),
  { from: "topic:a.*", to: "topic:a.*", direction: "match", declared: true, observed: null },
];
const TOPOLOGY: Topology = { now: 0, nodes: NODES, edges: EDGES, without_figures: 0 };
const NOTHING: Topology = { now: 0, nodes: [], edges: [], without_figures: 0 };

interface Drawn {
  nodes: { id: string; label: string; shape: string }[];
  edges: { from: string; to: string; label: string; line: string }[];
}

const WORDS = [
  "end\nbatch automation, paused, 2 of 3 slots",
  "x\nautomation, not deployed",
  ...NASTY.map((name) => `${name}\nexternal`),
  "end\nstream, 7 entries, oldest 1 m 1 s",
  "end\nqueue, 4 tasks, 2 active, 1 failed",
  "end\npool, 1 free, 2 held, 3 wait",
  "a.*\ntopic",
];

/** Checks all but how shapes and lines are called. */
function expectWhole({ nodes, edges }: Drawn): void {
  expect(nodes.map(({ label }) => label)).toEqual(WORDS);
  const ids = new Map(NODES.map(({ id }, at) => [id, nodes[at]?.id]));
  expect(new Set(ids.values()).size).toBe(NODES.length);
  expect(edges.map(({ from, to, label }) => ({ from, to, label }))).toEqual(
    EDGES.map(({ from, to, direction }) => ({
      from: ids.get(from),
      to: ids.get(to),
      label: { emit: "emit 1235/min", submit: "submit 2.3/min" }[direction as string] ?? direction,
    })),
  );
  // One shape for each kind, one line for each style.
  const shapes = new Map<string, Set<string>>();
  for (const [at, { shape }] of nodes.entries()) {
    const { kind } = NODES[at] as TopologyNode;
    shapes.set(kind, (shapes.get(kind) ?? new Set()).add(shape));
  }
  expect([...shapes.values()].map(({ size }) => size)).toEqual([1, 1, 1, 1, 1, 1]);
  expect(new Set([...shapes.values()].flatMap((set) => [...set])).size).toBe(6);
  const lines = edges.map(({ line }) => line);
  const [both, undeclared, declared] = lines;
  expect(new Set([both, undeclared, declared]).size).toBe(3);
  expect(lines.slice(3)).toEqual([...NASTY.map(() => undeclared), both]);
}

describe("DOT", () => {
  const read = (text: string): Drawn => {
    const [graph, ...more] = parseDot(text);
    expect([graph?.type, more.length]).toEqual(["digraph", 0]);
    const attribute = ({ attr_list: list }: NodeStmt | EdgeStmt, name: string) =>
      list.find(({ id }) => id === name)?.eq as string;
    // As Graphviz shows a label; the parser has taken the backslash before a quote away.
    const shown = (label: string) =>
      label.replaceAll(/\\(.)/gs, (_, char: string) => (char === "n" ? "\n" : char)).replaceAll("&amp;", "&");
    const children = graph?.children ?? [];
    const nodes = children.filter((one): one is NodeStmt => one.type === "node_stmt");
    const edges = children.filter((one): one is EdgeStmt => one.type === "edge_stmt");
    expect(children.length - nodes.length - edges.length).toBe(1);
    return {
      nodes: nodes.map((node) => ({
        id: String(node.node_id.id),
        label: shown(attribute(node, "label")),
        shape: attribute(node, "shape"),
      })),
      edges: edges.map((edge) => {
        const [from, to] = edge.edge_list as NodeId[];
        return {
          from: String(from?.id),
          to: String(to?.id),
          label: attribute(edge, "label"),
          line: attribute(edge, "style"),
        };
      }),
    };
  };

  it("says what the graph says", () => {
    expectWhole(read(dotGraph(TOPOLOGY)));
    expect(read(dotGraph(NOTHING))).toEqual({ nodes: [], edges: [] });
  });
});

describe("Mermaid", () => {
  // The part of its grammar that is used here, and nothing else: within quotes no character but those that mean only themselves.
  const TEXT = "(?:[A-Za-z0-9 ,./-]|#\\d+;|<br/>)*";
  const NODE = new RegExp(`^  (n\\d+)([[({]{1,2})"(${TEXT})"([\\])}]{1,2})$`);
  const EDGE = new RegExp(`^  (n\\d+) (-->|-\\.->|==>)\\|"(${TEXT})"\\| (n\\d+)$`);
  const CLOSE: Record<string, string> = {
    "[": "]",
    "([": "])",
    "[(": ")]",
    "[[": "]]",
    "{{": "}}",
    "((": "))",
  };

  const shown = (label: string) =>
    label
      .replaceAll("<br/>", "\n")
      .replaceAll(/#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)));

  const read = (text: string): Drawn => {
    const [head, legend, ...lines] = text.split("\n");
    expect(head).toBe("flowchart LR");
    expect(legend).toMatch(/^ {2}%% [a-z:;, ]+$/);
    expect(lines.pop()).toBe("");
    const drawn: Drawn = { nodes: [], edges: [] };
    for (const line of lines) {
      const [, id, open, label = "", close] = NODE.exec(line) ?? [];
      const [, from, arrow, words = "", to] = EDGE.exec(line) ?? [];
      if (id !== undefined && open !== undefined) {
        expect(close).toBe(CLOSE[open]);
        // Markdown, which Mermaid takes labels for, would make lists of these.
        expect(label).not.toMatch(/^\d*[.-] /);
        drawn.nodes.push({ id, label: shown(label), shape: open });
      } else if (from !== undefined && to !== undefined && arrow !== undefined) {
        drawn.edges.push({ from, to, label: shown(words), line: arrow });
      } else throw new Error(`not understood: ${line}`);
    }
    return drawn;
  };

  it("says what the graph says", () => {
    expectWhole(read(mermaidGraph(TOPOLOGY)));
    expect(read(mermaidGraph(NOTHING))).toEqual({ nodes: [], edges: [] });
  });
});
