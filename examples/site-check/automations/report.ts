// Takes findings in, many at a time, keeps them in a file, and writes the report anew when there is something to say.
import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { defineBatch } from "fleet-framework";
import { z } from "zod";
import { Finding, REPORT } from "../contracts.ts";
import { renderHtml, renderText } from "../render.ts";
import { Findings } from "../summary.ts";

/** The report is written at most so often; what came after it is written with the next findings, or at the end of the run. */
const WRITE_MS = 1000;

let known: { out: string; findings: Findings } | undefined;
let writtenAt = 0;

export default defineBatch("report", {
  config: z.object({ out: z.string() }),
  tasks: REPORT,
  size: 200,
  waitSeconds: 0.2,
  async runMany(tasks, ctx) {
    const { out } = ctx.config;
    known ??= { out, findings: load(out) };
    const { findings } = known;
    // A finding that comes twice is known: the file is read before anything is added.
    const fresh = tasks.map(({ payload }) => payload).filter((finding) => findings.add(finding));
    appendFileSync(fileOf(out), fresh.map((finding) => `${JSON.stringify(finding)}\n`).join(""));
    const waiting = await ctx.queue(REPORT).length();
    if (waiting > 0 && Date.now() - writtenAt < WRITE_MS) return tasks.map(() => null);
    writtenAt = Date.now();
    write(out, findings);
    return tasks.map(() => null);
  },
});

function fileOf(out: string): string {
  return join(out, "findings.jsonl");
}

function load(out: string): Findings {
  mkdirSync(out, { recursive: true });
  const findings = new Findings();
  if (!existsSync(fileOf(out))) return findings;
  const text = readFileSync(fileOf(out), "utf8");
  for (const line of text.split("\n")) {
    // A process that is killed may leave half a line: that finding comes again.
    const finding = Finding.safeParse(parsed(line));
    if (finding.success) findings.add(finding.data);
  }
  if (text !== "" && !text.endsWith("\n")) appendFileSync(fileOf(out), "\n");
  return findings;
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** Each file whole, or as it was. */
function write(out: string, findings: Findings): void {
  const summary = findings.summary();
  const files = {
    "report.json": `${JSON.stringify(summary, null, 2)}\n`,
    "report.html": renderHtml(summary),
    "report.txt": renderText(summary),
  };
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(out, `${name}.new`), text);
    renameSync(join(out, `${name}.new`), join(out, name));
  }
}
