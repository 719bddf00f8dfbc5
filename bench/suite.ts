import type { Line } from "./result.ts";

export interface Bench {
  /** Address of a Redis of this run's own. */
  redisUrl: string;
  redisPort: number;
  /** A folder of this run's own, removed at the end. */
  folder: string;
  rounds: number;
  quick: boolean;
}

/** One or more rows of the targets, measured together. */
export interface Part {
  /** Rows that it measures: `P1`, … */
  rows: readonly string[];
  run(bench: Bench): Promise<Line[]>;
}

export interface Suite {
  /** How it is measured, for whoever reads the figures. */
  method: readonly string[];
  parts: readonly Part[];
}
