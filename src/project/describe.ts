// User code is never loaded into the calling process: a child imports the built modules and sends back plain data.
//
// The config file and the automations are read by two children, one after the other. The config legitimately reads
// `process.env.FLEET_STORE`, so its child gets the whole environment; automations run later without Fleet's secrets and so
// are read without them too. The order is given anyway: only the config says which automations there are.
import { fork, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { ERROR_CODES, FleetError, type ErrorCode } from "../errors.ts";
import { ownProgram } from "../internal/own-files.ts";
import { OWN_SECRETS } from "../internal/own-secrets.ts";
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

/** Reads the automations of each module. Throws what the first bad one threw, with the place in the user's file. */
export async function describeAutomations(
  modules: readonly BuiltModule[],
  options: DescribeOptions,
): Promise<Map<string, DescribedAutomation[]>> {
  const found = new Map<string, DescribedAutomation[]>();
  if (modules.length === 0) return found;
  await runChild(
    { kind: "automations", dir: options.dir, modules },
    options,
    withoutSecrets(process.env),
    (message) => {
      if (message.type === "automations") found.set(message.source, message.automations);
    },
  );
  return found;
}

/** Reads the config file. Its code sees the whole environment. */
export async function describeConfig(module: BuiltModule, options: DescribeOptions): Promise<ProjectConfig> {
  let config: ProjectConfig | undefined;
  await runChild({ kind: "config", dir: options.dir, modules: [module] }, options, process.env, (message) => {
    if (message.type === "config") config = message.config;
  });
  return config as unknown as ProjectConfig;
}

function withoutSecrets(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !OWN_SECRETS.includes(name)));
}

/** Resolves once the child has said `done`; it is gone by then, or about to go. */
async function runChild(
  request: DescribeRequest,
  options: DescribeOptions,
  env: NodeJS.ProcessEnv,
  onMessage: (message: DescribeMessage) => void,
): Promise<void> {
  const child = fork(fileURLToPath(ownProgram("project/describe-child.js")), [String(process.pid)], {
    cwd: options.dir,
    env,
    execArgv: [],
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  try {
    await new Promise<void>((resolve, reject) => {
      follow(child, request.dir, options.limitSeconds ?? LIMIT_SECONDS, { onMessage, resolve, reject });
      child.send(request, (error) => {
        if (error !== null) reject(failure("cannot start reading the project", error.message));
      });
    });
  } finally {
    child.kill("SIGKILL");
  }
}

interface Outcome {
  onMessage(message: DescribeMessage): void;
  resolve(): void;
  reject(error: Error): void;
}

function follow(child: ChildProcess, dir: string, limitSeconds: number, outcome: Outcome): void {
  let where = "the project";
  let output = "";
  const collect = (chunk: unknown) => (output = `${output}${String(chunk)}`.slice(-2000));
  child.stdout?.on("data", collect);
  child.stderr?.on("data", collect);
  const giveUp = () =>
    outcome.reject(
      failure(where, `still loading after ${limitSeconds} s (a top-level await that never ends?)`),
    );
  let timer = setTimeout(giveUp, limitSeconds * 1000);
  child.on("message", (message: DescribeMessage) => {
    clearTimeout(timer);
    timer = setTimeout(giveUp, limitSeconds * 1000);
    if ("source" in message) where = shownPath(dir, message.source);
    if (message.type === "failed") outcome.reject(failure(where, message.message, message.code));
    else if (message.type === "done") outcome.resolve();
    else outcome.onMessage(message);
  });
  child.once("error", (error) => outcome.reject(failure(where, error.message)));
  child.once("close", (code, signal) => {
    clearTimeout(timer);
    const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
    const said = output.trim() === "" ? "" : `\n${output.trim()}`;
    outcome.reject(failure(where, `the process ended while loading it (${how})${said}`));
  });
}

function failure(where: string, what: string, code?: string): FleetError {
  const known = code !== undefined && code in ERROR_CODES ? (code as ErrorCode) : "FLEET_PROJECT_INVALID";
  return new FleetError(known, `${where}: ${what}`);
}
