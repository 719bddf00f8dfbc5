// Short (`npm test`): slots without progress, limits that replace a process, and a program that dies for ever. Real processes.
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { FLEET_TOPICS } from "../src/contracts/life-cycle.ts";
import { eventBus } from "../src/primitives/events.ts";
import { BOUND_MS, healFleet, measured, ms, starts, type HealFleet } from "./support/heal-fleet.ts";
import { PLACES, runningSlots, slotStatus, type Place } from "./support/places.ts";

const SQLITE = PLACES[0] as Place;

test("a slot without progress is stopped, one that overlooks that is killed, one that waits on purpose is left alone", async () => {
  const fleet = await healFleet(SQLITE, {
    "hung.ts": automation("hung", {
      options: "stuckSeconds: 1,",
      body: `await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
        note(ctx, "stopped", { reason: ctx.signal.reason });`,
    }),
    "deaf.ts": automation("deaf", {
      options: "stuckSeconds: 1,",
      body: `if (ctx.slotId === 1) await ctx.sleep(600);
        else await new Promise(() => setInterval(() => undefined, 1000));`,
    }),
    "patient.ts": automation("patient", {
      options: "stuckSeconds: 1,",
      head: `const OUT = defineStream("nobody", z.object({}));`,
      body: `
        if (ctx.slotId === 0) await ctx.sleep(600);
        if (ctx.slotId === 1) await ctx.stream(OUT).pop({ n: 1, waitSeconds: 600 });
        if (ctx.slotId === 2) for await (const turn of ctx.loop({ everySeconds: 600 }));
        if (ctx.slotId === 3) for await (const item of ctx.stream(OUT));
        if (ctx.slotId === 4) while (!ctx.signal.aborted) { await new Promise((resolve) => setTimeout(resolve, 300)); ctx.progress(); }`,
    }),
    "fleet.config.ts": config(["hung", "deaf", "patient"], { patient: 5, deaf: 2 }),
  });
  const worker = fleet.worker("w", { args: ["--drain-seconds", "1"] });
  for (const [slot, cause, graceMs] of [
    ["hung/0", "stuck", 0],
    ["deaf/0", "would-not-stop", 1000],
  ] as const) {
    const first = await fleet.untilLine(starts(slot));
    const second = await fleet.untilLine((line) => starts(slot)(line) && line.at > first.at);
    measured(`${slot} with stuckSeconds 1 and a grace of 1 s`, ms(second.at - first.at));
    expect(second.at - first.at).toBeGreaterThan(1000 + graceMs);
    expect(second.at - first.at).toBeLessThan(5000 + graceMs);
    await vi.waitFor(async () =>
      expect(await fleet.lastHeal(slot)).toMatchObject({ cause, collateral: false }),
    );
  }
  expect(await fleet.lastHeal("deaf/1")).toMatchObject({ cause: "would-not-stop", collateral: true });
  expect(fleet.lines("hung/0", "stopped")[0]).toMatchObject({ reason: "stuck" });
  expect(fleet.lines("deaf/0", "start")[0]?.pid).not.toBe(fleet.lines("deaf/0", "start")[1]?.pid);
  await fleet.untilLine(() => Date.now() - (fleet.lines("patient", "start")[0]?.at ?? Date.now()) > 4000);
  expect(fleet.lines("patient", "start")).toHaveLength(5);
  expect(Object.keys(await fleet.store.registry.slotHealth()).toSorted()).toEqual([
    "deaf/0",
    "deaf/1",
    "hung/0",
  ]);
  worker.signal("SIGTERM");
  expect(await worker.ended).toBe(5);
}, 60_000);

