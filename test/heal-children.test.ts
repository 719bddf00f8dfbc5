// Short (`npm test`): what user code can do to its process, and what happens then. One worker, real processes, lease 3 s.
import { expect, test, vi } from "vitest";
import {
  BOUND_MS,
  healFleet,
  measured,
  ms,
  starts,
  type HealFleet,
  type Line,
} from "./support/heal-fleet.ts";
import { PLACES, slotStatus } from "./support/places.ts";

const BLOCKED_MS = 6000;
const VICTIM = `
  import { z } from "zod";
  import { defineContinuous, FleetError } from "fleet-framework";
  import { note, order } from "./tools.ts";
  const block = (ms) => { const until = Date.now() + ms; while (Date.now() < until); };
  export default defineContinuous("victim", {
    async runSlot(ctx) {
      note(ctx, "start");
      for await (const turn of ctx.loop({ everySeconds: 0.05 })) {
        const text = order(ctx);
        if (text === undefined) continue;
        if (text === "exit 0") process.exit(0);
        if (text === "exit 3 later") await new Promise(() => setTimeout(() => process.exit(3), 20));
        if (text === "reject") void Promise.reject(new Error("nobody awaits this"));
        if (text === "reject store lost") void Promise.reject(new FleetError("FLEET_STORE_UNAVAILABLE", "away", { retryable: true }));
        if (text === "throw in a timer") setTimeout(() => { throw new Error("thrown in a timer"); }, 1);
        if (text === "throw") throw new TypeError("thrown in the run");
        if (text === "return") return;
        if (text === "abort") process.abort();
        if (text === "eat memory") for (const kept = []; ; ) kept.push(new Array(100000).fill(turn));
        if (text.startsWith("block ")) {
          block(Number(text.slice(6)));
          note(ctx, "unblocked");
          await ctx.emit({ turn: turn.index });
        }
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
      note(ctx, "stop", { reason: ctx.signal.reason });
    },
    output: z.object({ turn: z.number() }),
  });`;
const FILES = {
  "victim.ts": VICTIM,
  "metronome.ts": `
    import { defineContinuous } from "fleet-framework";
    import { z } from "zod";
    import { note } from "./tools.ts";
    export default defineContinuous("metronome", {
      output: z.object({ n: z.number() }),
      async runSlot(ctx) {
        for await (const turn of ctx.loop({ everySeconds: 0.1 })) {
          await ctx.emit({ n: turn.index });
          note(ctx, "beat");
        }
      },
    });`,
  "fleet.config.ts": `
    import { defineConfig } from "fleet-framework";
    export default defineConfig({ automations: ["./victim.ts", "./metronome.ts"], deploy: { victim: { slots: 2 } } });`,
};

interface Fault {
  name: string;
  cause: string;
  /** What the record of it says. */
  expected: Record<string, unknown>;
  /** Whether the other slot of the process goes with it. */
  shared: boolean;
  boundMs?: number;
}

const FAULTS: readonly Fault[] = [
  { name: "exit 0", cause: "exited", expected: { exitCode: 0, signal: null }, shared: true },
  { name: "exit 3 later", cause: "exited", expected: { exitCode: 3 }, shared: true },
  {
    name: "reject",
    cause: "uncaught",
    expected: { error: expect.stringContaining("nobody awaits this") },
    shared: true,
  },
  {
    name: "reject store lost",
    cause: "store-lost",
    expected: { error: expect.stringContaining("away") },
    shared: true,
  },
  {
    name: "throw in a timer",
    cause: "uncaught",
    expected: { error: expect.stringContaining("thrown in a timer") },
    shared: true,
  },
  {
    name: "throw",
    cause: "failed",
    expected: { error: expect.stringContaining("victim.ts") },
    shared: false,
  },
  { name: "return", cause: "returned", expected: { error: null }, shared: false },
  { name: "abort", cause: "killed", expected: { signal: "SIGABRT" }, shared: true },
  { name: "eat memory", cause: "out-of-memory", expected: {}, shared: true, boundMs: 10_000 },
  {
    name: "block 60000",
    cause: "loop-blocked",
    expected: { signal: "SIGKILL" },
    shared: true,
    boundMs: BLOCKED_MS + BOUND_MS,
  },
];

