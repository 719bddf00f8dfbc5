import { describe, expect, it } from "vitest";
import { HEALTHY, type HealCause } from "../protocol/health.ts";
import type { SlotTask } from "../protocol/host.ts";
import { blockKeyOf, type WantedSlot } from "./reconcile.ts";
import { Slots, type SlotEnd } from "./slots.ts";
import { workerTimings } from "./timings.ts";

const TIMINGS = workerTimings({
  backoffBaseMs: 1000,
  backoffCapMs: 8000,
  healthyMs: 60_000,
  budgets: [{ failures: 4, windowMs: 100_000 }],
});
const SLOT = { automation: "a", slotId: 0 };
const CODE = { version: "v1", recycles: 0 };
const wanted: WantedSlot = {
  ...SLOT,
  token: "1",
  version: "v1",
  build: "v1#0.0",
  config: {},
  configKey: "{}",
  generation: 4,
  slotCount: 1,
  liveConfig: false,
  isolate: "automation",
  circuitOpen: false,
};

const end = (cause: HealCause | null, more: Partial<SlotEnd> = {}): SlotEnd => ({
  outcome: cause === null ? "stopped" : "failed",
  cause,
  collateral: false,
  error: cause === null ? null : "boom",
  exitCode: null,
  signal: null,
  ...more,
});

const limits = (stuckMs: number) => () => ({ stuckMs, finishes: false });

function table() {
  const slots = new Slots(TIMINGS, (at) => at + 1000);
  slots.adopt({ ...SLOT, token: "1" }, undefined, 0);
  const shown = () => slots.statuses(() => undefined)[0];
  const actual = () => slots.actual(0, limits(1e9))[0];
  const run = (now: number) => {
    slots.run(wanted, 0, "a@v1#0.0", now);
    slots.running(SLOT, now);
  };
  return { slots, shown, actual, run };
}

/** Runs that ended by themselves, each after so long. */
function ran(ends: readonly [cause: HealCause, lasted: number][]) {
  const made = table();
  let now = 0;
  for (const [cause, lasted] of ends) {
    made.run(now);
    made.slots.ended(SLOT, end(cause), (now += lasted));
  }
  return { ...made, now, pause: (made.actual()?.retryAt ?? 0) - now };
}

