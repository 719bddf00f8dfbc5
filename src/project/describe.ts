// User code is never loaded into the calling process: a child imports the built modules and sends back plain data.
//
// The config legitimately reads `process.env.FLEET_STORE`, so the child begins with the whole environment; automations run
// later without Fleet's secrets and so are read without them too: the child drops them before it loads the first. The order
// is given anyway: only the config says which automations there are.
import { fork, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { ERROR_CODES, FleetError, type ErrorCode } from "../errors.ts";
import { ownProgram } from "../internal/own-files.ts";
import type { BuiltModule } from "./build.ts";
import type { ProjectConfig } from "./config.ts";
import type { DescribedAutomation, DescribeMessage, DescribeRequest } from "./describe-protocol.ts";
import { shownPath } from "./files.ts";

export interface DescribeOptions {
  /** The project's folder. */
  dir: string;
  /** Longest time for one module, in seconds; default 30. */
  limitSeconds?: number;
}

const LIMIT_SECONDS = 30;

/** Reads the modules of one project, in a process that is started for the first of them and ends with the reader. */
export class ModuleReader implements Disposable {
  readonly #options: DescribeOptions;
  #child: ChildProcess | undefined;

  constructor(options: DescribeOptions) {
    this.#options = options;
  }

  /** Reads the config file. Its code sees the whole environment. */
  async config(module: BuiltModule): Promise<ProjectConfig> {
    let config: ProjectConfig | undefined;
    await this.#ask("config", [module], (message) => {
      if (message.type === "config") config = message.config;
    });
    return config as unknown as ProjectConfig;
  }

  /** Reads the automations of each module. Throws what the first bad one threw, with the place in the user's file. */
  async automations(modules: readonly BuiltModule[]): Promise<Map<string, DescribedAutomation[]>> {
    const found = new Map<string, DescribedAutomation[]>();
    if (modules.length === 0) return found;
    await this.#ask("automations", modules, (message) => {
      if (message.type === "automations") found.set(message.source, message.automations);
    });
    return found;
  }

  [Symbol.dispose](): void {
    this.#child?.kill("SIGKILL");
    this.#child = undefined;
  }

  async #ask(
    kind: DescribeRequest["kind"],
    modules: readonly BuiltModule[],
    onMessage: (message: DescribeMessage) => void,
  ): Promise<void> {
    const { dir, limitSeconds = LIMIT_SECONDS } = this.#options;
    const child = this.#running() ?? this.#start();
    await new Promise<void>((resolve, reject) => {
      follow(child, dir, limitSeconds, { onMessage, resolve, reject });
      child.send({ kind, dir, modules } satisfies DescribeRequest, (error) => {
        if (error !== null) reject(failure("cannot start reading the project", error.message));
      });
    });
  }

  /** The one that has read before, unless what it has read ended it afterwards. */
  #running(): ChildProcess | undefined {
    return this.#child?.connected === true ? this.#child : undefined;
  }

  #start(): ChildProcess {
    this.#child = fork(fileURLToPath(ownProgram("project/describe-child.js")), [String(process.pid)], {
      cwd: this.#options.dir,
      env: process.env,
      execArgv: [],
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    return this.#child;
  }
}

interface Outcome {
  onMessage(message: DescribeMessage): void;
  resolve(): void;
  reject(error: Error): void;
}

/** Listens to what a child says until it is done with one request. */
function follow(child: ChildProcess, dir: string, limitSeconds: number, outcome: Outcome): void {
  let where = "the project";
  let output = "";
  const collect = (chunk: unknown) => (output = `${output}${String(chunk)}`.slice(-2000));
  const settle = (error?: Error) => {
    clearTimeout(timer);
    child.off("message", hear).off("error", broken).off("close", ended);
    child.stdout?.off("data", collect).resume();
    child.stderr?.off("data", collect).resume();
    if (error === undefined) outcome.resolve();
    else outcome.reject(error);
  };
  const giveUp = () =>
    settle(failure(where, `still loading after ${limitSeconds} s (a top-level await that never ends?)`));
  const hear = (message: DescribeMessage) => {
    timer.refresh();
    if ("source" in message) where = shownPath(dir, message.source);
    if (message.type === "failed") settle(failure(where, message.message, message.code));
    else if (message.type === "done") settle();
    else outcome.onMessage(message);
  };
  const broken = (error: Error) => settle(failure(where, error.message));
  const ended = (code: number | null, signal: string | null) => {
    const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
    const said = output.trim() === "" ? "" : `\n${output.trim()}`;
    settle(failure(where, `the process ended while loading it (${how})${said}`));
  };
  const timer = setTimeout(giveUp, limitSeconds * 1000);
  child.stdout?.on("data", collect);
  child.stderr?.on("data", collect);
  child.on("message", hear).once("error", broken).once("close", ended);
}

function failure(where: string, what: string, code?: string): FleetError {
  const known = code !== undefined && code in ERROR_CODES ? (code as ErrorCode) : "FLEET_PROJECT_INVALID";
  return new FleetError(known, `${where}: ${what}`);
}