test.each([
  ["afterSeconds", "recycle: { afterSeconds: 4 },", ""],
  ["afterIterations", "recycle: { afterIterations: 60 },", ""],
  [
    "maxMemoryMb",
    "recycle: { maxMemoryMb: 140 },",
    "if (ctx.slotId === 0 && (globalThis.kept ??= []).length < 80) globalThis.kept.push(Buffer.alloc(1e6, 1));",
  ],
])(
  "%s replaces the process slot by slot, and never are all slots down",
  async (limit, options, turn) => {
    const fleet = await healFleet(SQLITE, {
      "aging.ts": automation("aging", {
        options,
        body: `for await (const _ of ctx.loop({ everySeconds: 0.05 })) { ${turn} note(ctx, "turn"); }
        note(ctx, "stopped", { reason: ctx.signal.reason });`,
      }),
      "fleet.config.ts": config(["aging"], { aging: 3 }),
    });
    const worker = fleet.worker("w");
    await vi.waitFor(async () => expect((await runningSlots(fleet.store)).size).toBe(3), { timeout: 20_000 });
    const slots = ["aging/0", "aging/1", "aging/2"];
    // Every slot has moved, and the replacement is replaced in its turn.
    const third = () =>
      slots.every((slot) => fleet.lines(slot, "start").length > 1) &&
      new Set(fleet.lines("aging", "turn").map(({ pid }) => pid)).size >= 3;
    const seen: number[] = [];
    const sampling = setInterval(
      () => void runningSlots(fleet.store).then(({ size }) => seen.push(size)),
      50,
    );
    await fleet.untilLine(third, 0, 25_000).finally(() => clearInterval(sampling));
    expect(Math.min(...seen)).toBeGreaterThan(0);
    expect(seen.length).toBeGreaterThan(20);
    // And as the slots themselves saw it: at every moment one of them is between its start and its stop.
    let running = 0;
    const counts = fleet
      .lines("aging")
      .filter(({ what }) => what === "start" || what === "stopped")
      .map(({ what }) => (running += what === "start" ? 1 : -1));
    expect(Math.min(...counts.slice(2))).toBeGreaterThan(0);
    expect(new Set(fleet.lines("aging", "stopped").map((line) => line["reason"]))).toEqual(
      new Set(["recycle"]),
    );
    expect(await fleet.store.registry.slotHealth()).toEqual({});
    measured(`recycled by ${limit}: fewest of 3 slots at any moment`, String(Math.min(...counts.slice(2))));
    worker.signal("SIGTERM");
    expect(await worker.ended).toBe(0);
  },
  60_000,
);

test("a process that grows far above maxMemoryMb is killed at once, and that counts as a crash", async () => {
  const fleet = await healFleet(SQLITE, {
    "glutton.ts": automation("glutton", {
      options: "recycle: { maxMemoryMb: 150 },",
      // Once: its second run is modest.
      body: `if (order(ctx) === "eat") {
          globalThis.kept = Array.from({ length: 300 }, () => Buffer.alloc(1e6, 1));
          note(ctx, "eaten");
        }
        await ctx.sleep(600);`,
    }),
    "fleet.config.ts": config(["glutton"], {}),
  });
  fleet.command("glutton/0", "eat");
  const crashes: unknown[] = [];
  const over = new AbortController();
  onTestFinished(() => over.abort());
  const bus = eventBus({ store: fleet.store.events, source: "test", signal: over.signal });
  const crashed = bus.subscribe(FLEET_TOPICS.slotCrashed);
  await crashed.ready;
  void (async () => {
    for await (const { payload } of crashed) crashes.push(payload);
  })();
  const worker = fleet.worker("w");
  const first = await fleet.untilLine(starts("glutton/0"));
  const second = await fleet.untilLine((line) => starts("glutton/0")(line) && line.pid !== first.pid);
  const took = second.at - (fleet.lines("glutton", "eaten")[0]?.at ?? 0);
  measured("300 MB with maxMemoryMb 150: runs again after", ms(took));
  expect(took).toBeLessThan(BOUND_MS);
  await vi.waitFor(async () =>
    expect(await fleet.lastHeal("glutton/0")).toMatchObject({ cause: "out-of-memory", signal: "SIGKILL" }),
  );
  await vi.waitFor(() =>
    expect(crashes).toMatchObject([{ automation: "glutton", slot: 0, worker: "w", cause: "out-of-memory" }]),
  );
  await crashed.close();
  worker.signal("SIGTERM");
  expect(await worker.ended).toBe(0);
}, 60_000);

