/**
 * Ends what children leave behind. Killing a process group misses what left the group (browser launchers detach their browser), so each
 * child bears a mark in its environment, which all its descendants inherit, and those are looked for. A descendant that clears its
 * environment escapes; nothing short of a container could hold it.
 */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";

/** Name of the mark; its value is `<worker's incarnation>.<host>`. */
export const MARK = "FLEET_MARK";
const PASSES = 5;

/** Kills every process whose mark begins with `prefix`. Answers how many there were. */
export async function reap(prefix: string): Promise<number> {
  let killed = 0;
  for (let pass = 0; pass < PASSES; pass++) {
    // Again until none is left: one that was just forked is seen only the next time.
    const found = await marked(prefix);
    if (found.length === 0) return killed;
    for (const pid of found) {
      try {
        process.kill(pid, "SIGKILL");
        killed += 1;
      } catch {
        // It has ended meanwhile.
      }
    }
    await delay(20);
  }
  return killed;
}

async function marked(prefix: string): Promise<number[]> {
  return process.platform === "linux" ? markedByProc(prefix) : markedByPs(prefix);
}

async function markedByProc(prefix: string): Promise<number[]> {
  const wanted = `${MARK}=${prefix}`;
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(
    pids.map(async (pid) => {
      if (pid === process.pid) return false;
      try {
        const environment = await readFile(`/proc/${pid}/environ`, "latin1");
        return environment.startsWith(wanted) || environment.includes(`\0${wanted}`);
      } catch {
        return false; // Not ours to read, or gone.
      }
    }),
  );
  return pids.filter((_, index) => found[index]);
}

async function markedByPs(prefix: string): Promise<number[]> {
  const { stdout } = await promisify(execFile)("ps", ["-axEww", "-o", "pid=,command="], {
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout
    .split("\n")
    .filter((line) => line.includes(` ${MARK}=${prefix}`))
    .map((line) => Number.parseInt(line, 10))
    .filter((pid) => pid !== process.pid);
}

/** Waits for its input to end, which is when the supervisor is gone (however it went), then does what `reap` does. */
const SCRIPT = `
while read -r _; do :; done
n=0
while [ $n -lt 20 ]; do
  n=$((n+1))
  if [ -d /proc/self ]; then
    pids=$(grep -la "$1" /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\\n')
  else
    pids=$(ps -axEww -o pid=,command= 2>/dev/null | grep " $1" | grep -v grep | awk '{print $1}')
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
    reaper = spawn("/bin/sh", ["-c", SCRIPT, "fleet-reaper", `${MARK}=${incarnation}`], {
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
      env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin" },
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
