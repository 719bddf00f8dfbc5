/**
 * Ends what children leave behind. Killing a process group misses what left the group (browser launchers detach their browser), so each
 * child bears a mark in its environment, which all its descendants inherit, and those are looked for. A descendant that clears its
 * environment escapes; nothing short of a container could hold it.
 */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { messageOf } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { isAlive, processTable } from "./process-table.ts";

/** Name of the mark; its value: see {@link markOf}. */
export const MARK = "FLEET_MARK";
const PASSES = 5;
/** Which process table the supervisor's id in a mark belongs to. */
const HERE = createHash("sha256").update(processTable()).digest("hex").slice(0, 16);

/** The mark of a worker's nth host: `<incarnation>.<n>.<process id of the supervisor>.<process table>`. */
export function markOf(incarnation: string, host: number, supervisor = process.pid, table = HERE): string {
  return `${incarnation}.${host}.${supervisor}.${table}`;
}

/** Whether the supervisor that this mark names is certainly gone: it belongs to this process table, and none of it has its id. */
export function isOrphan(mark: string, here = HERE, alive = isAlive): boolean {
  const [, , supervisor, table] = mark.split(".");
  return table === here && Number(supervisor) > 0 && !alive(Number(supervisor));
}

/** Kills every process that bears a mark of this host. Answers how many there were. */
export function reap(incarnation: string, host: number): Promise<number> {
  return end((mark) => mark.startsWith(`${incarnation}.${host}.`));
}

/**
 * Kills every process on this machine whose supervisor is gone, of whichever fleet. A reaper sees to that, unless it was stopped
 * (SIGSTOP) together with its worker, which was then killed: it and the children stand still for ever, and may hold the lock of a
 * SQLite file. Where it is not certain that a supervisor is gone (its id is in use again, or belongs to another container), nothing is
 * killed. Answers how many there were.
 */
export function reapOrphans(): Promise<number> {
  return end((mark) => isOrphan(mark));
}

/** Ends them at the start of a worker, and says so. Before anything is written: one of them may hold the store's lock. */
export async function endOrphans(log: Log): Promise<void> {
  try {
    const ended = await reapOrphans();
    if (ended > 0) log.warn("ended processes that a killed worker had left behind", { processes: ended });
  } catch (error) {
    log.debug("could not look for processes that a killed worker has left behind", {
      error: messageOf(error),
    });
  }
}

async function end(doomed: (mark: string) => boolean): Promise<number> {
  const killed = new Set<number>();
  for (let pass = 0; pass < PASSES; pass++) {
    // Again until none is left: one that was just forked is seen only the next time.
    const found = (await marked()).filter(({ pid, mark }) => pid !== process.pid && doomed(mark));
    if (found.length === 0) break;
    for (const { pid } of found) {
      try {
        process.kill(pid, "SIGKILL");
        killed.add(pid);
      } catch {
        // It has ended meanwhile.
      }
    }
    await delay(20);
  }
  return killed.size;
}

interface Marked {
  pid: number;
  mark: string;
}

/** All processes that bear a mark, as far as this user may see them. */
async function marked(): Promise<Marked[]> {
  return process.platform === "linux" ? markedByProc() : markedByPs();
}

async function markedByProc(): Promise<Marked[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(
    pids.map(async (pid) => {
      try {
        const mark = markIn(await readFile(`/proc/${pid}/environ`, "latin1"), "\0");
        return mark === undefined ? [] : [{ pid, mark }];
      } catch {
        return []; // Not ours to read, or gone.
      }
    }),
  );
  return found.flat();
}

async function markedByPs(): Promise<Marked[]> {
  const { stdout } = await promisify(execFile)("ps", ["-axEww", "-o", "pid=,command="], {
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout.split("\n").flatMap((line) => {
    const mark = markIn(line, " ");
    return mark === undefined ? [] : [{ pid: Number.parseInt(line, 10), mark }];
  });
}

function markIn(environment: string, separator: string): string | undefined {
  const name = `${separator}${MARK}=`;
  const [, after] = `${separator}${environment}`.split(name, 2);
  return after?.split(separator, 1)[0];
}

/** Waits for its input to end, which is when the supervisor is gone (however it went), then does what `reap` does. */
const SCRIPT = `
while read -r _; do :; done
n=0
while [ $n -lt 20 ]; do
  n=$((n+1))
  if [ -d /proc/self ]; then
    pids=$(grep -la "FLEET_MARK=$1" /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\\n')
  else
    pids=$(ps -axEww -o pid=,command= 2>/dev/null | grep " FLEET_MARK=$1" | grep -v grep | awk '{print $1}')
  fi
  [ -z "$pids" ] && exit 0
  kill -9 $pids 2>/dev/null
  sleep 0.1
done
`;

/**
 * Starts the reaper: a shell of about 1 MB that outlives the supervisor, also one that was killed with `kill -9`, and then ends all
 * processes marked with `incarnation`. Call `dismiss` at an orderly end.
 */
export function startReaper(incarnation: string): { dismiss(): Promise<void> } {
  let reaper: ChildProcess | undefined;
  try {
    reaper = spawn("/bin/sh", ["-c", SCRIPT, "fleet-reaper", incarnation], {
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
      // A mark of its own: not one of those that it ends, but itself to be ended where it was stopped and its supervisor is gone.
      env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin", [MARK]: markOf(`reaper-${incarnation}`, 0) },
    });
    reaper.on("error", () => undefined);
    reaper.stdin?.on("error", () => undefined);
    reaper.unref();
    (reaper.stdin as unknown as { unref?(): void } | null)?.unref?.();
  } catch {
    reaper = undefined; // No shell here: children still end with their supervisor's channel.
  }
  const gone = new Promise<void>((resolve) => {
    if (reaper === undefined) resolve();
    else reaper.once("exit", () => resolve()).once("error", () => resolve());
  });
  return {
    dismiss: async () => {
      reaper?.ref();
      reaper?.kill("SIGKILL");
      await gone;
    },
  };
}