test("an automation that dies for ever starts ever more rarely, until its circuit opens; the worker idles", async () => {
  // All times a fifth of the real ones or less: it lives 0.3 s, the back-off begins with 0.2 s, the budget is 7 in a minute.
  const fleet = await healFleet(SQLITE, {
    "dying.ts": automation("dying", { body: `await ctx.sleep(0.3); throw new Error("dies for ever");` }),
    "fleet.config.ts": config(["dying"], {}),
  });
  const worker = fleet.worker("w", {
    timings: {
      backoffBaseMs: 200,
      backoffCapMs: 60_000,
      healthyMs: 60_000,
      budgets: [{ failures: 7, windowMs: 60_000 }],
    },
  });
  const count = () => fleet.lines("dying", "start").length;
  await fleet.untilLine(() => count() >= 5);
  const before = cpuSeconds(worker.pid);
  const at = performance.now();
  await vi.waitFor(async () => expect(await fleet.state("dying/0")).toBe("circuit-open"), {
    timeout: 30_000,
    interval: 500,
  });
  const share = (cpuSeconds(worker.pid) - before) / ((performance.now() - at) / 1000);
  const gaps = fleet
    .lines("dying", "start")
    .map(({ at: start }, i, all) => start - (all[i - 1]?.at ?? start))
    .slice(1);
  measured("gaps between restarts", gaps.map(ms).join(", "));
  measured("CPU of the supervisor meanwhile", `${(share * 100).toFixed(1)} %`);
  expect(gaps).toHaveLength(6);
  for (const [i, gap] of gaps.slice(1).entries()) expect(gap).toBeGreaterThan(gaps[i] as number);
  expect(gaps.at(-1)).toBeGreaterThan(200 * 2 ** 5 * 0.75);
  expect(share).toBeLessThan(0.1);
  const status = await slotStatus(fleet.store, "dying");
  expect(status?.reason).toContain("7 failures within 1 min; the last: failed: Error: dies for ever");
  expect((await fleet.store.registry.slotHealth())["dying/0"]).toMatchObject({
    failures: 7,
    circuit: { reason: status?.reason },
  });
  const starts = count();
  await delay(1500);
  expect(count()).toBe(starts);
  await recycle(fleet);
  await fleet.untilLine(() => count() > starts);
  worker.signal("SIGTERM");
  expect(await worker.ended).toBe(0);
}, 60_000);

function automation(name: string, parts: { options?: string; head?: string; body: string }): string {
  return `
    import { defineContinuous, defineStream } from "fleet-framework";
    import { z } from "zod";
    import { note, order } from "./tools.ts";
    ${parts.head ?? ""}
    export default defineContinuous("${name}", {
      ${parts.options ?? ""}
      async runSlot(ctx) { note(ctx, "start"); ${parts.body} },
    });`;
}

function config(names: readonly string[], slots: Record<string, number>): string {
  const deploy = Object.fromEntries(Object.entries(slots).map(([name, count]) => [name, { slots: count }]));
  return `
    import { defineConfig } from "fleet-framework";
    export default defineConfig({ automations: ${JSON.stringify(names.map((name) => `./${name}.ts`))}, deploy: ${JSON.stringify(deploy)} });`;
}

/** CPU time of a process so far, of user and system. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

async function recycle({ store }: HealFleet): Promise<void> {
  const known = (await store.registry.view()).desired["dying"];
  if (known === undefined) throw new Error("no desired state");
  const next = { ...known, recycles: (known.recycles ?? 0) + 1, generation: known.generation + 1 };
  await store.registry.putDesired({ name: "dying", desired: next, expected: known.generation });
}
