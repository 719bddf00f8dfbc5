import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** Which processes a pid can be compared with: those of this running machine and, in containers, of this pid namespace. */
export function processTable(): string {
  return [hostname(), bootId(), pidNamespace()].join("|");
}

function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return "";
  }
}

function pidNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return "";
  }
}

/** False only when no process of this table has that pid. A pid that is used anew counts as alive: then the lease decides. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}
