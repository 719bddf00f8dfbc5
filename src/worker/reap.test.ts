import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it, onTestFinished } from "vitest";
import { isOrphan, MARK, markOf, reap, reapOrphans } from "./reap.ts";

it("takes for an orphan only what names a supervisor of this process table that is gone", () => {
  const gone = (pid: number) => pid !== 7;
  expect(isOrphan(markOf("i", 1, 7, "here"), "here", gone)).toBe(true);
  expect(isOrphan(markOf("reaper-i", 0, 7, "here"), "here", gone)).toBe(true);
  expect(isOrphan(markOf("i", 1, 8, "here"), "here", gone)).toBe(false);
  expect(isOrphan(markOf("i", 1, 7, "elsewhere"), "here", gone)).toBe(false);
  for (const foreign of ["", "i.1.", "i.1.x.here", "i.1.0.here", "i.1.-7.here", "7"])
    expect(isOrphan(foreign, "here", gone)).toBe(false);
});

it("ends the processes of one host, or those whose supervisor is gone, also stopped ones, and no other", async () => {
  const gone = started({});
  gone.kill("SIGKILL");
  await once(gone, "exit");
  const mine = [started({ [MARK]: markOf("reap-test", 1) }), started({ [MARK]: markOf("reap-test", 12) })];
  const orphans = ["reap-test", "reaper-reap-test"].map((who) =>
    started({ [MARK]: markOf(who, 1, gone.pid) }),
  );
  const others = [
    started({}),
    started({ [MARK]: markOf("reap-test-2", 1) }),
    started({ [MARK]: markOf("reap-test-3", 1, gone.pid, "0123456789abcdef") }),
  ];
  for (const child of orphans) child.kill("SIGSTOP");

  // How many it finds says nothing: a worker that another test starts meanwhile looks for orphans too.
  await reapOrphans();
  expect(await Promise.all(orphans.map(signalOf))).toEqual(["SIGKILL", "SIGKILL"]);
  expect([...mine, ...others].filter(over)).toEqual([]);

  expect(await reap("reap-test", 1)).toBe(1);
  expect(await signalOf(mine[0] as ChildProcess)).toBe("SIGKILL");
  expect([mine[1] as ChildProcess, ...others].filter(over)).toEqual([]);
});

function started(env: Record<string, string>): ChildProcess {
  const child = spawn("sleep", ["300"], {
    env: { PATH: process.env["PATH"] ?? "", ...env },
    stdio: "ignore",
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

const over = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null;

async function signalOf(child: ChildProcess): Promise<string | null> {
  if (!over(child)) await once(child, "exit");
  return child.signalCode;
}
