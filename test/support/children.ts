// Starts scripts of `children/` as Node processes of their own. The sources are transpiled once per test file into a
// folder inside the project, where imports of packages resolve, and where the .lua and .sql files lie beside the code.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { transform } from "esbuild";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const FOLDERS = [
  "src/store",
  "src/internal",
  "src/protocol",
  "src/contracts",
  "src/primitives",
  "src/automation",
  "test/support/children",
];

export interface Children {
  /** Starts `children/<script>.ts` and hands it `input`; `env` is added to its environment. */
  start<Out>(script: string, input: unknown, env?: Record<string, string>): Child<Out>;
  /** Kills what still runs and removes the transpiled files. */
  dispose(): Promise<void>;
}

export interface Child<Out> {
  readonly pid: number;
  /** All messages so far. */
  readonly messages: readonly Out[];
  /** The first message that fits, also one that has come already. Fails when the child ends before. */
  next<Fit extends Out>(fits: (message: Out) => message is Fit): Promise<Fit>;
  send(message: unknown): void;
  kill(signal: NodeJS.Signals): void;
  readonly ended: Promise<void>;
}

export async function prepareChildren(): Promise<Children> {
  const out = join(ROOT, ".fleet", `test-children-${process.pid}-${performance.now().toString(36)}`);
  await Promise.all(["src/errors.ts", ...FOLDERS.flatMap(filesIn)].map((file) => emit(file, out)));
  const running = new Set<ChildProcess>();
  return {
    start(script, input, env = {}) {
      const path = join(out, "test/support/children", `${script}.js`);
      const child = fork(path, {
        execArgv: [],
        stdio: ["ignore", "inherit", "inherit", "ipc"],
        env: { ...process.env, ...env },
      });
      running.add(child);
      child.once("exit", () => running.delete(child));
      child.send({ input });
      return wrap(script, child);
    },
    async dispose() {
      await Promise.all(
        [...running].map((child) => {
          const ended = once(child, "exit");
          child.kill("SIGKILL");
          return ended;
        }),
      );
      rmSync(out, { recursive: true, force: true });
    },
  };
}

function filesIn(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => /\.(ts|lua|sql)$/.test(file) && !/\.test\.ts$|^conformance/.test(file))
    .map((file) => join(folder, file));
}

async function emit(file: string, out: string): Promise<void> {
  const target = join(out, file.replace(/\.ts$/, ".js"));
  mkdirSync(dirname(target), { recursive: true });
  if (!file.endsWith(".ts")) return cpSync(join(ROOT, file), target);
  const { code } = await transform(readFileSync(join(ROOT, file), "utf8"), {
    loader: "ts",
    format: "esm",
    target: "node20",
    sourcefile: file,
  });
  writeFileSync(target, code.replaceAll(/((?:from|import) ?\(?)"(\.[^"\n]+)\.ts"/g, '$1"$2.js"'));
}

function wrap<Out>(script: string, child: ChildProcess): Child<Out> {
  const messages: Out[] = [];
  const waiting = new Set<() => void>();
  let over = false;
  const wake = () => waiting.forEach((check) => check());
  child.on("message", (message) => {
    messages.push(message as Out);
    wake();
  });
  const ended = once(child, "exit").then(() => {
    over = true;
    wake();
  });
  return {
    pid: child.pid as number,
    messages,
    next: <Fit extends Out>(fits: (message: Out) => message is Fit) =>
      new Promise<Fit>((resolve, reject) => {
        const check = () => {
          const found = messages.find(fits);
          if (found === undefined && !over) return;
          waiting.delete(check);
          if (found === undefined) reject(new Error(`${script} ended with code ${child.exitCode}`));
          else resolve(found);
        };
        waiting.add(check);
        check();
      }),
    send: (message) => void child.send(message as object),
    kill: (signal) => void child.kill(signal),
    ended,
  };
}
