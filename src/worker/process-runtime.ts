import { fork, type ChildProcess } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { hideIn, hideInEnd } from "../automation/config-secrets.ts";
import { messageOf } from "../errors.ts";
import { ownProgram } from "../internal/own-files.ts";
import { OWN_SECRETS } from "../internal/own-secrets.ts";
import type { FromHost, HostInit, SecretMessage } from "../protocol/host.ts";
import type { ProgramAutomation } from "../protocol/program.ts";
import { FlightMark, NOTHING } from "./flight-mark.ts";
import { MARK, markOf, reap, startReaper } from "./reap.ts";
import { holderOf, type Host, type HostExit, type Runtime } from "./runtime.ts";

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
const TAIL = 4000;
/** How long the end of a child's standard error is waited for, after the child has ended. */
const LAST_WORDS_MS = 200;

const CHILD = fileURLToPath(ownProgram("worker/child-main.js"));

/**
 * One child process per host. A child leads a process group of its own: the terminal's Ctrl-C reaches the supervisor alone, which then
 * drains. A child dies with its supervisor, whatever it is doing: it ends itself when the channel closes, and where it cannot (its
 * loop is blocked) the reaper ends it. What it started goes with it, also what has left its group: see `reap.ts`.
 */
export function processRuntime(
  link: Omit<HostInit, "type" | "automation" | "module" | "holder">,
  incarnation: string,
): Runtime {
  const reaper = startReaper(incarnation);
  let started = 0;
  const reaping = new Set<Promise<unknown>>();
  return {
    start: (program, hear, exited) => {
      const number = (started += 1);
      let flight: FlightMark;
      try {
        flight = new FlightMark();
      } catch (error) {
        return stillborn(error, hear, exited, holderOf(incarnation, number));
      }
      const child = fork(CHILD, [program.manifest.name], {
        detached: true,
        execArgv: [],
        env: { ...environment(program, process.env), [MARK]: markOf(incarnation, number) },
        // Standard error passes through here: its end belongs to the record of a crash.
        stdio: ["ignore", "inherit", "pipe", "ipc", flight.fd],
        serialization: "json",
      });
      const secrets = new Map<string, string>();
      const stderr = passThrough(child);
      const closed = new Promise((resolve) => child.once("close", resolve));
      let over = false;
      const end = (code: number | null, signal: string | null) => {
        if (over) return;
        over = true;
        const last = flight.read();
        flight.close();
        killGroup(child);
        const done = reap(incarnation, number)
          .catch(() => undefined)
          // What it wrote last may still be on its way; whoever else held the other end is gone.
          .then(() => Promise.race([closed, delay(LAST_WORDS_MS)]))
          .then(() => {
            const { text, cut } = stderr();
            const hidden = cut ? hideInEnd(text, secrets) : hideIn(text, secrets);
            exited({ code, signal, flight: last, stderr: hidden, stderrCut: cut });
          });
        reaping.add(done);
        void done.finally(() => reaping.delete(done));
      };
      child.on("message", (said) => {
        const message = said as FromHost | SecretMessage;
        if (message.type === "secret") secrets.set(message.value, message.reference);
        else hear(message);
      });
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
        holder: holderOf(incarnation, number),
        ...link,
      };
      send(init);
      return {
        pid: child.pid ?? null,
        holder: holderOf(incarnation, number),
        flight: () => flight.read(),
        tell: (message) => {
          // A child looks there before it takes a lease for ended: to be told of one that goes on would only wake it.
          if (
            message.type === "leases" &&
            flight.leases(message.until) &&
            !Object.values(message.until).includes(0)
          )
            return;
          if (message.type === "kept") flight.kept(message.leases);
          send(message);
        },
        kill: () => {
          killGroup(child);
          child.kill("SIGKILL");
        },
      };
    },
    close: async () => {
      await Promise.allSettled(reaping);
      await reaper.dismiss();
    },
  };
}

/** A host that could not even be begun (no descriptor or no room for its mark): it ends at once and is tried again later. */
function stillborn(
  error: unknown,
  hear: (message: FromHost) => void,
  exited: (exit: HostExit) => void,
  holder: string,
): Host {
  setImmediate(() => {
    hear({ type: "unfit", error: `a process could not be started: ${messageOf(error)}` });
    exited({ code: 1, signal: null, flight: NOTHING, stderr: "" });
  });
  return { pid: null, holder, flight: () => NOTHING, tell: () => undefined, kill: () => undefined };
}

/** The worker's environment without Fleet's own secrets, or only what the automation names. */
export function environment(
  program: Pick<ProgramAutomation, "env">,
  from: NodeJS.ProcessEnv,
): NodeJS.ProcessEnv {
  const allowed = program.env === undefined ? undefined : new Set([...ALWAYS, ...program.env]);
  return Object.fromEntries(
    Object.entries(from).filter(([name]) => !OWN_SECRETS.includes(name) && (allowed?.has(name) ?? true)),
  );
}

/** Answers the end of what it wrote, and whether there was more before that. */
function passThrough(child: ChildProcess): () => { text: string; cut: boolean } {
  let tail = "";
  let cut = false;
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    process.stderr.write(text);
    tail += text;
    cut ||= tail.length > TAIL;
    tail = tail.slice(-TAIL);
  });
  return () => ({ text: tail, cut });
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // Nobody of the group is left.
  }
}
