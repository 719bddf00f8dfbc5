// `npm run bench -- <streams|queues|pools|events> [--quick] [--only P1,P3] [--rounds N] [--out DIR]`
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { events } from "./events.ts";
import { describeMachine } from "./machine.ts";
import { pools } from "./pools.ts";
import { queues } from "./queues.ts";
import { startRedis } from "./redis.ts";
import { printHead, printLine, printSummary, writeReport } from "./report.ts";
import type { Line } from "./result.ts";
import { streams } from "./streams.ts";
import type { Suite } from "./suite.ts";

const SUITES: Record<string, Suite> = { streams, queues, pools, events };
/** Seen from dist/bench/, where this runs. */
const RESULTS = fileURLToPath(new URL("../../bench/results", import.meta.url));
const USAGE = `npm run bench -- <suite> [--quick] [--only P1,P3] [--rounds N] [--out DIR]

suites: ${Object.keys(SUITES).join(", ")}
  --quick      few short rounds: shows that it works, figures are rough
  --only LIST  these rows of the targets alone
  --rounds N   counted rounds, 1 to 99; default 7, with --quick 2
  --out DIR    where the figures go as JSON; default bench/results`;

interface Choice {
  name: string;
  suite: Suite;
  quick: boolean;
  rounds: number;
  only: ReadonlySet<string> | undefined;
  out: string;
}

async function main({ name, suite, quick, rounds, only, out }: Choice): Promise<void> {
  const startedAt = new Date().toISOString();
  const head = { suite: name, startedAt, quick, rounds, machine: describeMachine(), method: suite.method };
  printHead(head);
  const folder = mkdtempSync(join(tmpdir(), "fleet-bench-"));
  const redis = await startRedis();
  const lines: Line[] = [];
  try {
    for (const part of suite.parts) {
      if (only !== undefined && !part.rows.some((row) => only.has(row))) continue;
      const measured = await part.run({ redisUrl: redis.url, redisPort: redis.port, folder, rounds, quick });
      for (const line of measured) printLine(line);
      lines.push(...measured);
    }
  } finally {
    await redis.stop();
    rmSync(folder, { recursive: true, force: true });
  }
  printSummary(lines);
  console.log(`written to ${writeReport(out, { ...head, lines })}`);
}

function choose(): Choice {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      quick: { type: "boolean", default: false },
      only: { type: "string" },
      rounds: { type: "string" },
      out: { type: "string", default: RESULTS },
      help: { type: "boolean", short: "h" },
    },
  });
  const [name = ""] = positionals;
  const suite = SUITES[name];
  if (suite === undefined || positionals.length !== 1 || values.help === true)
    throw new Error("which suite?");
  const rounds = Number(values.rounds ?? (values.quick ? 2 : 7));
  if (!(Number.isInteger(rounds) && rounds >= 1 && rounds <= 99)) throw new Error("--rounds must be 1 to 99");
  const known = new Set(suite.parts.flatMap((part) => part.rows));
  const only = values.only === undefined ? undefined : new Set(values.only.toUpperCase().split(","));
  const unknown = [...(only ?? [])].find((row) => !known.has(row));
  if (unknown !== undefined)
    throw new Error(`there is no row ${unknown}; there are ${[...known].join(", ")}`);
  return { name, suite, quick: values.quick, rounds, only, out: values.out };
}

function chosen(): Choice | undefined {
  try {
    return choose();
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    process.exitCode = 2;
    return undefined;
  }
}

// Ends with all it started, also when it is interrupted.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

const choice = chosen();
if (choice !== undefined) {
  await main(choice);
  // What a row left open must not keep the command from ending.
  process.exit();
}
