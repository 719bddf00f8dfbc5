// What `fleet graph` shows, as lines that can be compared with a list written by hand.
import { expect } from "vitest";
import type { Topology } from "../../src/protocol/topology.ts";
import { runFleet } from "./cli.ts";

/** `from -direction-> to: declared, observed`, in the order of the graph. */
export async function graphLines(flags: readonly string[], cwd: string): Promise<string[]> {
  const { code, stdout, stderr } = await runFleet(["graph", "--format", "json", ...flags], { cwd });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const { edges } = JSON.parse(stdout) as Topology;
  return edges.map(({ from, to, direction, declared, observed }) => {
    const seen = observed !== null && (observed.count > 0 || direction === "match");
    const how = [...(declared ? ["declared"] : []), ...(seen ? ["observed"] : [])];
    return `${from} -${direction}-> ${to}: ${how.join(", ")}`;
  });
}
