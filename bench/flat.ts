import { line, type Line } from "./result.ts";
import { median } from "./stats.ts";

/** P13: the dearest size against the cheapest; `figures` are one row per size, in microseconds. */
export function flatLine(what: string, sizes: readonly number[], figures: readonly number[][]): Line {
  const medians = figures.map(median);
  const dearest = medians.indexOf(Math.max(...medians));
  const cheapest = medians.indexOf(Math.min(...medians));
  const at = (index: number) => ({
    label: `at ${sizes[index]}`,
    unit: "µs",
    rounds: figures[index] as number[],
  });
  const all = sizes.map((size, index) => `${size}: ${Math.round(medians[index] as number)} µs`).join(", ");
  return line({
    row: "P13",
    what: `${what}, p50, dearest against cheapest (${all})`,
    ours: at(dearest),
    theirs: at(cheapest),
    target: { is: "at most", value: 2 },
  });
}
