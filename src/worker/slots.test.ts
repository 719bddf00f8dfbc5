import { describe, expect, it } from "vitest";
import type { RunOutcome } from "../protocol/host.ts";
import { blockKeyOf, type WantedSlot } from "./reconcile.ts";
import { Slots } from "./slots.ts";
import { workerTimings } from "./timings.ts";

const TIMINGS = workerTimings({ backoffBaseMs: 1000, backoffCapMs: 8000, healthyMs: 60_000 });
const SLOT = { automation: "a", slotId: 0 };
const wanted: WantedSlot = {
  ...SLOT,
  token: "1",
  version: "v1",
  config: {},
  configKey: "{}",
  generation: 4,
  slotCount: 1,
  liveConfig: false,
  isolate: "automation",
};

function ran(outcomes: readonly [outcome: RunOutcome, lasted: number][]) {
  const slots = new Slots(TIMINGS);
  let now = 0;
  for (const [outcome, lasted] of outcomes) {
    slots.run(wanted, "a@v1", now);
    slots.running(SLOT, now);
    slots.ended(SLOT, outcome, outcome === "failed" ? "boom" : null, (now += lasted));
  }
  const [actual] = slots.actual();
  const [status] = slots.statuses((at) => at);
  return { slots, now, pause: (actual?.retryAt ?? 0) - now, status };
}

describe("Slots", () => {
  it("shows a slot's way from start to end", () => {
    const slots = new Slots(TIMINGS);
    const shown = () => slots.statuses((at) => at + 1000)[0];
    slots.run(wanted, "a@v1", 10);
    expect(shown()).toMatchObject({ state: "starting", since: 1010, generation: 4, reason: "starting" });
    slots.running(SLOT, 20);
    expect(shown()).toMatchObject({ state: "running", since: 1020, reason: null });
    slots.stopping(SLOT, "drain", 30);
    expect(shown()).toMatchObject({ state: "stopping", reason: "drain" });
    expect(slots.busy()).toBe(1);
    slots.ended(SLOT, "stopped", null, 40);
    expect(shown()).toMatchObject({ state: "stopped", restarts: 0, lastError: null });
    expect(slots.busy()).toBe(0);
    slots.forget(SLOT);
    expect(slots.statuses((at) => at)).toEqual([]);
  });

  it("doubles the pause after each failed run, up to the cap", () => {
    const pauses = [1, 2, 3, 4, 5].map(
      (count) => ran(Array.from({ length: count }, () => ["failed", 5])).pause,
    );
    for (const [at, most] of [1000, 2000, 4000, 8000, 8000].entries()) {
      expect(pauses[at]).toBeLessThanOrEqual(most);
      expect(pauses[at]).toBeGreaterThanOrEqual(most * 0.8);
    }
  });

  it("forgives earlier failures after a long run", () => {
    const { pause } = ran([
      ["failed", 5],
      ["failed", 5],
      ["failed", 5],
      ["failed", 60_000],
    ]);
    expect(pause).toBeLessThanOrEqual(1000);
  });

  it("takes a run that returned for a finished one: it starts again after a pause, without an error", () => {
    const { status, pause } = ran([["returned", 5]]);
    expect(status).toMatchObject({ state: "backing-off", lastError: null });
    expect(status?.reason).toMatch(/^the run returned; starts again in \d\.\d s$/);
    expect(pause).toBeGreaterThan(0);
  });

  it("counts restarts only after runs that ended by themselves, and keeps the last error", () => {
    const { slots, now } = ran([
      ["failed", 5],
      ["failed", 5],
    ]);
    slots.run(wanted, "a@v1", now);
    expect(slots.statuses((at) => at)[0]).toMatchObject({ restarts: 2, lastError: "boom" });
    slots.stopping(SLOT, "config", now);
    slots.ended(SLOT, "stopped", null, now);
    slots.run(wanted, "a@v1", now);
    expect(slots.statuses((at) => at)[0]).toMatchObject({ restarts: 2, lastError: "boom" });
  });

  it("blocks a slot whose config does not fit, for this very version and config", () => {
    const { slots, status } = ran([["config-invalid", 0]]);
    expect(status).toMatchObject({ state: "blocked" });
    expect(slots.actual()[0]?.blockedFor).toBe(blockKeyOf(wanted));
  });

  it("adds up iterations over runs", () => {
    const slots = new Slots(TIMINGS);
    const active = (iterations: number) =>
      slots.active(SLOT, { slotId: 0, iterations, quietMs: 0, waiting: false });
    slots.run(wanted, "a@v1", 0);
    active(3);
    active(10);
    slots.ended(SLOT, "failed", "boom", 5);
    slots.run(wanted, "a@v1", 10);
    active(2);
    expect(slots.statuses((at) => at)[0]?.iterations).toBe(12);
  });

  it("ignores the end of a slot that has ended, and of one that it does not know", () => {
    const { slots, now } = ran([["failed", 5]]);
    const before = slots.statuses((at) => at);
    slots.ended(SLOT, "failed", "again", now + 5);
    slots.ended({ automation: "b", slotId: 1 }, "failed", "x", now);
    expect(slots.statuses((at) => at)).toEqual(before);
  });
});