const SLOTS = ["victim/0", "victim/1", "metronome/0"];

test("every fault of a child costs that child only, is put down to its slot and heals within the bound", async () => {
  const fleet = await healFleet(PLACES[0] as (typeof PLACES)[number], FILES);
  const worker = fleet.worker("w", {
    timings: { blockedMs: BLOCKED_MS },
    env: { NODE_OPTIONS: "--max-old-space-size=64" },
  });
  await allRun(fleet);
  await fleet.untilLine(() => fleet.lines("metronome", "beat").length > 20);
  const rate = rateOf(fleet.lines("metronome", "beat"));
  measured("beats per second before", rate.toFixed(2));

  let before = runsOf(fleet);
  for (const [at, { name, cause, expected, shared, boundMs = BOUND_MS }] of FAULTS.entries()) {
    // Both slots in turn: the blame must follow the fault.
    const guilty = at % 2;
    const [slot, other] = [`victim/${guilty}`, `victim/${1 - guilty}`];
    const since = fleet.ledger().length;
    fleet.command(slot, name);
    const fault = await fleet.untilLine((line) => line.slot === slot && line.what === "order", since);
    const again = await fleet.untilLine(starts(slot), since);
    const last = shared ? await fleet.untilLine(starts(other), since) : again;
    const took = Math.max(again.at, last.at) - fault.at;
    measured(name, ms(took));
    expect({ name, inTime: took < boundMs }).toEqual({ name, inTime: true });
    await allRun(fleet);
    await vi.waitFor(async () => {
      expect(await fleet.lastHeal(slot)).toMatchObject({ cause, collateral: false, ...expected });
      expect(await slotStatus(fleet.store, "victim", guilty)).toMatchObject({ lastCause: cause });
    });
    const others = await fleet.lastHeal(other);
    const now = runsOf(fleet);
    expect({
      name,
      sameProcess: again.pid === fault.pid,
      others: shared ? [others?.cause, others?.collateral] : null,
      runs: now,
    }).toEqual({
      name,
      sameProcess: !shared,
      others: shared ? [cause, true] : null,
      runs: {
        [slot]: (before[slot] ?? 0) + 1,
        [other]: (before[other] ?? 0) + (shared ? 1 : 0),
      },
    });
    before = now;
    // A healthy run in between, so that each fault is met by the first back-off.
    await new Promise((resolve) => setTimeout(resolve, 600));
  }
  // Over all faults together: in a window as short as one heal, one late beat would be more than 5 %.
  const first = fleet.lines("victim", "order")[0] as Line;
  const beats = fleet.lines("metronome", "beat").filter(({ at }) => at >= first.at);
  const expectedBeats = (((beats.at(-1) as Line).at - first.at) / 1000) * rate;
  measured("beats of another automation meanwhile", `${beats.length} of ${expectedBeats.toFixed(0)}`);
  expect(beats.length).toBeGreaterThan(expectedBeats * 0.95);
  expect(new Set(beats.map(({ pid }) => pid)).size).toBe(1);
  expect((await fleet.store.registry.slotHealth())["metronome/0"]).toBeUndefined();
  worker.signal("SIGTERM");
  expect(await worker.ended).toBe(0);
}, 90_000);

