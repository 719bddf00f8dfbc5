import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { FromHost, HostInit } from "../protocol/host.ts";
import type { ProgramAutomation } from "../protocol/program.ts";
import type { Runtime } from "./runtime.ts";

/** Fleet's own secrets: user code must not see them. The store's address reaches the child by IPC. */
const OWN_SECRETS = new Set(["FLEET_STORE", "FLEET_TOKEN", "FLEET_MASTER"]);
/** What a program needs to run at all, also where `env` lists names. */
const ALWAYS = [
  "PATH",
  "HOME",
  "USER",
  "LANG",
  "LC_ALL",
  "TZ",
  "TMPDIR",
  "TEMP",
  "TMP",
  "NODE_ENV",
  "NODE_PATH",
  "NO_COLOR",
  "FORCE_COLOR",
  "TERM",
  "SystemRoot",
];

const CHILD = fileURLToPath(new URL("./child-main.js", import.meta.url));

/**
 * One child process per host. A child leads a process group of its own: the terminal's Ctrl-C reaches the supervisor alone,
 * which then drains, and `kill` takes what the child started along. It ends itself when the supervisor is gone.
 */
export function processRuntime(link: Omit<HostInit, "type" | "automation" | "module">): Runtime {
  return {
    start: (program, hear, exited) => {
      const child = fork(CHILD, [program.manifest.name], {
        detached: true,
        execArgv: ["--enable-source-maps"],
        env: environment(program, process.env),
        stdio: ["ignore", "inherit", "inherit", "ipc"],
        serialization: "json",
      });
      let over = false;
      const end = (code: number | null, signal: string | null) => {
        if (over) return;
        over = true;
        if (child.pid !== undefined) killGroup(child.pid);
        exited({ code, signal });
      };
      child.on("message", (message) => hear(message as FromHost));
      child.once("exit", end);
      child.once("error", () => end(1, null));
      const send = (message: object) => {
        // A child that just died takes no message; its "exit" says the rest.
        if (child.connected) child.send(message, () => undefined);
      };
      const init: HostInit = {
        type: "init",
        automation: program.manifest.name,
        module: program.module,
        ...link,
      };
      send(init);
      return {
        pid: child.pid ?? null,
        tell: send,
        kill: () => {
          if (child.pid !== undefined) killGroup(child.pid);
          child.kill("SIGKILL");
        },
      };
    },
  };
}

/** The worker's environment without Fleet's own secrets, or only what the automation names. */
export function environment(
  program: Pick<ProgramAutomation, "env">,
  from: NodeJS.ProcessEnv,
): NodeJS.ProcessEnv {
  const allowed = program.env === undefined ? undefined : new Set([...ALWAYS, ...program.env]);
  return Object.fromEntries(
    Object.entries(from).filter(([name]) => !OWN_SECRETS.has(name) && (allowed?.has(name) ?? true)),
  );
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Nobody of the group is left.
  }
}
