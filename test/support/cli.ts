// Runs the built command `fleet` in folders of its own. Needs dist/ (`npm run build`).
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { inject, onTestFinished } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BIN = join(ROOT, "bin", "fleet.js");

export interface RunOptions {
  cwd: string;
  /** Added to an environment without any of Fleet's variables. */
  env?: Record<string, string>;
  /** What runs the command, as in `["ip", "netns", "exec", "b"]`: it must become the command, not start it. Default none. */
  within?: readonly string[];
}

export interface RunResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs a command to its end, without a terminal. */
export async function runFleet(args: readonly string[], options: RunOptions): Promise<RunResult> {
  const running = startFleet(args, options);
  const code = await running.ended;
  return { code, stdout: running.stdout(), stderr: running.stderr() };
}

export interface RunningFleet {
  readonly pid: number;
  readonly ended: Promise<number | null>;
  stdout(): string;
  stderr(): string;
  /** Waits until what it has printed (on both) satisfies `seen`. Fails when it ends, or after `ms`. */
  until(seen: (text: string) => boolean, ms?: number): Promise<void>;
  signal(name: NodeJS.Signals): void;
}

/** Starts a command; it is killed at the end of the test if it still runs then. */
export function startFleet(args: readonly string[], { cwd, env, within = [] }: RunOptions): RunningFleet {
  const command = [...within, process.execPath, BIN, ...args];
  const child = spawn(command[0] as string, command.slice(1), {
    cwd,
    env: { ...plainEnvironment(), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const text = { stdout: "", stderr: "" };
  const listeners = new Set<() => void>();
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (chunk: string) => {
      text[name] += chunk;
      for (const listener of listeners) listener();
    });
  }
  const ended = once(child, "close").then(([code]) => {
    for (const listener of listeners) listener();
    return code as number | null;
  });
  onTestFinished(() => endOf(child));
  return {
    pid: child.pid as number,
    ended,
    stdout: () => text.stdout,
    stderr: () => text.stderr,
    signal: (name) => void child.kill(name),
    until: (seen, ms = 60_000) =>
      new Promise((resolve, reject) => {
        const settle = (fail?: string) => {
          clearTimeout(timer);
          listeners.delete(look);
          if (fail === undefined) resolve();
          else reject(new Error(`${fail}\nstdout:\n${text.stdout}\nstderr:\n${text.stderr}`));
        };
        const look = () => {
          if (seen(text.stdout + text.stderr)) settle();
          else if (child.exitCode !== null) settle(`fleet ended (exit code ${child.exitCode})`);
        };
        const timer = setTimeout(() => settle(`not seen within ${ms} ms`), ms);
        listeners.add(look);
        look();
      }),
  };
}

async function endOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}

function plainEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(FLEET_|FORCE_COLOR|NODE_OPTIONS|VITEST)/.test(name)),
  );
}

/** Zod as its package is published, with its types. */
export const PUBLISHED_ZOD = realpathSync(join(ROOT, "node_modules", "zod"));

/** A folder with these files, in which `fleet-framework` and `zod` can be imported; it goes at the end of the test. */
export function makeProject(files: Record<string, string> = {}, zod = inject("zodFolder")): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "fleet-cli-")));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }));
  mkdirSync(join(dir, "node_modules"));
  symlinkSync(ROOT, join(dir, "node_modules", "fleet-framework"));
  symlinkSync(zod, join(dir, "node_modules", "zod"));
  for (const [path, content] of Object.entries(files)) writeInto(dir, path, content);
  return dir;
}

export function writeInto(dir: string, path: string, content: string): void {
  mkdirSync(dirname(join(dir, path)), { recursive: true });
  writeFileSync(join(dir, path), content);
}
