// Short (`npm test`): no process that a slot has started outlives its run, also one that left the group (field case 29). Real processes.
import { readFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { healFleet, measured, ms, starts, type HealFleet } from "./support/heal-fleet.ts";
import { PLACES } from "./support/places.ts";

/** A slot that starts a shell, which starts a detached shell (a session of its own), which starts a sleep; and one sleep in the open. */
const FILES = {
  "planter.ts": `
    import { spawn } from "node:child_process";
    import { readFileSync } from "node:fs";
    import { defineContinuous } from "fleet-framework";
    import { note, order } from "./tools.ts";
    export default defineContinuous("planter", {
      isolate: "slot",
      async runSlot(ctx) {
        const path = process.cwd() + "/pids-" + process.pid;
        spawn("/bin/sh", ["-c", \`echo $$ >> \${path}; setsid sh -c 'echo $$ >> \${path}; sleep 300 & echo $! >> \${path}; wait' & wait\`], { stdio: "ignore" });
        const free = spawn("sleep", ["300"], { stdio: "ignore", detached: true });
        free.unref();
        const planted = () => { try { return readFileSync(path, "utf8").trim().split("\\n").map(Number); } catch { return []; } };
        while (planted().length < 3) await new Promise((resolve) => setTimeout(resolve, 20));
        note(ctx, "start", { planted: [...planted(), free.pid] });
        for await (const _ of ctx.loop({ everySeconds: 0.05 })) if (order(ctx) === "exit") process.exit(1);
      },
    });`,
};

test("nothing that a slot has started survives its recycle, its crash, or the kill -9 of its supervisor", async () => {
  const fleet = await healFleet(PLACES[0] as (typeof PLACES)[number], FILES);
  const worker = fleet.worker("w", { args: ["planter.ts"] });
  let since = 0;
  for (const [what, end] of [
    ["recycle", () => recycle(fleet)],
    ["crash", () => Promise.resolve(fleet.command("planter/0", "exit"))],
    ["kill -9 of the supervisor", () => Promise.resolve(worker.signal("SIGKILL"))],
  ] as const) {
    const run = await fleet.untilLine(starts("planter/0"), since);
    const planted = run["planted"] as number[];
    expect(planted.filter(runs)).toHaveLength(4);
    // One of them really has left the group, and is a session of its own.
    expect(new Set(planted.map(sessionOf)).size).toBeGreaterThan(1);
    await vi.waitFor(async () => expect(await fleet.state("planter/0")).toBe("running"), { timeout: 10_000 });
    since = fleet.ledger().length;
    const at = performance.now();
    await end();
    await vi.waitFor(() => expect([run.pid, ...planted].filter(runs)).toEqual([]), {
      timeout: 10_000,
      interval: 20,
    });
    const took = performance.now() - at;
    measured(`process tree gone after ${what}`, ms(took));
    expect(took).toBeLessThan(5000);
  }
}, 60_000);

/** state ppid pgrp session … of a process. */
function statOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
}

const sessionOf = (pid: number) => statOf(pid)[3];

/** Not so once it has ended, though init may take its time to clear it away. */
function runs(pid: number): boolean {
  try {
    return statOf(pid)[0] !== "Z";
  } catch {
    return false;
  }
}

async function recycle({ store }: HealFleet): Promise<void> {
  const { desired } = await store.registry.view();
  const known = desired["planter"];
  if (known === undefined) throw new Error("no desired state");
  const next = { ...known, recycles: (known.recycles ?? 0) + 1, generation: known.generation + 1 };
  expect(
    await store.registry.putDesired({ name: "planter", desired: next, expected: known.generation }),
  ).toBe("stored");
}