describe("Slots", () => {
  it("shows a slot's way from start to end", () => {
    const { slots, shown } = table();
    slots.run(wanted, 0, "a@v1#0.0", 10);
    expect(shown()).toMatchObject({ state: "starting", generation: 4, reason: "starting" });
    slots.running(SLOT, 20);
    expect(shown()).toMatchObject({ state: "running", since: 1020, reason: null, lastProgressAt: 1020 });
    slots.stopping(SLOT, "drain", 30);
    expect(shown()).toMatchObject({ state: "stopping", reason: "drain" });
    expect(slots.busy()).toBe(1);
    expect(slots.ended(SLOT, end(null), 40)).toBeUndefined();
    expect(shown()).toMatchObject({ state: "stopped", restarts: 0, lastError: null, lastProgressAt: null });
    expect(slots.busy()).toBe(0);
    slots.forget(SLOT);
    expect(shown()).toBeUndefined();
  });

  it("doubles the pause after each failure, and answers the health that is to be kept", () => {
    const pauses = [1, 2, 3].map((count) => ran(Array.from({ length: count }, () => ["failed", 5])).pause);
    for (const [at, most] of [1000, 2000, 4000].entries()) {
      expect(pauses[at]).toBeLessThanOrEqual(most);
      expect(pauses[at]).toBeGreaterThanOrEqual(most * 0.8);
    }
    const { slots, run } = table();
    run(0);
    expect(slots.ended(SLOT, end("exited", { exitCode: 0 }), 5)).toMatchObject({
      failures: 1,
      history: [{ cause: "exited", exitCode: 0, livedMs: 5, at: 1005, collateral: false }],
    });
  });

  it("opens the circuit when the budget is spent; another version or a recycle closes it", () => {
    const { slots, shown, now } = ran([
      ["failed", 5],
      ["failed", 5],
      ["failed", 5],
      ["failed", 5],
    ]);
    expect(shown()).toMatchObject({
      state: "circuit-open",
      reason: expect.stringContaining("4 failures within") as string,
    });
    expect(slots.circuitOpen(SLOT, CODE, now)).toBe(true);
    expect(slots.circuitOpen(SLOT, { ...CODE, recycles: 1 }, now)).toBe(false);
    expect(slots.circuitOpen(SLOT, CODE, now)).toBe(false);
  });

  it("takes over an open circuit with the slot", () => {
    const { slots, shown } = table();
    const circuit = { since: 5, reason: "too often", ...CODE };
    slots.adopt({ ...SLOT, token: "2" }, { ...HEALTHY, circuit }, 10);
    expect(slots.circuitOpen(SLOT, CODE, 10)).toBe(true);
    expect(shown()).toMatchObject({ state: "circuit-open", reason: "too often" });
  });

  it("costs a collateral slot nothing and starts it again at once", () => {
    const { slots, run, actual, shown } = table();
    run(0);
    const health = slots.ended(SLOT, end("killed", { collateral: true, signal: "SIGKILL" }), 500);
    expect(health).toMatchObject({
      failures: 0,
      spent: [],
      history: [{ collateral: true, cause: "killed" }],
    });
    expect(actual()?.retryAt).toBe(500);
    expect(shown()).toMatchObject({ lastCause: "killed (collateral)" });
  });

  it("takes a run that returned for a finished one: it starts again after a pause", () => {
    const { slots, run, shown, actual } = table();
    run(0);
    slots.ended(SLOT, end("returned", { outcome: "returned", error: null }), 5);
    expect(shown()?.reason).toMatch(/^the run returned; starts again after a pause of \d\.\d s$/);
    expect(actual()?.retryAt).toBeGreaterThan(5);
  });

  it("counts restarts only after runs that ended by themselves, and keeps the last error", () => {
    const { slots, run, shown, now } = ran([
      ["failed", 5],
      ["failed", 5],
    ]);
    run(now);
    expect(shown()).toMatchObject({ restarts: 2, lastError: "boom", lastCause: "failed" });
    slots.stopping(SLOT, "config", now);
    slots.ended(SLOT, end(null), now);
    run(now);
    expect(shown()).toMatchObject({ restarts: 2, lastError: "boom" });
  });

  it("blocks a slot whose config does not fit, for this very version and config", () => {
    const { slots, run, shown, actual } = table();
    run(0);
    slots.ended(SLOT, end(null, { outcome: "config-invalid", error: "url: missing" }), 5);
    expect(shown()).toMatchObject({ state: "blocked", reason: "url: missing" });
    expect(actual()?.blockedFor).toBe(blockKeyOf(wanted));
  });

  it("sees a slot without progress, but not one that waits on purpose", () => {
    const { slots, run } = table();
    run(0);
    const stuckAt = (now: number) => slots.actual(now, limits(1000))[0]?.stuck;
    expect(stuckAt(900)).toBe(false);
    expect(stuckAt(1100)).toBe(true);
    slots.active(SLOT, { slotId: 0, iterations: 1, quietMs: 200, waiting: false, task: null }, 1100, 0);
    expect(stuckAt(1800)).toBe(false);
    expect(stuckAt(1950)).toBe(true);
    slots.active(SLOT, { slotId: 0, iterations: 1, quietMs: 5000, waiting: true, task: null }, 2000, 0);
    expect(stuckAt(90_000)).toBe(false);
  });

  it("calls a slot that was stopped for being stuck so, also when it then ended in good order", () => {
    const { slots, run, shown } = table();
    run(0);
    slots.stopping(SLOT, "stuck", 5000);
    expect(slots.ended(SLOT, end(null), 5100)).toMatchObject({ failures: 1, history: [{ cause: "stuck" }] });
    expect(shown()?.state).toBe("backing-off");
  });

  it("adds up iterations over runs and tells what a report adds", () => {
    const { slots, run, shown } = table();
    const active = (iterations: number) =>
      slots.active(SLOT, { slotId: 0, iterations, quietMs: 0, waiting: false, task: null }, 0, 0);
    run(0);
    expect(active(3)).toBe(3);
    expect(active(10)).toBe(7);
    slots.ended(SLOT, end("failed"), 5);
    run(10);
    expect(active(2)).toBe(2);
    expect(shown()?.iterations).toBe(12);
  });

  it("ignores the end of a slot that has ended, and of one that it does not know", () => {
    const { slots, now } = ran([["failed", 5]]);
    const before = slots.statuses(() => undefined);
    expect(slots.ended(SLOT, end("failed"), now + 5)).toBeUndefined();
    expect(slots.ended({ automation: "b", slotId: 1 }, end("failed"), now)).toBeUndefined();
    expect(slots.statuses(() => undefined)).toEqual(before);
  });
});

