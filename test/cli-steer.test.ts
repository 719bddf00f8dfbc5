// `fleet scale`, `pause`, `resume` and `recycle` on a worker that runs. `npm test`: on Redis; `npm run soak`: on both stores.
import { describe, expect, test, vi } from "vitest";
import { automationLine, type StatusReport } from "../src/control/status-report.ts";
import { makeProject, runFleet, startFleet, writeInto, type RunningFleet } from "./support/cli.ts";
import { openPlace, placesFor, slotStatus } from "./support/places.ts";
import { isAlive } from "./support/processes.ts";

// Each test starts several processes: where two cores are shared, that takes its time.
vi.setConfig({ testTimeout: 90_000 });

const TIMINGS = {
  beatMs: 200,
  leaseMs: 4000,
  backoffBaseMs: 100,
  backoffCapMs: 200,
  budgets: [{ failures: 4, windowMs: 600_000 }],
};
const env = { FLEET_TIMINGS: JSON.stringify(TIMINGS) };

/** Each run says when it begins and ends, and takes its time to end: so it shows if all were down at once. */
const STEADY = `
import { defineContinuous } from "fleet-framework";
export default defineContinuous("steady", {
  async runSlot(ctx) {
    const say = (what) => console.log([what, ctx.slotId, process.pid, Date.now()].join(" "));
    say("begin");
    for await (const _ of ctx.loop({ everySeconds: 0.1 }));
    await new Promise((resolve) => setTimeout(resolve, 150));
    say("end");
  },
});`;
const APART = STEADY.replace('"steady", {', '"apart", { isolate: "slot",').replace(
  /console\.log\(.*\);/,
  "undefined;",
);
const CRASHER = `
import { existsSync } from "node:fs";
import { defineContinuous } from "fleet-framework";
export default defineContinuous("crasher", {
  async runSlot(ctx) {
    if (!existsSync("mended")) throw new Error("no good");
    for await (const _ of ctx.loop({ everySeconds: 0.1 }));
  },
});`;
const config = (deploy: object) => `
import { defineConfig } from "fleet-framework";
export default defineConfig({ automations: ["./*.auto.ts"], deploy: ${JSON.stringify(deploy)} });`;

interface Said {
  what: string;
  slot: number;
  pid: number;
  at: number;
}
function said(worker: RunningFleet): Said[] {
  return [...worker.stdout().matchAll(/^(begin|end) (\d+) (\d+) (\d+)$/gm)].map(
    ([, what = "", ...numbers]) => {
      const [slot = 0, pid = 0, at = 0] = numbers.map(Number);
      return { what, slot, pid, at };
    },
  );
}
/** The fewest slots that ran at once from `from` on. */
function fewest(events: readonly Said[], from: number): number {
  let running = 0;
  let low = Number.POSITIVE_INFINITY;
  for (const { what, at } of events) {
    running += what === "begin" ? 1 : -1;
    if (at >= from) low = Math.min(low, running);
  }
  return low;
}

