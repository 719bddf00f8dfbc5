// Projects as users write them, run by the command `fleet`, for what only whole processes show: memory, idling, reload.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const FLEET = fileURLToPath(new URL("../../bin/fleet.js", import.meta.url));
/** Inside this package, so that imports of `fleet-framework` and `zod` are found. */
const PROJECTS = fileURLToPath(new URL("./projects", import.meta.url));

export interface BenchProject {
  write(file: string, text: string): void;
  /** Starts `fleet <args>` in the project's folder. */
  fleet(...args: string[]): FleetProcess;
  /** Ends what was started and removes the folder. */
  close(): Promise<void>;
}

export interface FleetProcess {
  readonly pid: number;
  /** Resolves when the process, or one of its children, prints a line that contains `text`. */
  printed(text: string): Promise<void>;
  stop(): Promise<void>;
}

/** What must not outlive the benchmark. Children of these end by themselves. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

export function makeProject(files: Record<string, string>): BenchProject {
  mkdirSync(PROJECTS, { recursive: true });
  const folder = mkdtempSync(join(PROJECTS, "p-"));
  const started: FleetProcess[] = [];
  const write = (file: string, text: string) => writeFileSync(join(folder, file), text);
  for (const [file, text] of Object.entries(files)) write(file, text);
  return {
    write,
    fleet(...args) {
      const run = startFleet(folder, args);
      started.push(run);
      return run;
    },
    async close() {
      await Promise.all(started.map((run) => run.stop()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function startFleet(cwd: string, args: readonly string[]): FleetProcess {
  const child = spawn(process.execPath, [FLEET, ...args], { cwd, stdio: ["ignore", "pipe", "pipe"] });
  running.add(child);
  child.once("exit", () => running.delete(child));
  const watches = new Set<() => void>();
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      for (const look of watches) look();
    });
  }
  return {
    pid: child.pid ?? 0,
    printed: (text) =>
      new Promise((resolve, reject) => {
        const gone = () => reject(new Error(`fleet ${args.join(" ")} ended:\n${output}`));
        const look = () => {
          if (!output.includes(text)) return;
          watches.delete(look);
          child.removeListener("exit", gone);
          resolve();
        };
        watches.add(look);
        if (child.exitCode === null) child.once("exit", gone);
        else gone();
        look();
      }),
    stop: () => ended(child),
  };
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  child.kill("SIGTERM");
  await exit;
}

/** Processes are looked into through /proc: on other systems these rows are left out. */
export const canInspect = process.platform === "linux";

/** The processes of a worker's automations: its children, without the compiler. */
export function childrenOf(pid: number): number[] {
  const pids = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean);
  return pids
    .map(Number)
    .filter((child) => readFileSync(`/proc/${child}/cmdline`, "utf8").includes("child-main"));
}

/** Resident memory in MB. */
export function residentMb(pid: number): number {
  const kb = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return (Number(kb) * 1024) / 1e6;
}

/** CPU time used so far, in seconds. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticksPerSecond = 100;
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** An automation that waits for entries which never come. */
export const WAITER = `import { defineContinuous, defineStream } from "fleet-framework";
import { z } from "zod";

const FEED = defineStream("feed", z.object({ n: z.number() }));

export default defineContinuous("waiter", {
  uses: { pop: [FEED] },
  async runSlot(ctx) {
    console.log("waiting in slot " + ctx.slotId);
    for await (const { n } of ctx.stream(FEED)) console.log(n);
  },
});
`;

export function config(automation: string, slots: number): string {
  return `import { defineConfig } from "fleet-framework";

export default defineConfig({ automations: ["./${automation}.ts"], deploy: { "${automation}": { slots: ${slots} } } });
`;
}
