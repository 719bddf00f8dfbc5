import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Machine } from "./machine.ts";
import type { Figures, Line } from "./result.ts";
import { spread } from "./stats.ts";

export interface Report {
  suite: string;
  startedAt: string;
  quick: boolean;
  rounds: number;
  machine: Machine;
  method: readonly string[];
  lines: readonly Line[];
}

export function printHead({ machine, rounds, method, quick }: Omit<Report, "lines">): void {
  const versions = Object.entries(machine.versions).map(([name, version]) => `${name} ${version}`);
  console.log(`${machine.cpu}, ${machine.cores} cores, ${machine.memoryGb} GB, ${machine.system}`);
  console.log(`${versions.join(" · ")} · load ${machine.load}`);
  for (const text of method) console.log(`  ${text}`);
  console.log(`  ${rounds} rounds${quick ? ", quick run: figures are rough" : ""}\n`);
}

/** One line of the table, as soon as it is there. */
export function printLine(line: Line): void {
  const { row, what, ours, theirs, value, target, met } = line;
  const verdict = met === undefined ? "" : met ? "met" : "MISSED";
  console.log(`${row.padEnd(4)} ${what}`);
  console.log(`       ${describe(ours)}`);
  if (theirs !== undefined) console.log(`       ${describe(theirs)}`);
  const unit = theirs === undefined ? ` ${ours.unit}` : "";
  const shown = `${number(value.median)}${unit} (${number(value.min)} to ${number(value.max)})`;
  const aim =
    target === undefined ? "" : `   target ${target.is === "at least" ? ">=" : "<="} ${number(target.value)}`;
  console.log(`       ${theirs === undefined ? "value" : "ratio"} ${shown}${aim}   ${verdict}\n`);
}

export function printSummary(lines: readonly Line[]): void {
  const judged = lines.filter((line) => line.met !== undefined);
  const missed = judged.filter((line) => line.met === false);
  console.log(`${judged.length - missed.length} of ${judged.length} targets met`);
  for (const { row, what } of missed) console.log(`  missed: ${row} ${what}`);
}

/** Writes all of it, every round's figure included, and answers where. */
export function writeReport(folder: string, report: Report): string {
  mkdirSync(folder, { recursive: true });
  const stamp = report.startedAt.replace(/[:.]/g, "-").slice(0, 19);
  const file = join(folder, `${report.suite}-${stamp}.json`);
  writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`);
  return file;
}

function describe({ label, unit, rounds }: Figures): string {
  const { median, min, max } = spread(rounds);
  return `${label.padEnd(46)} ${number(median).padStart(9)} ${unit} (${number(min)} to ${number(max)})`;
}

/** Three significant digits, thousands apart. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const rounded = value === 0 ? 0 : Number(value.toPrecision(3));
  return rounded.toLocaleString("en-US", { maximumFractionDigits: 3 });
}