describe("a supervisor that stood still", () => {
  it("counts that time against no slot", () => {
    const { slots, run } = table();
    run(0);
    const stuckAt = (now: number) => slots.actual(now, limits(1000))[0]?.stuck;
    expect(stuckAt(5000)).toBe(true);
    slots.forgive(4500);
    expect(stuckAt(5000)).toBe(false);
    expect(stuckAt(5600)).toBe(true);
  });
});

describe("a slot that runs tasks", () => {
  const TASK = { id: "t", token: "5", attempts: 1, startedAt: 1000, timeoutMs: 2000, count: 1 };
  /** The machine's clock is 900 ms ahead of the supervisor's. */
  const AHEAD = 900;
  const working = () => {
    const made = table();
    made.run(0);
    const hear = (now: number, task: SlotTask | null) =>
      made.slots.active(SLOT, { slotId: 0, iterations: 0, quietMs: 0, waiting: false, task }, now, AHEAD);
    const overdue = () => made.slots.actual(0, limits(1e9))[0]?.overdue;
    return { ...made, hear, overdue };
  };

  it("is overdue once it was seen with its task after timeout and grace", () => {
    const { hear, overdue, shown } = working();
    hear(100, TASK);
    expect(shown()?.task).toEqual({ id: "t", attempt: 2, count: 1, since: 1100 });
    hear(100 + 2000 + TIMINGS.taskGraceMs, TASK);
    expect(overdue()).toBe(false);
    hear(101 + 2000 + TIMINGS.taskGraceMs, TASK);
    expect(overdue()).toBe(true);
    hear(9999, null);
    expect([overdue(), shown()?.task]).toEqual([false, null]);
    hear(1e9, { ...TASK, timeoutMs: 0 });
    expect(overdue()).toBe(false);
  });

  it("goes by the flight mark while its process says nothing, where it ran last", () => {
    const { slots, overdue } = working();
    const flight = (lastSlot: number) => ({
      lastSlot,
      endedBy: null,
      tasks: [{ slotId: 0, seq: 1, startedAt: 1000, timeoutMs: 2000, tasks: [{ ...TASK }] }],
    });
    slots.silent("a@v1#0.0", flight(0), 60_000, AHEAD);
    expect(overdue()).toBe(true);
    // Another slot blocks them all: this one may have finished long ago.
    slots.silent("a@v1#0.0", flight(1), 60_000, AHEAD);
    expect(overdue()).toBe(false);
    slots.silent("another", flight(0), 60_000, AHEAD);
    expect(overdue()).toBe(false);
    // Two have begun: either may block the other.
    const [mark] = flight(0).tasks;
    const two = [mark, { ...mark, slotId: 1 }].map((one) => one as NonNullable<typeof mark>);
    slots.silent("a@v1#0.0", { ...flight(0), tasks: two }, 60_000, AHEAD);
    expect(overdue()).toBe(false);
    // Nor is it stuck for that.
    const stuckAt = (now: number) => slots.actual(now, limits(1000))[0]?.stuck;
    expect([stuckAt(61_000), stuckAt(61_001)]).toEqual([false, true]);
  });

  it("is stuck also while it finishes its task, which an endless loop never does", () => {
    const { slots, run } = table();
    run(0);
    slots.stopping(SLOT, "paused", 10);
    const stuckAt = (now: number, finishes: boolean) =>
      slots.actual(now, () => ({ stuckMs: 1000, finishes }))[0]?.stuck;
    expect([stuckAt(1000, true), stuckAt(1001, true), stuckAt(1001, false)]).toEqual([false, true, false]);
  });

  it("costs nothing of its budget when its task did not end", () => {
    const { slots, run } = table();
    run(0);
    expect(slots.ended(SLOT, end("task-timeout"), 10)).toMatchObject({
      failures: 0,
      spent: [],
      history: [{ cause: "task-timeout" }],
    });
  });
});