describe.each(placesFor("Redis"))("on $name", ({ at }) => {
  const setUp = async (deploy: object, files: Record<string, string>) => {
    const cwd = makeProject({ "fleet.config.ts": config(deploy), ...files });
    const place = at(cwd);
    const fleet = (...args: string[]) => runFleet([...args, ...place.flags], { cwd });
    const store = await openPlace(place);
    /** What `fleet status` would show now, without a process for each look. */
    const status = async (name: string) => {
      const { registry } = store;
      return automationLine(name, await registry.view(), await registry.slotHealth());
    };
    const worker = startFleet(["worker", ...place.flags], { cwd, env });
    const close = async () => {
      await store.close();
      worker.signal("SIGTERM");
      expect(await worker.ended).toBe(0);
    };
    return { cwd, flags: place.flags, fleet, status, store, worker, close };
  };

  test("scale, pause and resume: the slots follow, and the status says so", async () => {
    const { fleet, status, store, worker, close } = await setUp(
      { steady: { slots: 1 } },
      { "a.auto.ts": STEADY },
    );
    await worker.until((text) => text.includes("begin 0"));

    const up = await fleet("scale", "steady", "3", "--wait", "20");
    expect(up).toMatchObject({ code: 0, stderr: "" });
    expect(up.stdout).toBe(
      '"steady" goes from 1 to 3 slots (generation 2). Slots 1 and 2 will start.\nAll 3 slots run.\n',
    );
    expect((await status("steady")).slot_list.map(({ state }) => state)).toEqual(Array(3).fill("running"));
    expect((await store.registry.view()).desired["steady"]?.changedBy.slots).toMatch(/^command line \(.+\)$/);

    const same = await fleet("scale", "steady", "3");
    expect(same).toEqual({
      code: 0,
      stdout: '"steady" has 3 slots already; nothing was changed.\n',
      stderr: "",
    });

    const paused = await fleet("pause", "steady", "--wait", "20", "--json");
    expect(paused.code).toBe(0);
    expect(JSON.parse(paused.stdout)).toMatchObject({
      automation: "steady",
      changed: true,
      generation: 3,
      slots: 3,
      paused: true,
      followed: true,
    });
    expect(said(worker).filter(({ what }) => what === "end")).toHaveLength(3);
    const after = await status("steady");
    expect(after).toMatchObject({ running: 0, paused: true });
    expect(after.slot_list.map(({ state, reason }) => `${state}: ${reason}`)).toEqual(
      Array(3).fill("waiting: the automation is paused"),
    );
    expect((await fleet("pause", "steady")).stdout).toContain("is paused already");

    const typo = await fleet("scale", "stedy", "9");
    expect(typo).toEqual({
      code: 1,
      stdout: "",
      stderr: 'fleet: there is no automation "stedy" (did you mean "steady"?); nothing was changed\n',
    });
    expect((await fleet("recycle", "steady", "--slot", "3")).stderr).toContain(
      "there is no slot 3; slots are 0 to 2",
    );
    expect((await store.registry.view()).desired["steady"]).toMatchObject({ slots: 3, generation: 3 });

    // While it is paused the number can be changed; nothing starts.
    expect((await fleet("scale", "steady", "2")).stdout).toContain(
      'It is paused: nothing runs until "fleet resume',
    );
    expect((await fleet("resume", "steady", "--wait", "20")).stdout).toContain("All 2 slots run.\n");
    expect((await fleet("scale", "steady", "0", "--wait", "20")).stdout).toContain(
      "No slot runs any more.\n",
    );
    expect(await status("steady")).toMatchObject({ slots: 0, generation: 6, slot_list: [] });
    await close();
  });

  test("recycle: every slot moves to a fresh process, one by one and never all down at once", async () => {
    const { fleet, status, worker, close } = await setUp(
      { steady: { slots: 4 }, apart: { slots: 2 } },
      { "a.auto.ts": STEADY, "c.auto.ts": APART },
    );
    await vi.waitFor(
      async () => {
        expect([(await status("steady")).running, (await status("apart")).running]).toEqual([4, 2]);
      },
      { timeout: 20_000, interval: 200 },
    );
    const pids = (lines: Awaited<ReturnType<typeof status>>) =>
      lines.slot_list.map(({ pid }) => pid as number);
    const [old = 0, ...rest] = pids(await status("steady"));
    expect(rest).toEqual([old, old, old]);

    let from = Date.now();
    const all = await fleet("recycle", "steady", "--wait", "30");
    expect(all).toMatchObject({ code: 0, stderr: "" });
    expect(all.stdout).toContain("All 4 slots run in fresh processes.\n");
    const [fresh = 0, ...others] = pids(await status("steady"));
    expect(fresh).not.toBe(old);
    expect(others).toEqual([fresh, fresh, fresh]);
    expect(fewest(said(worker), from)).toBe(3);
    await vi.waitFor(() => expect(isAlive(old)).toBe(false), { timeout: 10_000 });
    expect((await status("steady")).slot_list.map(({ restarts }) => restarts)).toEqual([0, 0, 0, 0]);

    from = Date.now();
    const one = await fleet("recycle", "steady", "--slot", "2", "--wait", "30");
    expect(one.stdout).toContain("Slot 2 runs in a fresh process.\n");
    const apart = pids(await status("steady"));
    expect(apart.filter((_, slot) => slot !== 2)).toEqual([fresh, fresh, fresh]);
    expect(apart[2]).not.toBe(fresh);
    const since = said(worker).filter((event) => event.at >= from);
    expect(since.map(({ what, slot }) => `${what} ${slot}`)).toEqual(["end 2", "begin 2"]);

    // All together again.
    expect((await fleet("recycle", "steady", "--wait", "30")).code).toBe(0);
    const together = new Set(pids(await status("steady")));
    expect(together.size).toBe(1);
    expect([fresh, apart[2]].some((pid) => together.has(pid as number))).toBe(false);

    // Processes of single slots are recycled each for itself, and nobody else's.
    const own = pids(await status("apart"));
    expect((await fleet("recycle", "apart", "--wait", "30")).code).toBe(0);
    const anew = pids(await status("apart"));
    expect(new Set([...own, ...anew, ...together]).size).toBe(5);
    expect(new Set(pids(await status("steady")))).toEqual(together);
    await close();
  });

  test("a circuit opens for a crash loop, is shown with its reason and closes by a recycle", async () => {
    const { cwd, flags, fleet, status, store, worker } = await setUp(
      { crasher: { slots: 1 }, steady: { slots: 1 } },
      { "a.auto.ts": STEADY, "b.auto.ts": CRASHER },
    );
    await vi.waitFor(
      async () => expect(await slotStatus(store, "crasher")).toMatchObject({ state: "circuit-open" }),
      { timeout: 20_000, interval: 100 },
    );
    const { stdout } = await fleet("status", "--json");
    const line = (JSON.parse(stdout) as StatusReport).automations.find(({ name }) => name === "crasher")!;
    const reason = "4 failures within 10 min; the last: failed: Error: no good";
    expect(line).toMatchObject({
      running: 0,
      slot_list: [{ state: "circuit-open", reason, circuit: { reason } }],
    });
    const history = line.slot_list[0]?.history ?? [];
    expect(history).toHaveLength(4);
    for (const heal of history) {
      expect(heal).toMatchObject({ cause: "failed", collateral: false, exit_code: null, signal: null });
      expect(heal.error).toMatch(/^Error: no good\n\s+at .*b\.auto\.ts/);
      expect(heal.lived_seconds).toBeLessThan(10);
    }
    expect((await fleet("status")).stdout).toMatch(
      /circuit-open .* 4 failures within 10 min; the last: failed/,
    );
    const late = await fleet("resume", "crasher", "--wait", "0.3");
    expect(late).toMatchObject({ code: 1, stdout: '"crasher" is not paused; nothing was changed.\n' });
    expect(late.stderr).toContain(`slot 0: circuit-open (${reason})`);
    expect(await status("steady")).toMatchObject({ running: 1, slot_list: [{ restarts: 0, history: [] }] });

    // A restart of the worker does not close it.
    worker.signal("SIGTERM");
    expect(await worker.ended).toBe(0);
    const again = startFleet(["worker", ...flags], { cwd, env });
    await again.until((text) => text.includes("begin 0"));
    await vi.waitFor(
      async () => expect(await slotStatus(store, "crasher")).toMatchObject({ state: "circuit-open", reason }),
      { timeout: 20_000, interval: 100 },
    );
    expect((await status("crasher")).slot_list[0]?.history).toHaveLength(4);

    writeInto(cwd, "mended", "");
    const closed = await fleet("recycle", "crasher", "--wait", "20");
    expect(closed).toMatchObject({ code: 0, stderr: "" });
    expect(closed.stdout).toContain("The open circuit of slot 0 is closed: it starts again.");
    expect(await status("crasher")).toMatchObject({
      running: 1,
      slot_list: [{ state: "running", reason: null, circuit: null, last_cause: "failed" }],
    });
    expect(said(again).filter(({ what }) => what === "end")).toEqual([]);
    await store.close();
    again.signal("SIGTERM");
    expect(await again.ended).toBe(0);
  });
});
