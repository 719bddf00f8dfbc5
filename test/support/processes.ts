// What runs on this machine, for tests that must leave nothing behind.
import { execFileSync } from "node:child_process";

/** Ids of all processes below `pid`, children of children too. */
export function descendants(pid: number): number[] {
  const parents = new Map<number, number[]>();
  for (const line of execFileSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" })
    .trim()
    .split("\n")) {
    const [child, parent] = line.trim().split(/\s+/).map(Number) as [number, number];
    parents.set(parent, [...(parents.get(parent) ?? []), child]);
  }
  const below = (id: number): number[] =>
    (parents.get(id) ?? []).flatMap((child) => [child, ...below(child)]);
  return below(pid);
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