test("a loop that is busy for longer than the lease, and a process stopped for as long, change nothing", async () => {
  const fleet = await healFleet(PLACES[0] as (typeof PLACES)[number], FILES);
  const worker = fleet.worker("w", { timings: { blockedMs: 8000 } });
  await allRun(fleet);
  const leases = async () =>
    (await fleet.store.registry.view()).leases.map(({ automation, slotId, token }) => [
      automation,
      slotId,
      token,
    ]);
  const held = await leases();
  // A machine that has much to do may have let a lease end while the worker started.
  const known = async () => ({
    starts: fleet.lines("victim", "start").length,
    stops: fleet.lines("victim", "stop").length,
    health: await fleet.store.registry.slotHealth(),
  });
  const before = await known();
  expect(before.starts).toBeGreaterThanOrEqual(2);
  fleet.command("victim/0", "block 4000");
  const fault = await fleet.untilLine((line) => line.what === "order");
  const over = await fleet.untilLine((line) => line.what === "unblocked");
  expect(over.at - fault.at).toBeGreaterThan(3900);
  const emitted = () => fleet.store.streams.length({ stream: "victim" });
  await vi.waitFor(async () => expect(await emitted()).toBe(1), { timeout: 20_000 });
  expect(await leases()).toEqual(held);

  // It is silence in all that counts: with no sign of life in between, busy and stopped would be 8 s of it, which is too long.
  await vi.waitFor(
    async () => {
      const status = await slotStatus(fleet.store, "victim", 0);
      expect(status?.lastProgressAt).toBeGreaterThan(over.at);
    },
    { timeout: 20_000, interval: 50 },
  );
  const { pid } = over;
  const beats = fleet.lines("metronome", "beat").length;
  process.kill(pid, "SIGSTOP");
  await new Promise((resolve) => setTimeout(resolve, 4000));
  process.kill(pid, "SIGCONT");
  // Ten a second on a machine that has time for it; how many are missed is measured above.
  expect(fleet.lines("metronome", "beat").length).toBeGreaterThan(beats + 15);
  // It goes on where it was: the same run takes the next order and emits.
  fleet.command("victim/1", "block 1");
  await vi.waitFor(async () => expect(await emitted()).toBe(2), { timeout: 20_000 });
  expect(await leases()).toEqual(held);
  expect(await known()).toEqual(before);
  measured("busy for 4 s and stopped for 4 s with a lease of 3 s", "no restart, same leases");
  worker.signal("SIGTERM");
  expect(await worker.ended).toBe(0);
}, 90_000);

test("a child killed from outside, and one stopped for longer than blockedMs, heal", async () => {
  const fleet = await healFleet(PLACES[0] as (typeof PLACES)[number], FILES);
  const worker = fleet.worker("w", { timings: { blockedMs: 3000 } });
  await allRun(fleet);
  for (const [signal, cause, boundMs] of [
    ["SIGKILL", "killed", BOUND_MS],
    ["SIGSTOP", "loop-blocked", 3000 + BOUND_MS],
  ] as const) {
    const { pid } = fleet.lines("victim", "start").at(-1) as Line;
    const since = fleet.ledger().length;
    process.kill(pid, signal);
    const at = Date.now();
    const again = await Promise.all(
      ["victim/0", "victim/1"].map((one) => fleet.untilLine(starts(one), since)),
    );
    const took = Math.max(...again.map((line) => line.at)) - at;
    measured(`${signal} of a child`, ms(took));
    expect(took).toBeLessThan(boundMs);
    await allRun(fleet);
    expect(await fleet.lastHeal("victim/0")).toMatchObject({ cause, signal: "SIGKILL" });
    expect(await fleet.lastHeal("victim/1")).toMatchObject({ cause, signal: "SIGKILL" });
  }
  expect(fleet.lines("metronome").filter(({ what }) => what === "beat").length).toBeGreaterThan(10);
  expect(new Set(fleet.lines("metronome").map(({ pid }) => pid)).size).toBe(1);
  worker.signal("SIGTERM");
  expect(await worker.ended).toBe(0);
}, 60_000);

/** Beats per second. */
function rateOf(beats: readonly Line[]): number {
  const [first, last] = [beats[0] as Line, beats.at(-1) as Line];
  return ((beats.length - 1) / (last.at - first.at)) * 1000;
}

async function allRun(fleet: HealFleet): Promise<void> {
  await vi.waitFor(
    async () => {
      const states = await Promise.all(SLOTS.map((slot) => fleet.state(slot)));
      expect(states).toEqual(SLOTS.map(() => "running"));
    },
    { timeout: 20_000, interval: 100 },
  );
}

/** How often each slot of the victim has begun to run. */
function runsOf(fleet: HealFleet): Record<string, number> {
  return Object.fromEntries(
    ["victim/0", "victim/1"].map((slot) => [slot, fleet.lines(slot, "start").length]),
  );
}
