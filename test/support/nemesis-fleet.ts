// A fleet of real worker processes for the tests that break things at random: its workers, its emits, and what it leaves behind.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { fleetOn } from "../../src/automation/fleet.ts";
import { defineStream } from "../../src/contracts/stream.ts";
import { SILENT } from "../../src/internal/log.ts";
import type { Store } from "../../src/store/store.ts";

const BIN = fileURLToPath(new URL("../../bin/fleet.js", import.meta.url));

/** Short times: lease 3 s, a beat five times a second. */
export const SHORT = {
  beatMs: 200,
  leaseMs: 3000,
  stopGraceMs: 2000,
  backoffBaseMs: 200,
  backoffCapMs: 1000,
  probeMs: 2000,
  // Hundreds of injected crashes are not what a budget is for.
  budgets: [],
} as const;

/** An automation whose slots each emit ten times a second, and say where they are and which run of the slot this is. */
export const TICKER = {
  "ticker.ts": `
    import { randomUUID } from "node:crypto";
    import { defineContinuous, defineStream } from "fleet-framework";
    import { z } from "zod";
    const tick = z.object({ slot: z.number(), worker: z.string(), pid: z.number(), run: z.string() });
    export default defineContinuous("ticker", {
      output: defineStream("ticker", tick, { maxLength: 100_000, ttlSeconds: 300 }),
      async runSlot(ctx) {
        const run = randomUUID();
        for await (const _ of ctx.loop({ everySeconds: 0.1 }))
          await ctx.emit({ slot: ctx.slotId, worker: ctx.worker, pid: process.pid, run });
      },
    });`,
};
export const TICKS = defineStream(
  "ticker",
  z.object({ slot: z.number(), worker: z.string(), pid: z.number(), run: z.string() }),
  { maxLength: 100_000, ttlSeconds: 300 },
);

export function projectFiles(slots: number): Record<string, string> {
  return {
    ...TICKER,
    "fleet.config.ts": `
      import { defineConfig } from "fleet-framework";
      export default defineConfig({ automations: ["./ticker.ts"], deploy: { ticker: { slots: ${slots} } } });`,
  };
}

export interface WorkerProcess {
  readonly child: ChildProcess;
  readonly pid: number;
  output(): string;
  lines(): number;
  readonly ended: Promise<number | null>;
  /** How it ended, in words; undefined while it runs. */
  exit(): string | undefined;
}

export interface SpawnOptions {
  cwd: string;
  /** Undefined: its default id. */
  id: string | undefined;
  flags: readonly string[];
  timings?: Readonly<Record<string, unknown>>;
  /** Added to its environment. */
  env?: Readonly<Record<string, string>>;
}

/** Starts a `fleet worker`. Whoever starts it ends it. Of its output the last 200 kB are kept. */
export function spawnWorker({ cwd, id, flags, timings = SHORT, env = {} }: SpawnOptions): WorkerProcess {
  const child = spawn(
    process.execPath,
    [BIN, "worker", ...(id === undefined ? [] : ["--id", id]), ...flags],
    {
      cwd,
      env: { ...plainEnvironment(), FLEET_TIMINGS: JSON.stringify(timings), ...env },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  let text = "";
  let lines = 0;
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk: string) => {
      lines += chunk.split("\n").length - 1;
      text = (text + chunk).slice(-200_000);
    });
  }
  const ended = once(child, "close").then(([code]) => code as number | null);
  return {
    child,
    pid: child.pid as number,
    output: () => text,
    lines: () => lines,
    ended,
    exit: () => exitOf(child),
  };
}

function exitOf({ exitCode, signalCode }: ChildProcess): string | undefined {
  if (signalCode !== null) return signalCode;
  return exitCode === null ? undefined : `exit code ${exitCode}`;
}

export async function endWorker(worker: WorkerProcess, signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
  if (worker.exit() === undefined) {
    worker.child.kill(signal);
    if (signal !== "SIGKILL") worker.child.kill("SIGCONT");
  }
  await worker.ended;
}

function plainEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(FLEET_|FORCE_COLOR|NODE_OPTIONS|VITEST)/.test(name)),
  );
}

export interface Tick {
  slot: number;
  worker: string;
  pid: number;
  run: string;
  /** Store time. */
  ts: number;
}

/** Answers a function that takes all ticks out of the stream. */
export function tickReader(store: Store): () => Promise<Tick[]> {
  const handle = fleetOn(store, { log: SILENT }).stream(TICKS);
  return async () => {
    const all: Tick[] = [];
    for (;;) {
      const some = await handle.popEnvelopes({ n: 5000 });
      all.push(...some.map(({ payload, ts }) => ({ ...payload, ts })));
      if (some.length < 5000) return all;
    }
  };
}

/** Who emitted for each slot. */
export function emittersOf(ticks: readonly Tick[]): Map<number, Set<string>> {
  const emitters = new Map<number, Set<string>>();
  for (const { slot, worker, pid } of ticks) {
    emitters.set(slot, (emitters.get(slot) ?? new Set()).add(`${worker} ${pid}`));
  }
  return emitters;
}

/** Processes whose environment or command line contains one of these texts. Linux only. */
export function processesWith(texts: Iterable<string>): number[] {
  const wanted = [...texts];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) =>
      ["environ", "cmdline"].some((file) => {
        try {
          const content = readFileSync(`/proc/${pid}/${file}`, "latin1");
          return wanted.some((text) => content.includes(text));
        } catch {
          return false;
        }
      }),
    )
    .map(Number);
}

export interface ProcessUse {
  cpuMs: number;
  rssMb: number;
  descriptors: number;
}

/** What a process has used and holds; undefined when it is gone. Linux only. */
export function useOf(pid: number): ProcessUse | undefined {
  if (!existsSync(`/proc/${pid}/stat`)) return undefined;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // Fields 14 and 15 of stat(5), in clock ticks of 10 ms; 24 is the resident set in pages.
    const ticks = Number(fields[11]) + Number(fields[12]);
    const descriptors = readdirSync(`/proc/${pid}/fd`).length;
    return { cpuMs: ticks * 10, rssMb: (Number(fields[21]) * 4096) / 1e6, descriptors };
  } catch {
    return undefined;
  }
}

/** CPU time of several processes together, in milliseconds. */
export function cpuOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + (useOf(pid)?.cpuMs ?? 0), 0);
}
