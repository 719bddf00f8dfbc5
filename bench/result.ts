import { ratios, spread, type Spread } from "./stats.ts";

/** What one side did: one figure per round. */
export interface Figures {
  label: string;
  unit: string;
  /** One per round, in the order of the rounds. */
  rounds: readonly number[];
}

export interface Target {
  is: "at least" | "at most";
  value: number;
}

/** One line of the table. Its `value` is the ratio of the two sides, or our own figure where there is no other side. */
export interface Line {
  /** Row of the targets: `P1`, … */
  row: string;
  what: string;
  ours: Figures;
  theirs?: Figures;
  value: Spread;
  target?: Target;
  /** Undefined where there is no target: a figure for information. */
  met?: boolean;
}

/** Makes a line and judges it: by the median over the rounds. */
export function line(parts: Omit<Line, "value" | "met">): Line {
  const { ours, theirs, target } = parts;
  const value = theirs === undefined ? spread(ours.rounds) : ratios(ours.rounds, theirs.rounds);
  return { ...parts, value, ...(target === undefined ? {} : { met: meets(value.median, target) }) };
}

export function meets(value: number, target: Target): boolean {
  return target.is === "at least" ? value >= target.value : value <= target.value;
}
